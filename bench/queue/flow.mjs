// A producer and a worker of this process on one queue, for scenarios that last: the producer either keeps the worker saturated or adds
// so many jobs a second. Counts what was added and done, and takes the time from before an enqueue to the start of its handler.
import { inputs } from '../scenario/shared.mjs'

const BATCH = 1_000
const LOW = 5_000
const TICK_MS = 50
const LOOK_MS = 5

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

export class Flow {
  added = 0
  done = 0
  ages = []
  #queue
  #worker
  #payloadBytes
  #producing = null
  #isProducing = false

  static async start(queue, { concurrency, payloadBytes }) {
    const flow = new Flow()
    flow.#queue = queue
    flow.#payloadBytes = payloadBytes
    flow.#worker = await queue.work(concurrency, async ({ at }) => {
      flow.done += 1
      flow.ages.push(performance.now() - at)
    })
    await flow.#worker.start()
    return flow
  }

  /** The ages at start since the last call, in milliseconds. */
  takeAges() {
    const ages = this.ages
    this.ages = []
    return ages
  }

  /** From now on there are always jobs waiting, about five thousand. */
  saturate() {
    this.#produce(async () => {
      if (this.added - this.done < LOW) await this.#add(BATCH)
      else await sleep(LOOK_MS)
    })
  }

  /** From now on `perSecond` jobs are added a second, twenty times a second; a late producer makes up for it. */
  pace(perSecond) {
    const startedAt = performance.now()
    let sent = 0
    this.#produce(async () => {
      const due = Math.floor(((performance.now() - startedAt) / 1_000) * perSecond)
      const count = Math.min(BATCH, due - sent)
      if (count <= 0) return sleep(TICK_MS)
      sent += count
      await this.#add(count)
      if (sent >= due) await sleep(TICK_MS)
    })
  }

  /** Ends when the producer adds no more. */
  async pause() {
    this.#isProducing = false
    await this.#producing
    this.#producing = null
  }

  /** Adds no more, waits until all that was added is done, and stops the worker. */
  async drain(deadlineMs) {
    await this.pause()
    const deadline = performance.now() + deadlineMs
    while (this.done < this.added && performance.now() < deadline) await sleep(LOOK_MS)
    await this.#worker.stop()
  }

  #produce(step) {
    if (this.#producing !== null) throw new Error('this flow is producing already')
    this.#isProducing = true
    this.#producing = (async () => {
      while (this.#isProducing) await step()
    })()
    // It is awaited when the flow pauses, and a run must not end before that.
    this.#producing.catch(() => {})
  }

  async #add(count) {
    const at = performance.now()
    await this.#queue.addMany(inputs(this.added, count, this.#payloadBytes).map((input) => ({ ...input, at })))
    this.added += count
  }
}
