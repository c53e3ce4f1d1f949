// Jobs wait already; how fast one worker runs them to the last, no-op handlers.
import { handle } from 'holdfast'
import { fill, noop, open, perSecond, prove } from './shared.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = { concurrency: 100, jobs: { memory: 100_000, sqlite: 50_000 } }

export async function run(options) {
  const hf = await open(options)
  await fill(hf, options.jobs, options.payloadBytes)
  let done = 0
  const startedAt = performance.now()
  const count = handle(noop, async () => {
    done += 1
  })
  await hf.runUntilEmpty({ handlers: [count], concurrency: options.concurrency })
  const elapsed = performance.now() - startedAt
  prove('process', done, options.jobs)
  await hf.close()
  return perSecond(options.jobs, elapsed)
}
