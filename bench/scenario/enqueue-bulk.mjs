// enqueueMany in batches of 1000.
import { costs, inputOf, noop, open, prove, timed } from './shared.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = {
  concurrency: 1,
  jobs: { memory: 100_000, sqlite: 100_000, redis: 100_000, postgres: 100_000 },
}
export const extra = costs
const BATCH = 1_000

export async function run(options) {
  const hf = await open(options)
  const result = await timed(options, () => enqueueAll(hf, options))
  prove('enqueue-bulk', (await hf.stats()).counts.queued, options.jobs)
  await hf.close()
  return result
}

async function enqueueAll(hf, options) {
  for (let from = 0; from < options.jobs; from += BATCH) {
    const size = Math.min(BATCH, options.jobs - from)
    await hf.enqueueMany(
      Array.from({ length: size }, (_, index) => ({ job: noop, input: inputOf(options.payloadBytes, from + index) })),
    )
  }
}
