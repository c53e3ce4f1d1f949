// The rate of `process` for the first 10,000 jobs of a long backlog (--jobs, default 500,000 in memory, 200,000 in SQLite).
// On Redis and PostgreSQL the first 20,000 of a million (500,000), beside the rate with 10,000 waiting.
import { handle } from '../holdfast.mjs'
import { backlog } from '../queue/backlog.mjs'
import * as holdfast from '../queue/holdfast.mjs'
import { fill, noop, open, perSecond } from './shared.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = {
  concurrency: 100,
  jobs: { memory: 500_000, sqlite: 200_000, redis: 1_000_000, postgres: 500_000 },
}
export const extra = {
  short: { name: 'jobs/s with 10,000 waiting', higherIsBetter: true },
  ofShort: { name: 'rate, as a share of that with 10,000 waiting', higherIsBetter: true },
}
const MEASURED = 10_000

export function run(options) {
  return options.server !== undefined ? backlog(holdfast, options) : longOnly(options)
}

async function longOnly(options) {
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
