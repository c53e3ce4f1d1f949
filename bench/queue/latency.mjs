// An idle worker here, a producer in another process: time from the start of one enqueue to the start of its handler.
import { machineTime, prove } from '../scenario/shared.mjs'
import { Child } from './processes.mjs'

const WARM_UP = 50

export async function latency(module, options) {
  const queue = await module.open(options)
  let started = () => {}
  const worker = await queue.work(options.concurrency, async ({ at }) => {
    started(machineTime() - at)
  })
  await worker.start()
  const producer = await Child.start('producer', module.name, options)
  const times = []
  for (let index = 0; index < options.jobs + WARM_UP; index += 1) {
    const age = new Promise((resolve) => {
      started = resolve
    })
    producer.send({ type: 'add', index, wait: 2 + (index % 5) })
    times.push(await Promise.race([age, producer.failed]))
  }
  await producer.stop()
  await worker.stop()
  prove('latency', times.length - (await queue.waiting()), options.jobs + WARM_UP)
  await queue.close()
  const sorted = times.slice(WARM_UP).sort((a, b) => a - b)
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  return { value: at(0.5), extra: { p99: at(0.99) } }
}
