// No-op jobs through handler threads; the peer is a bare piscina with the same threads and the same number in flight. Both sides have
// all their threads up before the clock starts.
import { inThread } from '../holdfast.mjs'
import { fill, inputOf, noop, open, perSecond, prove } from './shared.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = { concurrency: 10, jobs: { memory: 30_000, sqlite: 30_000, redis: 30_000, postgres: 30_000 } }

export async function run(options) {
  const hf = await open(options)
  await fill(hf, options.jobs, options.payloadBytes)
  await hf.pause('default')
  const worker = await hf.worker({
    handlers: [inThread(noop, new URL('./threads-noop.mjs', import.meta.url))],
    lanes: ['default', 'warm-up'],
    concurrency: options.concurrency,
  })
  await completed(worker, options.concurrency * 50, () => warmUp(hf, options))
  const startedAt = performance.now()
  await completed(worker, options.jobs, () => hf.resume('default'))
  const elapsed = performance.now() - startedAt
  await worker.stop()
  prove('threads', options.jobs - (await hf.stats('default')).counts.queued, options.jobs)
  await hf.close()
  return perSecond(options.jobs, elapsed)
}

function warmUp(hf, { concurrency, payloadBytes }) {
  const jobs = Array.from({ length: concurrency * 50 }, (_, index) => ({
    job: noop,
    input: inputOf(payloadBytes, index),
    options: { queue: 'warm-up' },
  }))
  return hf.enqueueMany(jobs)
}

async function completed(worker, count, start) {
  let done = 0
  const all = new Promise((resolve) => {
    const listener = () => {
      done += 1
      if (done < count) return
      worker.off('completed', listener)
      resolve()
    }
    worker.on('completed', listener)
  })
  await start()
  await all
}
