// Many callers enqueue at once, each waiting for its own answer.
import { inputOf, noop, open, perSecond, prove } from './shared.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = { concurrency: 100, jobs: { memory: 100_000, sqlite: 50_000, redis: 100_000 } }

export async function run(options) {
  const hf = await open(options)
  let next = 0
  const caller = async () => {
    while (next < options.jobs) await hf.enqueue(noop, inputOf(options.payloadBytes, next++))
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: options.concurrency }, caller))
  const elapsed = performance.now() - startedAt
  prove('enqueue-concurrent', (await hf.stats()).counts.queued, options.jobs)
  await hf.close()
  return perSecond(options.jobs, elapsed)
}
