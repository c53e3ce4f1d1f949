/** The archive has a partition for each day to come; one whose day is over goes with its records, their keys and their counts. */
import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { ServerClock } from '../support/clock/server-clock.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { claimOne, put, settle } from '../support/protocol.ts'
import { openBackend } from './support.ts'

const DAY_MS = 86_400_000
const START_MS = 20_000 * DAY_MS + DAY_MS / 2

let clock: ServerClock
let server: PostgresServer
let url: string
let backend: PostgresBackend

beforeAll(async () => {
  clock = await ServerClock.make()
  server = await PostgresServer.start({ env: clock.env })
})
beforeEach(async () => {
  clock.freeze(START_MS)
  url = server.urlOf({ database: await server.createDatabase() })
  backend = await openBackend(url, 'test')
})
afterEach(() => backend.close())
afterAll(async () => {
  await server.stop()
  await clock.remove()
})

const sql = async (text: string): Promise<readonly Record<string, unknown>[]> => {
  const client = await server.connect({ connectionString: url })
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

const days = async (): Promise<readonly number[]> =>
  (await sql("SELECT relname FROM pg_class WHERE relname ~ '^archive_d[0-9]+$' AND relkind = 'r'"))
    .map(({ relname }) => Number(String(relname).slice('archive_d'.length)))
    .sort((a, b) => a - b)

const maintain = () => backend.call('store.maintain', { limit: 1000, keepDeadMs: null })

async function complete(id: string, keepMs: number | null, key: string | null = null): Promise<void> {
  await put(backend, { id, lane: 'mail', idempotencyKey: key })
  const job = await claimOne(backend, { lanes: ['mail'] })
  const ending = { keepMs, durationMs: 1, output: null, keepOutputMs: null }
  expect(await settle(backend, { kind: 'complete', id: job.id, token: job.token, ...ending })).toBe('applied')
}

const partitionOf = async (id: string): Promise<unknown> =>
  (
    await sql(`SELECT relname AS name FROM holdfast.archive JOIN pg_class ON oid = archive.tableoid WHERE id = '${id}'`)
  )[0]?.name

const completed = async (): Promise<number | undefined> =>
  (await backend.call('queue.stats', { lanes: ['mail'] })).lanes[0]?.counts.completed

it('days ahead have partitions from the first opening on, and a record goes to the day on which it may go', async () => {
  expect(await days()).toEqual(Array.from({ length: 10 }, (_, ahead) => 20_000 + ahead))
  await complete('mail/week', 7 * DAY_MS)
  await complete('mail/hour', 3_600_000)
  await complete('mail/ever', null)
  expect(await partitionOf('mail/week')).toBe('archive_d20007')
  expect(await partitionOf('mail/hour')).toBe('archive_rest')
  expect(await partitionOf('mail/ever')).toBe('archive_rest')
})

it('a day that is over goes with its records, keys and counts, and new days are made', async () => {
  await complete('mail/week', 7 * DAY_MS, 'k')
  await complete('mail/ever', null, 'e')
  clock.freeze(START_MS + 7 * DAY_MS)
  expect((await maintain()).pruned).toBe(0)
  expect((await backend.call('job.get', { ids: ['mail/week'] })).jobs[0]).not.toBeNull()
  clock.freeze(START_MS + 8 * DAY_MS)
  expect((await maintain()).pruned).toBe(1)
  expect((await backend.call('job.get', { ids: ['mail/week', 'mail/ever'] })).jobs.map((job) => job?.id)).toEqual([
    undefined,
    'mail/ever',
  ])
  expect(await completed()).toBe(1)
  expect(await sql('SELECT key FROM holdfast.key')).toEqual([{ key: 'e' }])
  expect(await days()).toEqual(Array.from({ length: 10 }, (_, ahead) => 20_008 + ahead))
})

it('whoever keeps for longer gets a partition from the next day on', async () => {
  await complete('mail/month', 30 * DAY_MS)
  expect(await partitionOf('mail/month')).toBe('archive_rest')
  await maintain()
  clock.freeze(START_MS + DAY_MS)
  await complete('mail/later', 30 * DAY_MS)
  expect(await partitionOf('mail/later')).toBe('archive_d20031')
})

it('counters are folded and stay what a recount finds', async () => {
  for (let each = 0; each < 5; each += 1) await complete(`mail/${each}`, 7 * DAY_MS)
  await complete('mail/short', 1000)
  expect(await sql('SELECT count(*)::integer AS rows FROM holdfast.counter')).toEqual([{ rows: 6 }])
  clock.freeze(START_MS + 2000)
  expect((await maintain()).pruned).toBe(1)
  expect(await sql('SELECT jobs::integer FROM holdfast.counter')).toEqual([{ jobs: 5 }])
  expect(await sql('SELECT count(*)::integer AS jobs FROM holdfast.archive')).toEqual([{ jobs: 5 }])
  expect(await completed()).toBe(5)
})

it('a role that does not own the tables keeps what it ends, and goes on when there is no day for it', async () => {
  const role = `app_${randomBytes(4).toString('hex')}`
  await sql(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA holdfast TO ${role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO ${role}`)
  await backend.close()
  const target = new URL(url)
  target.username = role
  backend = await openBackend(`${target.href}?migrate=off`, 'test')
  clock.freeze(START_MS + 30 * DAY_MS)
  await complete('mail/late', 7 * DAY_MS)
  expect(await partitionOf('mail/late')).toBe('archive_rest')
  expect((await maintain()).more).toBe(false)
  expect(await days()).toHaveLength(10)
})

it('lines of a log go with the record of their job, and stray ones are swept', async () => {
  const say = async (id: string, token: string) =>
    backend.call('job.note', {
      notes: [{ id, token, progress: null, lines: [{ number: 1, text: '{}' }], keepLines: 9 }],
    })
  await put(backend, { id: 'mail/1', lane: 'mail' })
  await put(backend, { id: 'mail/2', lane: 'mail' })
  const ended = await claimOne(backend, { lanes: ['mail'] })
  const live = await claimOne(backend, { lanes: ['mail'] })
  for (const { id, token } of [ended, live]) await say(id, token)
  const ending = { keepMs: 3 * DAY_MS, durationMs: 1, output: null, keepOutputMs: null }
  await settle(backend, { kind: 'complete', id: ended.id, token: ended.token, ...ending })
  const linesOf = async (id: string) =>
    (await backend.call('job.logs', { queries: [{ id, after: null, limit: 9 }] })).logs[0]?.length
  const rows = async () => (await sql('SELECT count(*)::integer AS count FROM holdfast.job_log'))[0]?.count
  expect([await linesOf(ended.id), await linesOf(live.id), await rows()]).toEqual([1, 1, 1])
  await sql("INSERT INTO holdfast.job_log SELECT max(seq) + 1, 1, 1, '{}' FROM holdfast.job")
  await maintain()
  expect([await linesOf(ended.id), await linesOf(live.id), await rows()]).toEqual([1, 1, 1])
  clock.freeze(START_MS + 4 * DAY_MS)
  await maintain()
  expect([await linesOf(ended.id), await linesOf(live.id)]).toEqual([0, 1])
})
