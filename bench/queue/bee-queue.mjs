// Bee-Queue driven at its best, as its README advises:
// - no events at all (`getEvents`, `sendEvents`): no PUBLISH a job and no subscription;
// - `storeJobs: false`: the producer keeps no map of its jobs;
// - `removeOnSuccess`, `removeOnFailure`: a finished job is deleted with the command that settles it;
// - `isWorker: false` for the producer: no blocking connection; `saveAll` for bulk, which is one pipeline.
// Its own node_redis 3 is used: it does not recognise clients of ioredis 5 and 6 and would go to its default address instead.
// Tried: 2 or 4 workers in the process sharing the slots (slower), rarer checks for stalled jobs (the same),
// single saves at once in place of `saveAll` (no faster).
import Queue from 'bee-queue'
import { peerVersion } from '../setup.mjs'

export const name = 'bee-queue'
export const version = peerVersion('bee-queue')
export const settings =
  'its own node_redis 3, getEvents, sendEvents and storeJobs false, removeOnSuccess, removeOnFailure, saveAll for bulk, one worker with all slots'

export async function open({ url }) {
  const { hostname, port } = new URL(url)
  const common = {
    redis: { host: hostname, port: Number(port) },
    getEvents: false,
    sendEvents: false,
    storeJobs: false,
    removeOnSuccess: true,
    removeOnFailure: true,
  }
  const queue = new Queue('noop', { ...common, isWorker: false })
  await queue.ready()
  return {
    add: (input) => queue.createJob(input).save(),
    async addMany(inputs) {
      const errors = await queue.saveAll(inputs.map((input) => queue.createJob(input)))
      if (errors.size > 0) throw errors.values().next().value
    },
    waiting: async () => (await queue.checkHealth()).waiting,
    work: (concurrency, handler) => work(common, concurrency, handler),
    close: () => queue.close(),
  }
}

async function work(common, concurrency, handler) {
  const worker = new Queue('noop', common)
  worker.on('error', (error) => console.error('bee-queue:', error))
  await worker.ready()
  return {
    start() {
      worker.process(concurrency, (job) => handler(job.data))
    },
    stop: () => worker.close(),
  }
}
