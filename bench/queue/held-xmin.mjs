// A transaction of REPEATABLE READ stays open while jobs flow, so that nothing that dies can be vacuumed: the first 20 s of a saturated
// worker beside 20 s after so many rows have died (--dead). The worker has nothing to wait for in either.
import pg from 'pg'
import { prove } from '../scenario/shared.mjs'
import { quantile } from '../summary.mjs'
import { Flow } from './flow.mjs'
import { ClaimTimes } from './statement-times.mjs'

const WARM_UP_MS = 3_000
const LOOK_MS = 1_000
const DRAIN_MS = 120_000

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function holdSnapshot(url) {
  const client = new pg.Client({ connectionString: url, application_name: 'a long report' })
  await client.connect()
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await client.query('SELECT count(*) FROM pg_class')
  return client
}

async function sumOf(server, name) {
  const tables = await server.tables()
  return tables.reduce((sum, table) => sum + table[name], 0)
}

const deadRows = (server) => sumOf(server, 'dead')

async function windowOf(ms, { flow, claims, server }) {
  claims.take()
  flow.takeAges()
  const before = { done: flow.done, at: performance.now(), dead: await deadRows(server) }
  await sleep(ms)
  const seconds = (performance.now() - before.at) / 1_000
  const times = claims.take()
  const tables = await server.tables()
  return {
    jobsPerSecond: (flow.done - before.done) / seconds,
    claims: times.length,
    claimP50Ms: quantile(times, 0.5),
    claimP95Ms: quantile(times, 0.95),
    claimP99Ms: quantile(times, 0.99),
    deadBefore: before.dead,
    deadAfter: await deadRows(server),
    tables: tables.filter(({ tableBytes, live, dead }) => tableBytes + live + dead > 0),
  }
}

export async function heldXmin(module, options) {
  const claims = new ClaimTimes(await module.driver())
  const queue = await module.open(options)
  const flow = await Flow.start(queue, options)
  flow.saturate()
  await sleep(WARM_UP_MS)
  const holder = await holdSnapshot(options.url)
  const heldAt = performance.now()
  const diedBefore = await sumOf(options.server, 'died')
  const parts = { flow, claims, server: options.server }
  const first = await windowOf(options.seconds * 1_000, parts)
  // Some queues rid themselves of what is dead.
  while ((await sumOf(options.server, 'died')) - diedBefore < options.dead) await sleep(LOOK_MS)
  const last = await windowOf(options.seconds * 1_000, parts)
  const heldSeconds = (performance.now() - heldAt) / 1_000
  await holder.query('COMMIT')
  await holder.end()
  await flow.drain(DRAIN_MS)
  prove('held-xmin', flow.done, flow.added)
  claims.stop()
  await queue.close()
  return {
    value: last.jobsPerSecond / first.jobsPerSecond,
    extra: {
      claimP99OfFirst: last.claimP99Ms / first.claimP99Ms,
      claimP95OfFirst: last.claimP95Ms / first.claimP95Ms,
      firstRate: first.jobsPerSecond,
      lastRate: last.jobsPerSecond,
      dead: last.deadAfter,
      deadPerJob: last.deadAfter / flow.done,
      heldSeconds,
    },
    detail: { first, last },
  }
}
