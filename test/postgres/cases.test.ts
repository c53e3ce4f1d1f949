/** What users of job systems on PostgreSQL hit, by the number of the case. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { defineJob, type Holdfast, handle, isHoldfastError } from 'holdfast'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { channelOf } from '#dist/src/backends/postgres/channel.js'
import { eventsOf, rejection } from '../support/event.ts'
import { firstStarts } from '../support/first-starts.ts'
import { lookFor } from '../support/look.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { miscounts } from './dump.ts'
import { PostgresStage } from './stage.ts'
import { openBackend } from './support.ts'

const stage = new PostgresStage()
const task = defineJob<unknown>('task', { maxCrashes: 100 })
let server: PostgresServer
let url: string
let database: string

beforeAll(async () => {
  server = await PostgresServer.start({ settings: { fsync: 'off', max_connections: 200 } })
})
afterAll(() => server.stop())
beforeEach(async () => {
  database = await server.createDatabase()
  url = server.urlOf({ database })
})
afterEach(() => stage.clear())

const query = <Row>(text: string): Promise<Row[]> => server.query<Row>(text, [], { database })
const done = (hf: Holdfast, count: number): Promise<true> =>
  lookFor('all is done', async () => (await hf.stats()).counts.completed === count || undefined)

describe('C050 first starts', () => {
  it('of twenty processes at once in an empty database: all start, one made the tables, and every job runs once', async () => {
    await firstStarts(stage, url, 20)
    const applied = await query<{ times: number }>(
      'SELECT version, count(*)::integer AS times FROM holdfast.migration GROUP BY 1',
    )
    expect(applied.every(({ times }) => times === 1)).toBe(true)
  }, 60_000)
})

describe('settings of a database', () => {
  it('that make a backslash special change no value', async () => {
    await server.query(`ALTER DATABASE ${database} SET standard_conforming_strings = off`)
    const hf = await stage.client(url)
    const value = { at: new Date(1_700_000_000_000), bytes: Buffer.from([0, 92, 120, 255]), text: '\\x41' }
    const handler = handle(task, async (input, ctx) => {
      await ctx.progress(input)
      return input
    })
    const job = await hf.enqueue(task, value)
    await hf.worker({ handlers: [handler], poll: 50 })
    expect(await job.result()).toEqual(value)
    expect(await hf.get(job.id)).toMatchObject({ input: value, progress: value, attempts: 1 })
    expect((await hf.list()).jobs[0]).toMatchObject({ progress: value })
  })
})

describe('C050 a worker of the release before, beside a migration', () => {
  const record = (version: number, isBreaking: boolean) =>
    query(`INSERT INTO holdfast.migration (version, name, checksum, breaking, applied_at)
      VALUES (${version}, 'later', 'x', ${isBreaking}, now())`)

  it('that adds to the tables goes on; by one that breaks with it, it is stopped with a clear message', async () => {
    const hf = await stage.client(url)
    const worker = await hf.worker({ handlers: [handle(task, () => 1)], poll: 50 })
    const errors = eventsOf(worker, 'error')
    for (let n = 0; n < 5; n += 1) await hf.enqueue(task, n)
    await query('ALTER TABLE holdfast.job ADD COLUMN later integer NOT NULL DEFAULT 7')
    await query('ALTER TABLE holdfast.archive ADD COLUMN later integer')
    await query('CREATE INDEX later ON holdfast.job (later)')
    await record(98, false)
    for (let n = 0; n < 5; n += 1) await hf.enqueue(task, n)
    await done(hf, 10)
    await hf.maintain()
    expect(errors).toEqual([])
    await record(99, true)
    const refusal = {
      code: 'STORE_SCHEMA_TOO_NEW',
      retryable: false,
      message: expect.stringContaining('migrated to 99 (later) by a later release'),
    }
    expect(await rejection(hf.maintain())).toMatchObject(refusal)
    expect(await rejection(hf.enqueue(task, 1))).toMatchObject(refusal)
    await lookFor('the worker says so', async () => errors.length > 0 || undefined)
    expect(errors[0]).toMatchObject(refusal)
    const before = (await query('SELECT xmin::text, id FROM holdfast.job')).length
    expect(await rejection(stage.client(url))).toMatchObject(refusal)
    expect((await query('SELECT id FROM holdfast.job')).length).toBe(before)
  })
})

describe('C047 the connection that listens', () => {
  const LISTENERS =
    "SELECT pid FROM pg_stat_activity WHERE query ~ '^LISTEN|pg_listening_channels' AND datname = current_database()"
  const listeners = async (): Promise<number> =>
    (await query<{ pid: number }>(`${LISTENERS} AND pid <> pg_backend_pid()`)).length

  it('is killed and refused for a while: jobs run by the poll, and when it may it is back and wakes again', async () => {
    const proxy = await stage.proxy(server)
    const ear = server.urlOf({ database, port: proxy.port })
    const hf = await stage.client(server.urlOf({ database, parameters: { listen: ear } }))
    const other = await stage.client(url)
    const ran = new Set<string>()
    const handler = handle(task, (_, { jobId }) => {
      ran.add(jobId)
    })
    await hf.worker({ handlers: [handler], poll: 300 })
    await lookFor('it listens', async () => (await listeners()) === 1 || undefined)
    proxy.set('refuse')
    proxy.reset()
    await lookFor('nobody listens', async () => (await listeners()) === 0 || undefined)
    const { id } = await other.enqueue(task, 1)
    await lookFor('the poll has found it', async () => ran.has(id) || undefined)
    proxy.set('pass')
    await lookFor('it listens again', async () => (await listeners()) === 1 || undefined)
    const late = await other.enqueue(task, 2)
    await lookFor('it ran', async () => ran.has(late.id) || undefined)
  })
})

describe('C054 upkeep, operators and workers at the same rows', () => {
  it('no deadlock reaches anybody, and what was repeated for one is counted', async () => {
    const hf = await stage.client(url, { keepCompleted: 1, keepCancelled: 1 })
    const workers = await Promise.all([1, 2, 3, 4].map(() => stage.client(url, { keepCompleted: 1, keepCancelled: 1 })))
    const errors: unknown[] = []
    for (const each of workers) {
      const worker = await each.worker({ handlers: [handle(task, () => 1)], poll: 20, reap: 50, concurrency: 8 })
      worker.on('error', (error) => errors.push(error))
    }
    const ids: string[] = []
    let isOver = false
    const again = async (act: () => Promise<unknown>): Promise<void> => {
      while (!isOver) {
        await act()
        await nextTurn()
      }
    }
    const keys = Array.from({ length: 40 }, (_, n) => `k${n}`)
    const shuffled = (): string[] =>
      keys
        .map((key) => [Math.random(), key] as const)
        .sort(([a], [b]) => a - b)
        .map(([, key]) => key)
    const enqueue = async (): Promise<void> => {
      const requests = shuffled().map((key) => ({ job: task, input: 1, options: { idempotencyKey: key } }))
      ids.push(...(await hf.enqueueMany(requests)).map(({ id }) => id))
    }
    let rounds = 0
    const tasks = [
      again(enqueue),
      again(enqueue),
      again(() => hf.maintain()),
      again(async () => {
        await Promise.all(ids.slice(-30).map((id) => hf.cancel(id).catch(ignoreMissing)))
      }),
      again(async () => {
        await Promise.all(ids.slice(-10).map((id) => hf.replay(id).catch(ignoreMissing)))
        rounds += 1
      }),
    ]
    try {
      await lookFor('enough rounds', async () => rounds >= 30 || undefined)
    } finally {
      isOver = true
      await Promise.all(tasks)
    }
    expect(errors).toEqual([])
    const details = (await hf.health()).store.details
    const [{ deadlocks } = { deadlocks: -1 }] = await query<{ deadlocks: number }>(
      'SELECT deadlocks::integer FROM pg_stat_database WHERE datname = current_database()',
    )
    console.info(`${ids.length} enqueued, ${deadlocks} deadlocks, ${details?.repeats} repeats`)
    expect(details?.repeats).toBeTypeOf('number')
    await lookFor('all has ended', async () => {
      const { counts } = await hf.stats()
      return counts.queued + counts.running + counts.scheduled + counts.retry_wait === 0 || undefined
    })
    expect(await miscountsOf()).toEqual([])
  }, 60_000)
})

/** What was there may have gone, or may not be repeated from the state in which it is. */
function ignoreMissing(error: unknown): void {
  if (!isHoldfastError(error) || (error.category !== 'caller' && error.category !== 'conflict')) throw error
}

