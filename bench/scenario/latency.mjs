// An idle worker: time from the start of one enqueue to the start of its handler, one job at a time; the median of a run.
// On a server the producer is another process than the worker.
import { handle } from '../holdfast.mjs'
import * as holdfast from '../queue/holdfast.mjs'
import { latency } from '../queue/latency.mjs'
import { inputOf, noop, open } from './shared.mjs'

export const unit = { name: 'ms p50', higherIsBetter: false }
export const defaults = { concurrency: 10, jobs: { memory: 300, sqlite: 300, redis: 1_000, postgres: 1_000 } }
export const extra = { p99: { name: 'ms p99', higherIsBetter: false } }

export function run(options) {
  return options.server !== undefined ? latency(holdfast, options) : inOneProcess(options)
}

async function inOneProcess(options) {
  const hf = await open(options)
  let started = () => {}
  const worker = await hf.worker({
    handlers: [handle(noop, async () => started(performance.now()))],
    concurrency: options.concurrency,
  })
  const times = []
  for (let index = 0; index < options.jobs; index += 1) {
    const at = new Promise((resolve) => {
      started = resolve
    })
    const from = performance.now()
    await hf.enqueue(noop, inputOf(options.payloadBytes, index))
    times.push((await at) - from)
    await new Promise((resolve) => setTimeout(resolve, 2 + (index % 5)))
  }
  await worker.stop()
  await hf.close()
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)]
}
