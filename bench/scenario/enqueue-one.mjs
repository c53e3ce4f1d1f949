// One awaited enqueue after another.
import { costs, inputOf, noop, open, prove, timed } from './shared.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = { concurrency: 1, jobs: { memory: 50_000, sqlite: 5_000, redis: 10_000, postgres: 5_000 } }
export const extra = costs

export async function run(options) {
  const hf = await open(options)
  await hf.enqueue(noop, inputOf(options.payloadBytes, -1))
  const result = await timed(options, async () => {
    for (let index = 0; index < options.jobs; index += 1) await hf.enqueue(noop, inputOf(options.payloadBytes, index))
  })
  prove('enqueue-one', (await hf.stats()).counts.queued, options.jobs + 1)
  await hf.close()
  return result
}
