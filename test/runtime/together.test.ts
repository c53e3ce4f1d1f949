/** Whole systems without faults: two processes on one file, and a handler that never yields beside handlers that do. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, defineJob, handle, inThread, retry } from 'holdfast'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Child } from '../support/child.ts'
import { eventually } from '../support/event.ts'
import { silent } from '../support/silent.ts'

const JOBS = 2_000
const TIMEOUT_MS = 300

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-together-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('two processes on one file: 2,000 jobs, each effect exactly once, and both took part', async () => {
  const url = `sqlite:${join(folder, 'jobs.db')}`
  const effects = join(folder, 'effects')
  const hf = await connect(url)
  const ids: string[] = []
  const children = ['first', 'second'].map(
    (name) => new Child('work.mjs', [url, 'default', '30000', `${effects}-${name}`, 'go']),
  )
  try {
    await Promise.all(children.map((child) => child.line('ready')))
    for (let from = 0; from < JOBS; from += 100) {
      const batch = await hf.enqueueMany(Array.from({ length: 100 }, () => ({ job: 'task', input: null })))
      ids.push(...batch.map(({ id }) => id))
    }
    await eventually(async () => (await hf.stats()).counts.completed === JOBS, 'all jobs are completed', 60_000)
    const [first = [], second = []] = ['first', 'second'].map((name) =>
      readFileSync(`${effects}-${name}`, 'utf8').trim().split('\n'),
    )
    expect(first.length).toBeGreaterThan(0)
    expect(second.length).toBeGreaterThan(0)
    expect([...first, ...second].sort()).toEqual(ids.sort())
  } finally {
    await Promise.all(children.map((child) => child.kill()))
    await hf.close()
  }
}, 90_000)

test('an endless loop in a thread is stopped within half a second of its grace while 50 inline jobs finish beside it', async () => {
  const hf = await connect('memory:', { logger: silent })
  const loops = defineJob<unknown>('loops', { timeout: TIMEOUT_MS, retry: retry.none(), queue: 'mixed' })
  const inline = defineJob<number, number>('inline', { queue: 'mixed' })
  const module = new URL('../support/handlers/conformance.mjs', import.meta.url)
  const worker = await hf.worker({
    handlers: [inThread(loops, module), handle(inline, async (n) => n)],
    concurrency: 4,
    killGrace: 500,
  })
  const loop = await hf.enqueue(loops, { act: 'loopUntil', attempt: 2 })
  const others = await hf.enqueueMany(Array.from({ length: 50 }, (_, index) => ({ job: inline, input: index })))
  expect(await Promise.all(others.map((job) => job.result()))).toEqual(Array.from({ length: 50 }, (_, index) => index))
  await expect(loop.result()).rejects.toMatchObject({ code: 'JOB_DEAD' })
  const [attempt] = await hf.attempts(loop.id)
  expect(attempt).toMatchObject({ outcome: 'failed', failure: { code: 'TIMEOUT' } })
  expect(attempt?.durationMs).toBeGreaterThanOrEqual(TIMEOUT_MS)
  // The bound is the promise itself: timeout and grace, and the end of a thread with as much to spare as the grace is long.
  expect(attempt?.durationMs).toBeLessThan(TIMEOUT_MS + 1_000)
  expect(worker.activeJobs).toBe(0)
  await hf.close()
})
