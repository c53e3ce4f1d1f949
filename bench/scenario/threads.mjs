// No-op jobs through handler threads; the peer is a bare piscina with the same threads and the same number in flight.
import { inThread } from 'holdfast'
import { fill, noop, open, perSecond, prove } from './shared.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = { concurrency: 10, jobs: { memory: 30_000, sqlite: 30_000 } }

export async function run(options) {
  const hf = await open(options)
  await fill(hf, options.jobs, options.payloadBytes)
  let done = 0
  const running = await startPaused(hf, options)
  running.on('completed', () => {
    done += 1
    if (done === options.jobs) finish()
  })
  let finish = () => {}
  const finished = new Promise((resolve) => {
    finish = resolve
  })
  const startedAt = performance.now()
  await hf.resume('default')
  await finished
  const elapsed = performance.now() - startedAt
  await running.stop()
  prove('threads', done, options.jobs)
  await hf.close()
  return perSecond(options.jobs, elapsed)
}

// The threads are warm before the clock starts, as the peer's are.
async function startPaused(hf, options) {
  await hf.pause('default')
  return await hf.worker({
    handlers: [inThread(noop, new URL('./threads-noop.mjs', import.meta.url))],
    concurrency: options.concurrency,
  })
}
