// Our side of the scenarios with handler threads: all threads are up and warm before the clock starts.
import { inThread } from '../holdfast.mjs'
import { fill, inputOf, noop, open, perSecond, prove } from '../scenario/shared.mjs'

export async function runInThreads(options, module) {
  const hf = await open(options)
  await fill(hf, options.jobs, options.payloadBytes)
  await hf.pause('default')
  const worker = await hf.worker({
    handlers: [inThread(noop, module)],
    lanes: ['default', 'warm-up'],
    concurrency: options.concurrency,
  })
  const warmUps = options.concurrency * options.warmUps
  await completed(worker, warmUps, () => warmUp(hf, warmUps, options.payloadBytes))
  const startedAt = performance.now()
  await completed(worker, options.jobs, () => hf.resume('default'))
  const elapsed = performance.now() - startedAt
  await worker.stop()
  prove('threads', options.jobs - (await hf.stats('default')).counts.queued, options.jobs)
  await hf.close()
  return perSecond(options.jobs, elapsed)
}

function warmUp(hf, count, payloadBytes) {
  const jobs = Array.from({ length: count }, (_, index) => ({
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
