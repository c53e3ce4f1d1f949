// plainjob behind the calls that every queue here has. A loop of it runs one job at a time and lets nothing else of the process run while
// there are jobs, so more loops than one change little; there are as many as the other side has slots. It writes a line of log for each
// step of a job unless it is given a logger.
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { better, defineQueue, defineWorker, JobStatus } from 'plainjob'
import { peerVersion } from '../setup.mjs'

export const version = peerVersion('plainjob')

const TYPE = 'noop'
const POLL_MS = 10
const silent = { error: console.error, warn() {}, info() {}, debug() {} }

export function plainjob(synchronous) {
  return async ({ folder }) => {
    const connection = better(new Database(join(folder, 'plainjob.db')))
    const queue = defineQueue({ connection, logger: silent })
    connection.pragma(`synchronous = ${synchronous}`)
    return {
      add: async (input) => queue.add(TYPE, input),
      addMany: async (inputs) => queue.addMany(TYPE, inputs),
      waiting: async () =>
        queue.countJobs({ status: JobStatus.Pending }) + queue.countJobs({ status: JobStatus.Processing }),
      work: async (concurrency, handler) => work(queue, concurrency, handler),
      close: async () => queue.close(),
    }
  }
}

function work(queue, concurrency, handler) {
  const settings = { queue, logger: silent, pollIntervall: POLL_MS }
  const workers = Array.from({ length: concurrency }, () =>
    defineWorker(TYPE, (job) => handler(JSON.parse(job.data)), settings),
  )
  let ended = []
  return {
    async start() {
      ended = workers.map((worker) => worker.start())
    },
    async stop() {
      for (const worker of workers) await worker.stop()
      await Promise.all(ended)
    },
  }
}
