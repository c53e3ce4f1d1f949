/** What users of job systems on SQLite hit, by the number of the case. */
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { connect, defineJob, handle } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { eventsOf, rejection } from '../support/event.ts'
import { firstStarts } from '../support/first-starts.ts'
import { lookFor } from '../support/look.ts'
import { Stage } from '../support/stage.ts'
import { miscounts } from './dump.ts'
import { freshPath } from './support.ts'

const stage = new Stage()
afterEach(() => stage.clear())

const task = defineJob<unknown>('task')

it('C050 first starts of ten processes at once in one file: all start, one made the tables, and every job runs once', async () => {
  const path = freshPath()
  const children = await firstStarts(stage, `sqlite:${path}`, 10)
  for (const child of children) child.tell('stop')
  await Promise.all(children.map((child) => child.exited))
  expect(miscounts(path)).toEqual([])
}, 60_000)

it('C050 a worker beside a migration that adds goes on; by one that breaks with its release it is stopped with a clear message', async () => {
  const path = freshPath()
  const hf = await connect(`sqlite:${path}`)
  stage.defer(() => hf.close())
  const worker = await hf.worker({ handlers: [handle(task, () => 1)], poll: 50 })
  const errors = eventsOf(worker, 'error')
  const later = new Database(path)
  stage.defer(() => later.close())
  const record = (version: number, breaking: 0 | 1) =>
    later.prepare("INSERT INTO holdfast_migration VALUES (?, 'later', 'x', ?, 0)").run(version, breaking)
  later.exec('ALTER TABLE holdfast_job ADD COLUMN later INTEGER NOT NULL DEFAULT 7')
  later.exec('CREATE INDEX later ON holdfast_job (later)')
  record(98, 0)
  for (let n = 0; n < 5; n += 1) await hf.enqueue(task, n)
  await lookFor('all is done', async () => (await hf.stats()).counts.completed === 5 || undefined)
  await hf.maintain()
  expect(errors).toEqual([])
  record(99, 1)
  const refusal = {
    code: 'STORE_SCHEMA_TOO_NEW',
    retryable: false,
    message: expect.stringContaining('migrated to 99 (later) by a later release'),
  }
  expect(await rejection(hf.maintain())).toMatchObject(refusal)
  expect(await rejection(hf.enqueue(task, 1))).toMatchObject(refusal)
  await lookFor('the worker says so', async () => errors.length > 0 || undefined)
  expect(errors[0]).toMatchObject(refusal)
})

describe('C072 a place where no store can be', () => {
  const places: Readonly<Record<string, (path: string) => string>> = {
    'a folder that is not there': (path) => join(dirname(path), 'none', 'jobs.db'),
    'a folder in its place': (path) => {
      mkdirSync(path)
      return path
    },
    'a file in place of its folder': (path) => {
      writeFileSync(path, '')
      return join(path, 'jobs.db')
    },
    'a file that is something else': (path) => {
      writeFileSync(path, 'x'.repeat(4_096))
      chmodSync(path, 0o444)
      return path
    },
  }

  it.each(Object.entries(places))('%s: one error that names it and why, and nothing is left there', async (_, make) => {
    const path = make(freshPath())
    const folder = dirname(path)
    const before = namesIn(folder)
    const error = await rejection(connect(`sqlite:${path}`))
    expect(error).toMatchObject({ retryable: expect.any(Boolean), code: expect.stringMatching(/^STORE_/) })
    expect(error.message).toContain(path)
    expect(namesIn(folder)).toEqual(before)
  })
})

function namesIn(folder: string): readonly string[] | null {
  try {
    return readdirSync(folder).sort()
  } catch {
    return null
  }
}
