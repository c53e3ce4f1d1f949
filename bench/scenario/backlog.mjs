// The rate of `process` for the first 10,000 jobs of a long backlog (--jobs, default 500,000 in memory, 200,000 in SQLite).
import { handle } from '../holdfast.mjs'
import { fill, noop, open, perSecond } from './shared.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = { concurrency: 100, jobs: { memory: 500_000, sqlite: 200_000, redis: 1_000_000 } }
const MEASURED = 10_000

export async function run(options) {
  const hf = await open(options)
  await fill(hf, options.jobs, options.payloadBytes)
  let done = 0
  let reached = () => {}
  const enough = new Promise((resolve) => {
    reached = resolve
  })
  const goal = Math.min(MEASURED, options.jobs)
  const startedAt = performance.now()
  const worker = await hf.worker({
    handlers: [
      handle(noop, async () => {
        done += 1
        if (done === goal) reached(performance.now())
      }),
    ],
    concurrency: options.concurrency,
  })
  const elapsed = (await enough) - startedAt
  await worker.stop()
  await hf.close()
  return perSecond(goal, elapsed)
}
