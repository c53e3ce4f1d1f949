// The scenarios driven through a queue of bench/queue, so that every peer on Redis does the same work as our side does.
import { inputOf, inputs, measured, perSecond, prove } from '../scenario/shared.mjs'

const BATCH = 1_000

async function fill(queue, count, payloadBytes) {
  for (let from = 0; from < count; from += BATCH) {
    await queue.addMany(inputs(from, Math.min(BATCH, count - from), payloadBytes))
  }
}

/** Starts a worker and waits for its `goal`-th handler; answers how long that took from the start and from the first handler. */
async function workUntil(queue, concurrency, goal) {
  let done = 0
  let firstAt = 0
  let reached = () => {}
  const enough = new Promise((resolve) => {
    reached = resolve
  })
  const worker = await queue.work(concurrency, async () => {
    done += 1
    if (done === 1) firstAt = performance.now()
    if (done === goal) reached(performance.now())
  })
  const startedAt = performance.now()
  worker.start()
  const endedAt = await enough
  return { worker, elapsed: endedAt - startedAt, fromFirst: endedAt - firstAt, done: () => done }
}

const scenarios = {
  async process(queue, options) {
    await fill(queue, options.jobs, options.payloadBytes)
    let ended
    const extra = await measured(options, async () => {
      ended = await workUntil(queue, options.concurrency, options.jobs)
    })
    await ended.worker.stop()
    prove('process', ended.done(), options.jobs)
    prove('process', options.jobs - (await queue.waiting()), options.jobs)
    return { value: perSecond(options.jobs, ended.elapsed), extra }
  },

  async 'enqueue-one'(queue, options) {
    await queue.add(inputOf(options.payloadBytes, -1))
    const startedAt = performance.now()
    for (let index = 0; index < options.jobs; index += 1) await queue.add(inputOf(options.payloadBytes, index))
    const elapsed = performance.now() - startedAt
    prove('enqueue-one', await queue.waiting(), options.jobs + 1)
    return perSecond(options.jobs, elapsed)
  },

  async 'enqueue-concurrent'(queue, options) {
    let next = 0
    const caller = async () => {
      while (next < options.jobs) await queue.add(inputOf(options.payloadBytes, next++))
    }
    const startedAt = performance.now()
    await Promise.all(Array.from({ length: options.concurrency }, caller))
    const elapsed = performance.now() - startedAt
    prove('enqueue-concurrent', await queue.waiting(), options.jobs)
    return perSecond(options.jobs, elapsed)
  },

  async 'enqueue-bulk'(queue, options) {
    const startedAt = performance.now()
    await fill(queue, options.jobs, options.payloadBytes)
    const elapsed = performance.now() - startedAt
    prove('enqueue-bulk', await queue.waiting(), options.jobs)
    return perSecond(options.jobs, elapsed)
  },

  async memory(queue, options) {
    const before = await options.server.usedMemory()
    await fill(queue, options.jobs, options.payloadBytes)
    const after = await options.server.usedMemory()
    prove('memory', await queue.waiting(), options.jobs)
    return (after - before) / options.jobs
  },
}

export const queueScenarios = Object.keys(scenarios)

/** A side of the benchmark that drives `queue` (a module of bench/queue) through a scenario. */
export function sideOf(module, scenario) {
  return {
    name: module.name,
    version: module.version,
    settings: module.settings,
    async run(options) {
      const queue = await module.open(options)
      try {
        return await scenarios[scenario](queue, options)
      } finally {
        await queue.close()
      }
    },
  }
}