async function miscountsOf(): Promise<readonly string[]> {
  return miscounts(server, { database })
}

describe('C056 what a notification carries', () => {
  it('is short and comes seldom, whatever the payload, the name of the lane and the size of the batch', async () => {
    const hf = await stage.client(url)
    const lane = 'l'.repeat(128)
    const heard: string[] = []
    const ear = await server.connect({ database })
    stage.defer(() => ear.end())
    ear.on('notification', ({ payload = '' }) => heard.push(payload))
    await ear.query(`LISTEN "${channelOf('holdfast', stage.namespace)}"`)
    await hf.enqueue(task, 'x'.repeat(1_000_000), { queue: lane })
    await lookFor('a hint', async () => heard.length > 0 || undefined)
    expect(heard.length).toBe(1)
    await hf.enqueueMany(Array.from({ length: 5_000 }, (_, input) => ({ job: task, input, options: { queue: lane } })))
    await ear.query('SELECT 1')
    // One for each call of a thousand at most.
    expect(heard.length).toBeLessThanOrEqual(1 + 5)
    expect(Math.max(...heard.map((payload) => payload.length))).toBeLessThan(200)
  }, 60_000)
})

describe('C065 many lanes and slots without work', () => {
  it('are one poll: less than five queries a second for forty lanes with ten slots each', async () => {
    const proxy = await stage.proxy(server)
    const hf = await stage.client(server.urlOf({ database, port: proxy.port, parameters: { listen: 'off' } }))
    const lanes = Array.from({ length: 40 }, (_, n) => `lane-${n}`)
    await hf.worker({ handlers: [handle(task, () => 1)], lanes, concurrency: 400 })
    const startedAt = performance.now()
    const before = proxy.counters.requests
    await lookFor('ten queries', async () => proxy.counters.requests - before >= 10 || undefined)
    expect(performance.now() - startedAt).toBeGreaterThan(2_000)
  }, 30_000)
})

