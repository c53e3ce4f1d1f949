/** A day of the archive that is over goes bit by bit, and nobody waits for it; record, key and count are always of one mind. */
import type { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { OldDays, type OldDaysTerms } from '#dist/src/backends/postgres/old-days.js'
import { PostgresServer } from '../support/postgres-server.ts'
import { put } from '../support/protocol.ts'
import { miscounts } from './dump.ts'
import { open, type Warning } from './opening.ts'
import { openBackend } from './support.ts'

const DAY = 100
const TABLE = `holdfast.archive_d${DAY}`
const KEYED = 30_000
const UNKEYED = 3_000

let server: PostgresServer
let store: PostgresBackend
let admin: Client
let warnings: Warning[]

beforeAll(async () => {
  server = await PostgresServer.start({ settings: { fsync: 'off', autovacuum: 'off' } })
})
afterAll(() => server.stop())
beforeEach(async () => {
  await server.query('DROP SCHEMA IF EXISTS holdfast CASCADE')
  store = await openBackend(server.url, 'test')
  admin = await server.connect()
  warnings = []
  await admin.query(`CREATE TABLE ${TABLE} PARTITION OF holdfast.archive FOR VALUES FROM (${DAY}) TO (${DAY + 1})`)
})
afterEach(async () => {
  await Promise.all([store.close(), admin.end()])
})

/** Those with a key are `mail/k1`, `mail/k2` and so on, with the keys `k1`, `k2`. */
async function fill(keyed: number, unkeyed: number): Promise<void> {
  await admin.query(`INSERT INTO holdfast.archive (seq, created_at, updated_at, run_at, lease_epoch, finished_at, keep_until, expiry_day,
      ns, priority, attempts, max_attempts, crashes, max_crashes, max_attempts_fixed, cancel_requested, id, lane, state, type, idempotency_key)
    SELECT n, 1, 1, 1, 1, 1, ${DAY * 86_400_000}, ${DAY}, 1, 0, 1, 1, 0, 1, true, false, 'mail/' || name, 'mail', 'completed', 'task',
      CASE WHEN n <= ${keyed} THEN name END
    FROM generate_series(1, ${keyed + unkeyed}) AS n, LATERAL (SELECT CASE WHEN n <= ${keyed} THEN 'k' ELSE 'u' END || n AS name) AS named;
    INSERT INTO holdfast.key SELECT ns, lane, idempotency_key, id FROM ${TABLE} WHERE idempotency_key IS NOT NULL;
    INSERT INTO holdfast.counter VALUES (1, 'mail', 'completed', ${keyed + unkeyed})`)
}

/** By a clock that moves on by a millisecond with each look at it: `spendMs` is so many batches. */
async function oldDays(terms: Partial<OldDaysTerms> = {}, user?: string) {
  const link = await open(user === undefined ? server.url : server.urlOf({ user }))
  let now = 0
  const monotonic = () => {
    now += 1
    return now
  }
  const warn = ({ code }: Readonly<Record<string, unknown>>, message: string) => warnings.push({ code, message })
  const days = new OldDays({ link, schema: 'holdfast', clock: { monotonic }, warn }, terms)
  return { run: () => days.run([DAY], user === undefined) }
}

const number = async (text: string): Promise<number> =>
  Number((await admin.query({ text, rowMode: 'array' })).rows[0]?.[0])
const records = () => number(`SELECT count(*) FROM ${TABLE}`)
const keyed = () => number(`SELECT count(*) FROM ${TABLE} WHERE idempotency_key IS NOT NULL`)
const keys = () => number('SELECT count(*) FROM holdfast.key')
const isThere = async () => (await number(`SELECT count(*) FROM pg_class WHERE oid = to_regclass('${TABLE}')`)) === 1
const completed = async () => (await store.call('queue.stats', { lanes: ['mail'] })).lanes[0]?.counts.completed ?? 0

async function untilGone(run: () => Promise<number>): Promise<number> {
  for (let runs = 1; runs <= 30; runs += 1) {
    await run()
    if (!(await isThere())) return runs
  }
  throw new Error('the day is still there')
}

it('goes in batches, as many as fit into a run; what went has freed its keys and what is left has not', async () => {
  await fill(KEYED, UNKEYED)
  const { run } = await oldDays({ batch: 1_000, spendMs: 10 })
  const went = await run()
  expect(went).toBeGreaterThan(0)
  expect(went).toBeLessThanOrEqual(10_000)
  expect([await keyed(), await keys()]).toEqual([KEYED - went, KEYED - went])
  expect([await records(), await completed()]).toEqual([KEYED + UNKEYED - went, KEYED + UNKEYED - went])
  expect(await miscounts(server)).toEqual([])
  const [{ left }] = (await admin.query(`SELECT min(id) AS left FROM ${TABLE} WHERE idempotency_key IS NOT NULL`)).rows
  const key = (id: string) => ({ id, lane: 'mail', idempotencyKey: id.slice('mail/'.length) })
  await put(store, key('mail/k1'))
  expect((await store.call('job.get', { ids: ['mail/k1'] })).jobs[0]?.state).toBe('queued')
  const held = key(left)
  expect(
    await number(`SELECT count(*) FROM holdfast.key WHERE key = '${held.idempotencyKey}' AND id = '${left}'`),
  ).toBe(1)
  expect(await untilGone(run)).toBeGreaterThan(1)
  expect([await keys(), await completed()]).toEqual([1, 0])
  expect(await miscounts(server)).toEqual([])
}, 60_000)

it('a session that has read the day and stays in its transaction neither stops what has a key nor waits; when it ends, the day goes', async () => {
  await fill(KEYED, UNKEYED)
  const reader = await server.connect({ lock_timeout: 50 })
  await reader.query('BEGIN; SELECT FROM holdfast.archive LIMIT 1')
  const { run } = await oldDays()
  let isOver = false
  const emptied = run().finally(() => {
    isOver = true
  })
  while (!isOver) await reader.query(`SELECT FROM ${TABLE} WHERE id = 'mail/k1'`)
  await emptied
  while ((await keyed()) > 0) await run()
  await run()
  expect([await keys(), await isThere()]).toEqual([0, true])
  expect([await records(), await completed()]).toEqual([UNKEYED, UNKEYED])
  expect(await miscounts(server)).toEqual([])
  await reader.end()
  await untilGone(run)
  expect([await completed(), await miscounts(server)]).toEqual([0, []])
}, 60_000)

it('is counted while others read it, and by one at a time', async () => {
  await fill(0, UNKEYED)
  const { run } = await oldDays()
  // In the way of the drop alone: there is nothing with a key.
  await admin.query(`BEGIN; SELECT FROM ${TABLE} LIMIT 1`)
  expect(await run()).toBe(0)
  // The count waits with what it has locked.
  await admin.query('ROLLBACK; BEGIN; LOCK TABLE holdfast.counter IN EXCLUSIVE MODE')
  const reader = await server.connect({ lock_timeout: 1 })
  let isOver = false
  const counting = run().finally(() => {
    isOver = true
  })
  while (!isOver) expect((await reader.query(`SELECT FROM ${TABLE} LIMIT 1`)).rowCount).toBe(1)
  expect(await counting).toBe(0)
  // Another upkeep that counts.
  await admin.query(`ROLLBACK; BEGIN; LOCK TABLE ${TABLE} IN SHARE ROW EXCLUSIVE MODE`)
  expect(await run()).toBe(0)
  await admin.query('ROLLBACK')
  expect(await run()).toBe(UNKEYED)
  await reader.end()
})

it('a record that somebody has locked is passed over, keeps its key, and goes later', async () => {
  await fill(50, 50)
  await admin.query(`BEGIN; SELECT FROM ${TABLE} WHERE id = 'mail/k7' FOR UPDATE`)
  const { run } = await oldDays()
  expect(await run()).toBe(49)
  expect(await server.query('SELECT key FROM holdfast.key')).toEqual([{ key: 'k7' }])
  await admin.query('ROLLBACK')
  await untilGone(run)
  expect([await keys(), await completed()]).toEqual([0, 0])
})

it('of which there is too much to be counted goes in batches, whatever has a key', async () => {
  await fill(1_000, KEYED)
  const { run } = await oldDays({ countMs: 1 })
  for (let runs = 0; runs < 5 && (await isThere()) && (await records()) > 0; runs += 1) {
    await run()
    expect(await miscounts(server)).toEqual([])
  }
  expect(await completed()).toBe(0)
  await untilGone((await oldDays()).run)
  expect([await keys(), await completed(), await miscounts(server)]).toEqual([0, 0, []])
}, 60_000)

it('by a role that does not own the tables: what has a key goes, by its rights on the archive alone', async () => {
  await fill(500, 100)
  await admin.query('CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA holdfast TO app')
  await admin.query('GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast.archive, holdfast.key, holdfast.counter TO app')
  const { run } = await oldDays({}, 'app')
  expect(await run()).toBe(500)
  expect(await run()).toBe(0)
  expect([await keys(), await records(), await isThere()]).toEqual([0, 100, true])
})

it('that could not be removed in ten runs is told once', async () => {
  await fill(20, 20)
  const reader = await server.connect()
  await reader.query(`BEGIN; SELECT FROM ${TABLE} LIMIT 1`)
  const { run } = await oldDays()
  for (let runs = 0; runs < 10; runs += 1) await run()
  expect(warnings).toEqual([])
  for (let runs = 0; runs < 11; runs += 1) await run()
  expect(warnings).toEqual([
    { code: 'OLD_DAY', message: expect.stringMatching(/archive_d100.*10 runs.*in a transaction/) },
  ])
  await reader.end()
  await untilGone(run)
}, 60_000)

it('upkeep runs once a maintenance, not with each of its batches', async () => {
  await fill(0, 10)
  await admin.query('UPDATE holdfast.archive SET keep_until = 1, expiry_day = 0')
  const { more } = await store.call('store.maintain', { limit: 5, keepDeadMs: null })
  expect([more, await isThere()]).toEqual([true, true])
  await store.call('store.maintain', { limit: 6, keepDeadMs: null })
  expect([await isThere(), await completed()]).toEqual([false, 0])
})
