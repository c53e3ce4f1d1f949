// BullMQ driven at its best: what each setting does is said beside it.
import { Queue, Worker } from 'bullmq'
import { peerVersion } from '../setup.mjs'

export const name = 'bullmq'
export const version = peerVersion('bullmq')
export const settings = 'x'

export async function open({ url }) {
  const { hostname, port } = new URL(url)
  const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null }
  if (process.env.AP) connection.enableAutoPipelining = true
  const joblevel = process.env.JOBLEVEL
  const queue = new Queue('noop', {
    connection,
    skipVersionCheck: true,
    defaultJobOptions: joblevel ? { removeOnComplete: true, removeOnFail: true } : {},
    ...(process.env.MAXLEN ? { streams: { events: { maxLen: Number(process.env.MAXLEN) } } } : {}),
  })
  await queue.waitUntilReady()
  return {
    add: (input) => queue.add('noop', input),
    addMany: (inputs) => queue.addBulk(inputs.map((data) => ({ name: 'noop', data }))),
    waiting: () => queue.getWaitingCount(),
    async work(concurrency, handler) {
      const worker = new Worker('noop', (job) => handler(job.data), {
        connection,
        concurrency,
        autorun: false,
        skipVersionCheck: true,
        ...(joblevel ? {} : { removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } }),
      })
      await worker.waitUntilReady()
      return {
        start() {
          worker.run().catch((error) => worker.emit('error', error))
        },
        stop: () => worker.close(),
      }
    },
    close: () => queue.close(),
  }
}
