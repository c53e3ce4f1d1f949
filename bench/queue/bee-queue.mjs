// Bee-Queue driven at its best.
import Queue from 'bee-queue'
import { Redis } from 'ioredis'
import { peerVersion } from '../setup.mjs'

export const name = 'bee-queue'
export const version = peerVersion('bee-queue')
export const settings = 'x'

export async function open({ url }) {
  const { hostname, port } = new URL(url)
  const connection = () =>
    process.env.IOR
      ? new Redis(url, { enableAutoPipelining: !!process.env.AP })
      : { host: hostname, port: Number(port) }
  const common = {
    getEvents: false,
    sendEvents: false,
    storeJobs: false,
    removeOnSuccess: true,
    removeOnFailure: true,
    activateDelayedJobs: false,
    quitCommandClient: true,
  }
  const queue = new Queue('noop', { ...common, redis: connection(), isWorker: false })
  await queue.ready()
  return {
    add: (input) => queue.createJob(input).save(),
    async addMany(inputs) {
      const errors = await queue.saveAll(inputs.map((input) => queue.createJob(input)))
      if (errors.size > 0) throw errors.values().next().value
    },
    waiting: async () => (await queue.checkHealth()).waiting,
    async work(concurrency, handler) {
      const worker = new Queue('noop', { ...common, redis: connection(), isWorker: true })
      await worker.ready()
      return {
        start() {
          worker.process(concurrency, (job) => handler(job.data))
        },
        stop: () => worker.close(),
      }
    },
    close: () => queue.close(),
  }
}
