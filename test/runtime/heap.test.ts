/** A worker that lives long: the heap after 200,000 jobs is what it was after 50,000, and nothing gathers listeners. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { connect, defineJob, type Holdfast, handle } from 'holdfast'
import { expect, it, onTestFinished } from 'vitest'
import { silent } from '../support/silent.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const task = defineJob<number>('task')
const BATCH = 1_000
const SLACK_BYTES = 10 * 2 ** 20

/** Enqueues and waits in step with the worker, so that nothing but the worker's own can pile up. */
async function run(hf: Holdfast, count: number, done: () => number): Promise<number> {
  const goal = done() + count
  for (let n = 0; n < count; n += BATCH) {
    await hf.enqueueMany(Array.from({ length: BATCH }, (_, index) => ({ job: task, input: n + index })))
    while (done() < goal - count + n + BATCH - BATCH / 2) await new Promise((resolve) => setImmediate(resolve))
  }
  while (done() < goal) await new Promise((resolve) => setImmediate(resolve))
  for (let turn = 0; turn < 3; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  return process.memoryUsage().heapUsed
}

it.each(['memory', 'sqlite'])(
  'C136 %s: the heap stays as it is',
  async (store) => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-heap-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const warnings: string[] = []
    const warned = (warning: Error): number => warnings.push(warning.name)
    process.on('warning', warned)
    onTestFinished(() => {
      process.off('warning', warned)
    })
    const url = store === 'memory' ? 'memory:' : `sqlite:${join(folder, 'jobs.db')}`
    const hf = await connect(url, { keepCompleted: 0, logger: silent })
    let count = 0
    const handler = handle(task, () => {
      count += 1
    })
    const worker = await hf.worker({ handlers: [handler], concurrency: 100 })
    const first = await run(hf, 50_000, () => count)
    const last = await run(hf, 150_000, () => count)
    expect(count).toBe(200_000)
    expect(last - first).toBeLessThan(SLACK_BYTES)
    expect(warnings.filter((name) => name.includes('MaxListeners'))).toEqual([])
    await worker.stop()
    await hf.close()
  },
  120_000,
)
