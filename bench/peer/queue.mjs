// The scenarios driven through a queue of bench/queue, so that every peer does the same work as our side does.
import { backlog } from '../queue/backlog.mjs'
import { heldXmin } from '../queue/held-xmin.mjs'
import { idle } from '../queue/idle.mjs'
import { latency } from '../queue/latency.mjs'
import { several } from '../queue/several.mjs'
import { steady } from '../queue/steady.mjs'
import { fill, settled, workUntil } from '../queue/work-until.mjs'
import { inputOf, measured, perSecond, prove, timed } from '../scenario/shared.mjs'

/** Those that open the queue themselves, in this process and in others. */
const whole = { latency, backlog, idle, processes: several, steady, 'held-xmin': heldXmin }

const SANDBOX = new URL('../thread/noop.mjs', import.meta.url)

function completed(worker, count) {
  let done = 0
  return new Promise((resolve) => {
    worker.onCompleted(() => {
      done += 1
      if (done === count) resolve()
    })
  })
}

const scenarios = {
  async process(queue, options) {
    await fill(queue, options.jobs, options.payloadBytes)
    let ended
    const extra = await measured(options, async () => {
      ended = await workUntil(queue, options.concurrency, options.jobs)
    })
    await settled(queue)
    await ended.worker.stop()
    prove('process', ended.done(), options.jobs)
    prove('process', options.jobs - (await queue.waiting()), options.jobs)
    return { value: perSecond(options.jobs, ended.elapsed), extra }
  },

  async 'threads-noop'(queue, { concurrency, jobs, payloadBytes }) {
    const worker = await queue.workInSandbox(concurrency, SANDBOX)
    const warm = completed(worker, concurrency * 50)
    await fill(queue, concurrency * 50, payloadBytes)
    worker.start()
    // Its threads or processes are up now, one for each slot.
    await warm
    await worker.pause()
    await fill(queue, jobs, payloadBytes)
    const all = completed(worker, jobs)
    const startedAt = performance.now()
    worker.resume()
    await all
    const elapsed = performance.now() - startedAt
    await worker.stop()
    prove('threads-noop', jobs - (await queue.waiting()), jobs)
    return { value: perSecond(jobs, elapsed), extra: {} }
  },

  async 'enqueue-one'(queue, options) {
    await queue.add(inputOf(options.payloadBytes, -1))
    const result = await timed(options, async () => {
      for (let index = 0; index < options.jobs; index += 1) await queue.add(inputOf(options.payloadBytes, index))
    })
    prove('enqueue-one', await queue.waiting(), options.jobs + 1)
    return result
  },

  async 'enqueue-concurrent'(queue, options) {
    let next = 0
    const caller = async () => {
      while (next < options.jobs) await queue.add(inputOf(options.payloadBytes, next++))
    }
    const result = await timed(options, () => Promise.all(Array.from({ length: options.concurrency }, caller)))
    prove('enqueue-concurrent', await queue.waiting(), options.jobs)
    return result
  },

  async 'enqueue-bulk'(queue, options) {
    const result = await timed(options, () => fill(queue, options.jobs, options.payloadBytes))
    prove('enqueue-bulk', await queue.waiting(), options.jobs)
    return result
  },

  async memory(queue, options) {
    const before = await options.server.usedMemory()
    await fill(queue, options.jobs, options.payloadBytes)
    const after = await options.server.usedMemory()
    prove('memory', await queue.waiting(), options.jobs)
    return (after - before) / options.jobs
  },
}

/** A side of the benchmark that drives `queue` (a module of bench/queue) through a scenario. */
export function sideOf(module, scenario) {
  return {
    name: module.name,
    version: module.version,
    settings: module.settings,
    jobs: module.jobs,
    async run(options) {
      if (whole[scenario] !== undefined) return whole[scenario](module, options)
      const queue = await module.open(options)
      try {
        return await scenarios[scenario](queue, options)
      } finally {
        await queue.close()
      }
    },
  }
}
