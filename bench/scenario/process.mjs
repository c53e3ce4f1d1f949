// Jobs wait already; how fast one worker runs them to the last, no-op handlers.
import { handle } from '../holdfast.mjs'
import { costs, fill, measured, noop, open, perSecond, prove } from './shared.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = {
  concurrency: 100,
  jobs: { memory: 100_000, sqlite: 50_000, redis: onRedis, postgres: 100_000 },
}
export const extra = costs

/** Where round trips bind, fewer jobs take as long. */
function onRedis(concurrency) {
  if (concurrency >= 100) return 100_000
  return concurrency >= 10 ? 50_000 : 20_000
}

export async function run(options) {
  const hf = await open(options)
  await fill(hf, options.jobs, options.payloadBytes)
  let done = 0
  let elapsed = 0
  const count = handle(noop, async () => {
    done += 1
  })
  const figures = await measured(options, async () => {
    const startedAt = performance.now()
    await hf.runUntilEmpty({ handlers: [count], concurrency: options.concurrency })
    elapsed = performance.now() - startedAt
  })
  prove('process', done, options.jobs)
  await hf.close()
  return { value: perSecond(options.jobs, elapsed), extra: figures }
}
