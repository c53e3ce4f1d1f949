// Many callers enqueue at once, each waiting for its own answer.
import { costs, inputOf, noop, open, prove, timed } from './shared.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = {
  concurrency: 100,
  jobs: { memory: 100_000, sqlite: 50_000, redis: 100_000, postgres: 50_000 },
}
export const extra = costs

export async function run(options) {
  const hf = await open(options)
  let next = 0
  const caller = async () => {
    while (next < options.jobs) await hf.enqueue(noop, inputOf(options.payloadBytes, next++))
  }
  const result = await timed(options, () => Promise.all(Array.from({ length: options.concurrency }, caller)))
  prove('enqueue-concurrent', (await hf.stats()).counts.queued, options.jobs)
  await hf.close()
  return result
}
