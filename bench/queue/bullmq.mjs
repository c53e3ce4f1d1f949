// BullMQ driven at its best. Tried in turn on one server, at 100, 10 and 1 slots and for each way to enqueue:
// - node-redis 5 as its client in place of ioredis 5 or 6 or node-redis 6: a third less Node CPU a job and more jobs a second, so it is used;
// - `removeOnComplete` at the worker in place of in every job: the same speed, and smaller jobs, so it is used;
// - auto-pipelining of ioredis: slower everywhere; ioredis 5 in place of 6: the same;
// - 2 or 4 workers in the process sharing the slots, no lock renewal and no check for stalled jobs, a shorter event stream: the same;
// - 1,000 single adds at once in place of `addBulk`: no faster.
// `drainDelay` (how long an idle worker blocks) only matters to idle workers; the default of 5 s is the best of those that
// keep the commands of idle workers few. There are no QueueEvents.
// In `threads-noop` the processor is a file that BullMQ runs in its sandbox, in worker threads (`useWorkerThreads`) or, as
// `bullmq-processes`, in child processes; one for each slot either way, all made before the clock starts.
import { Queue, Worker } from 'bullmq'
import { createClient } from 'redis'
import { peerVersion } from '../setup.mjs'

export const name = 'bullmq'
export const version = peerVersion('bullmq')
export const settings =
  `node-redis ${peerVersion('redis')} as client, removeOnComplete and removeOnFail count 0 at the worker, skipVersionCheck, ` +
  'addBulk for bulk, no QueueEvents, one worker with all slots, defaults for the rest'

export async function open({ url }) {
  const clients = []
  // BullMQ leaves a client that it was given open, and makes its blocking connection from it.
  const connection = () => {
    const client = createClient({ url })
    clients.push(client)
    return client
  }
  const queue = new Queue('noop', { connection: connection(), skipVersionCheck: true })
  await queue.waitUntilReady()
  return {
    add: (input) => queue.add('noop', input),
    addMany: (inputs) => queue.addBulk(inputs.map((data) => ({ name: 'noop', data }))),
    waiting: () => queue.getWaitingCount(),
    work: (concurrency, handler) => work(connection(), concurrency, handler),
    workInSandbox: (concurrency, file, useWorkerThreads = true) =>
      work(connection(), concurrency, file, { useWorkerThreads }),
    async close() {
      await queue.close()
      for (const client of clients) if (client.isOpen) client.destroy()
    },
  }
}

async function work(connection, concurrency, handler, sandbox = {}) {
  const processor = handler instanceof URL ? handler : (job) => handler(job.data)
  const worker = new Worker('noop', processor, {
    ...sandbox,
    connection,
    concurrency,
    autorun: false,
    skipVersionCheck: true,
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
  })
  worker.on('error', (error) => console.error('bullmq:', error))
  await worker.waitUntilReady()
  return {
    start() {
      // `run` ends when the worker closes; its errors are emitted.
      worker.run().catch((error) => worker.emit('error', error))
    },
    onCompleted: (listener) => worker.on('completed', listener),
    pause: () => worker.pause(),
    resume: () => worker.resume(),
    stop: () => worker.close(),
  }
}
