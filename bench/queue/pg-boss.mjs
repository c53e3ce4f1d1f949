// pg-boss driven at its best: batches of 1,000 fetched by two loops without a pause while batches are full, settled a batch at a time.
// It has no slots of its own within a batch, so the handler keeps as many jobs in flight as the other sides have slots. It only listens
// for new jobs, and notifies, where latency is measured: both cost it throughput. A completed job stays in its table.
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { peerVersion } from '../setup.mjs'

export const name = 'pg-boss'
export const version = peerVersion('pg-boss')
export const settings =
  'batchSize 1000, localConcurrency 2, burstWhenBatchFull, pollingIntervalSeconds 0.5, insert for bulk, LISTEN/NOTIFY for latency only, ' +
  'no supervision, no schedules; completed jobs stay'

export const driver = () => pg

const QUEUE = 'noop'

export async function open({ url, scenario }) {
  const notify = scenario === 'latency'
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false, useListenNotify: notify })
  boss.on('error', (error) => console.error('pg-boss:', error))
  await boss.start()
  await boss.createQueue(QUEUE, { notify })
  return {
    add: (input) => boss.send(QUEUE, input),
    addMany: (inputs) =>
      boss.insert(
        QUEUE,
        inputs.map((data) => ({ data })),
      ),
    waiting: () => count(boss),
    work: async (concurrency, handler) => work(boss, concurrency, handler),
    close: () => boss.stop({ graceful: false }),
  }
}

async function count(boss) {
  const { rows } = await boss
    .getDb()
    .executeSql(`SELECT count(*)::int AS count FROM pgboss.job WHERE state < 'completed' AND name = '${QUEUE}'`, [])
  return rows[0].count
}

/** Runs the jobs of a batch with so many in flight. */
async function runBatch(jobs, concurrency, handler) {
  let next = 0
  const slot = async () => {
    while (next < jobs.length) await handler(jobs[next++].data)
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, jobs.length) }, slot))
}

function work(boss, concurrency, handler) {
  return {
    start: () =>
      boss.work(
        QUEUE,
        { batchSize: 1_000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
        (jobs) => runBatch(jobs, concurrency, handler),
      ),
    stop: () => boss.offWork(QUEUE, { wait: true }),
  }
}
