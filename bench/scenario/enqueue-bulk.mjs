// enqueueMany in batches of 1000.
import { inputOf, measured, noop, open, perSecond, prove } from './shared.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = { concurrency: 1, jobs: { memory: 100_000, sqlite: 100_000, redis: 100_000 } }
export const extra = {
  nodeCpu: { name: 'µs of Node CPU/job', higherIsBetter: false },
  serverCpu: { name: 'µs of server CPU/job', higherIsBetter: false },
  slowScripts: { name: 'scripts over 5 ms a run' },
}
const BATCH = 1_000

export async function run(options) {
  const hf = await open(options)
  let elapsed = 0
  const figures = await measured(options, async () => {
    const startedAt = performance.now()
    await enqueueAll(hf, options)
    elapsed = performance.now() - startedAt
  })
  prove('enqueue-bulk', (await hf.stats()).counts.queued, options.jobs)
  await hf.close()
  return { value: perSecond(options.jobs, elapsed), extra: figures }
}

async function enqueueAll(hf, options) {
  for (let from = 0; from < options.jobs; from += BATCH) {
    const size = Math.min(BATCH, options.jobs - from)
    await hf.enqueueMany(
      Array.from({ length: size }, (_, index) => ({ job: noop, input: inputOf(options.payloadBytes, from + index) })),
    )
  }
}
