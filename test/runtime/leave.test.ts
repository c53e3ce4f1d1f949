/** A process that has stopped its workers and closed its client ends by itself, whatever its handlers ran in. C023, C024, C028. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'holdfast'
import { afterAll, afterEach, expect, test } from 'vitest'
import { Child } from '../support/child.ts'
import { within } from '../support/event.ts'
import { silent } from '../support/silent.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-leave-'))
const children: Child[] = []
afterEach(() => Promise.all(children.splice(0).map((child) => child.kill())))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('C023 C028 handlers inline, in threads and in processes leave nothing that keeps the process', async () => {
  const child = new Child('leaver.mjs', [`sqlite:${join(folder, 'jobs.db')}`, 'default', 'everywhere'])
  children.push(child)
  const closed = await child.line('closed')
  await within(child.exited, 'the process ends by itself')
  const at = (line: string): number => Number(line.split(' ')[1])
  // A second is what the contract of a clean close allows.
  expect(at(await child.line('exit')) - at(closed)).toBeLessThan(1_000)
  expect(child.lines.filter((line) => line.startsWith('unhandled'))).toEqual([])
  expect(child.lines.slice(0, 8)).toEqual(
    [1, 2].flatMap((round) => ['task', 'thread', 'process', 'passing'].map((type) => `${type} ${round}`)),
  )
  expect(child.errors).toBe('')
})

test('C024 a producer ends by itself, and its job is there', async () => {
  const url = `sqlite:${join(folder, 'producer.db')}`
  const child = new Child('leaver.mjs', [url, 'default', 'producer'])
  children.push(child)
  const [, id = ''] = (await child.line('enqueued')).split(' ')
  await child.line('exit')
  await within(child.exited, 'the process ends by itself')
  const hf = await connect(url, { logger: silent })
  expect((await hf.get(id))?.state).toBe('queued')
  await hf.close()
})
