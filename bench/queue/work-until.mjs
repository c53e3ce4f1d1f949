// Fills a queue and runs a worker of this process up to a number of jobs, or until none is left.
import { inputs } from '../scenario/shared.mjs'

const BATCH = 1_000
const SETTLE_MS = 5_000

export async function fill(queue, count, payloadBytes) {
  for (let from = 0; from < count; from += BATCH) {
    await queue.addMany(inputs(from, Math.min(BATCH, count - from), payloadBytes))
  }
}

/** Starts a worker and waits for its `goal`-th handler; answers how long that took from the start and from the first handler. */
export async function workUntil(queue, concurrency, goal) {
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
  await worker.start()
  const endedAt = await enough
  return { worker, elapsed: endedAt - startedAt, fromFirst: endedAt - firstAt, done: () => done }
}

/** The last handler has run; a worker that stops at once may give its job back in place of completing it. */
export async function settled(queue) {
  const deadline = performance.now() + SETTLE_MS
  while ((await queue.waiting()) > 0 && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