describe('C066 notify=off', () => {
  it('no commit tells anybody anything, and jobs are found by the poll', async () => {
    const quiet = server.urlOf({ database, parameters: { notify: 'off' } })
    const [producer, consumer] = [await stage.client(quiet), await stage.client(quiet)]
    const heard: unknown[] = []
    const ear = await server.connect({ database })
    stage.defer(() => ear.end())
    ear.on('notification', (told) => heard.push(told))
    await ear.query(`LISTEN "${channelOf('holdfast', stage.namespace)}"`)
    await consumer.worker({ handlers: [handle(task, () => 1)], poll: 100 })
    for (let n = 0; n < 20; n += 1) await producer.enqueue(task, n)
    await done(producer, 20)
    await ear.query('SELECT 1')
    expect(heard).toEqual([])
    const loud = await stage.client(url)
    await loud.enqueue(task, 'and the others do')
    await lookFor('a hint', async () => heard.length > 0 || undefined)
  })
})

describe('C063 retention', () => {
  it('ended jobs cost a claim nothing, and what is too old goes in bounded batches', async () => {
    const hf = await stage.client(url, { keepCompleted: 1 })
    await hf.enqueueMany(Array.from({ length: 10_000 }, (_, input) => ({ job: task, input })))
    const worker = await hf.worker({ handlers: [handle(task, () => 1)], concurrency: 100, poll: 50 })
    await done(hf, 10_000)
    await worker.stop()
    const client = await server.connect({ database })
    stage.defer(() => client.end())
    const pages = async (): Promise<number> => {
      const look = `SELECT seq FROM holdfast.job WHERE ns = 1 AND lane = 'default' AND state = 'queued'
        ORDER BY priority DESC, run_at, seq LIMIT 10`
      const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${look}`)
      return rows[0]['QUERY PLAN'][0].Plan['Shared Hit Blocks']
    }
    await client.query('VACUUM holdfast.job')
    await client.query('SET enable_seqscan = off')
    expect(await pages()).toBeLessThan(10)
    const store = await openBackend(url, stage.namespace)
    stage.defer(() => store.close())
    const pruned: number[] = []
    for (let more = true; more; ) {
      const reply = await store.call('store.maintain', { limit: 3_000, keepDeadMs: null })
      pruned.push(reply.pruned)
      more = reply.more
    }
    expect(Math.max(...pruned)).toBe(3_000)
    expect(pruned.reduce((sum, each) => sum + each, 0)).toBe(10_000)
    expect(await miscountsOf()).toEqual([])
  }, 60_000)
})
