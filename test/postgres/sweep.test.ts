/**
 * F38 C062: another session holds a snapshot, so that no row that died since can be vacuumed. Claims walk over them, and that is
 * measured in pages that they read; the sweep makes an end of it and changes nothing else.
 */
import type { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import type { PostgresLink } from '#dist/src/backends/postgres/link.js'
import { sessionSettings } from '#dist/src/backends/postgres/own-pool.js'
import { Statements, valuesFor } from '#dist/src/backends/postgres/statement.js'
import { Sweep } from '#dist/src/backends/postgres/sweep.js'
import { LIMITS } from '#dist/src/backends/postgres/wiring.js'
import { claim, job } from '../sqlite/support.ts'
import { lookFor } from '../support/look.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { dumpTables, miscounts } from './dump.ts'
import { open } from './opening.ts'
import { openBackend } from './support.ts'

const BATCH = 1_000
const BATCHES = 12

let server: PostgresServer
let store: PostgresBackend
let link: PostgresLink
let holder: Client
let admin: Client
let made = 0

beforeAll(async () => {
  server = await PostgresServer.start({ settings: { fsync: 'off', autovacuum: 'off' } })
})
afterAll(() => server.stop())
beforeEach(async () => {
  await server.query('DROP SCHEMA IF EXISTS holdfast CASCADE')
  // Not told of slow claims, and so nothing is swept but by hand.
  store = await openBackend(`${server.url}?listen=off`, 'test', { clock: { now: Date.now, monotonic: () => 0 } })
  link = await open(server.url)
  admin = await server.connect(sessionSettings(LIMITS))
  holder = await server.connect()
  await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class')
})
afterEach(async () => {
  await Promise.all([store.close(), holder.end(), admin.end()])
})

const add = (count: number) =>
  store.call('job.enqueue', {
    jobs: Array.from({ length: count }, () => {
      made += 1
      return job(String(made), { payload: `"${'x'.repeat(100)}"` })
    }),
  })

async function take(limit: number) {
  const nonce = `n${made}`
  const { grants } = await store.call('job.turn', { settlements: [], claims: [claim({ limit, nonce })], resend: false })
  return grants[0]?.jobs ?? []
}

const ENDING = { kind: 'complete', durationMs: 1, keepMs: 0, output: null, keepOutputMs: null } as const

/** Jobs that come and go: each leaves its rows. */
async function churn(): Promise<void> {
  for (let n = 0; n < BATCHES; n += 1) {
    await add(BATCH)
    const settlements = (await take(BATCH)).map(({ id, token }) => ({ id, token, ...ENDING }))
    await store.call('job.turn', { settlements, claims: [], resend: false })
  }
}

const statement = new Statements('holdfast').get('job_claim')
const CLAIM = { lanes: ['mail'], limit: 10, worker_id: 'w', nonce: 'x', lease_ms: 1_000, force: 0, ordinal: 0 }

/** Pages that a claim of ten reads or writes; it is taken back. */
async function pagesOfClaim(): Promise<number> {
  const values = valuesFor(statement, 1, { rows: [CLAIM as never], args: CLAIM as never })
  const list = values.map((value) => (typeof value === 'number' ? value : `'${value}'`)).join(', ')
  await admin.query(`PREPARE looked AS ${statement.text}`)
  await admin.query('BEGIN')
  const { rows } = await admin.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE looked (${list})`)
  await admin.query('ROLLBACK; DEALLOCATE looked')
  const [{ Plan: plan }] = rows[0]['QUERY PLAN']
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
}

const sweep = () => new Sweep(link, 'holdfast', { monotonic: () => 0 })
const everyRow = async () => (await admin.query('SELECT * FROM holdfast.job ORDER BY seq')).rows

describe('F38 C062 a snapshot that is held for long', () => {
  it('makes claims read page after page of the dead, until the table is swept: then as few as at first, and every row is as it was', async () => {
    await add(20)
    const first = await pagesOfClaim()
    const held = await take(5)
    await churn()
    await add(50)
    await store.call('job.enqueue', { jobs: [job('later', { delayMs: 60_000 }), job('urgent', { priority: 5 })] })
    expect(await pagesOfClaim()).toBeGreaterThan(5 * first)
    const before = [await everyRow(), await dumpTables(admin)]
    expect(await sweep().run()).toBe(true)
    expect([await everyRow(), await dumpTables(admin)]).toEqual(before)
    expect(await pagesOfClaim()).toBeLessThan(2 * first)
    // Leases, order and new sequences go on from where they were.
    const settlements = held.map(({ id, token }) => ({ id, token, ...ENDING }))
    const { verdicts } = await store.call('job.turn', { settlements, claims: [], resend: false })
    expect(verdicts).toEqual(held.map(() => 'applied'))
    await add(1)
    const ids = (await take(100)).map(({ id }) => id)
    expect([ids[0], ids.at(-1)]).toEqual(['mail/urgent', `mail/${made}`])
    expect(await miscounts(server)).toEqual([])
    expect(await sweep().run()).toBe(false)
  }, 60_000)

  it('is left alone while somebody has the table in an open transaction, and calls go on', async () => {
    await churn()
    await admin.query('BEGIN; SELECT FROM holdfast.job LIMIT 1')
    expect(await sweep().run()).toBe(false)
    await add(1)
    expect((await take(1)).length).toBe(1)
    await admin.query('ROLLBACK')
    expect(await sweep().run()).toBe(true)
  }, 60_000)

  it('a turn that waits for the sweep finds what it should', async () => {
    await add(10)
    await admin.query('BEGIN; LOCK TABLE holdfast.job IN ACCESS EXCLUSIVE MODE')
    const [early] = [take(10)]
    await lookFor('the claim waits', async () => {
      const waiting = await server.query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
      return waiting.length > 0 || undefined
    })
    await admin.query('CREATE TEMPORARY TABLE live ON COMMIT DROP AS SELECT * FROM holdfast.job')
    await admin.query('TRUNCATE holdfast.job')
    await admin.query('INSERT INTO holdfast.job OVERRIDING SYSTEM VALUE SELECT * FROM live')
    await admin.query('COMMIT')
    expect((await early).length).toBe(10)
  })

  it('where most is alive, or by a role that may not, nothing is done', async () => {
    await churn()
    await admin.query('CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA holdfast TO app')
    await admin.query('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO app')
    const other = await open(server.urlOf({ user: 'app' }))
    expect(await new Sweep(other, 'holdfast', { monotonic: () => 0 }).run()).toBe(false)
    for (let n = 0; n < 15; n += 1) await add(1_000)
    expect(await sweep().run()).toBe(false)
  }, 60_000)
})

it('is begun by a slow claim, and then not again for a while', async () => {
  let now = 0
  let looks = 0
  const query = async () => {
    looks += 1
    return { rows: [], count: 0 }
  }
  const facts = { defaultIsolation: 'read committed' }
  const begun = new Sweep({ query, facts } as never, 'holdfast', { monotonic: () => now })
  const tell = async (durationMs: number): Promise<number> => {
    begun.claimTook(durationMs)
    await Promise.resolve()
    return looks
  }
  expect(await tell(9)).toBe(0)
  expect(await tell(10)).toBe(1)
  now = 9_999
  expect(await tell(50)).toBe(1)
  now = 10_000
  expect(await tell(50)).toBe(2)
})
