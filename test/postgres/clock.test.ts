/** A statement goes by the time of the server at which it runs, not by that at which the transaction around it began. */
import type { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { inSchema, Statements, valuesFor } from '#dist/src/backends/postgres/statement.js'
import type { Row } from '#dist/src/backends/sql/plan.js'
import type { StatementName } from '#dist/src/backends/sql/statement-name.js'
import { ServerClock } from '../support/clock/server-clock.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { makeTables } from './support.ts'

const START_MS = 1_800_000_000_000
const LATER_MS = START_MS + 60_000

let clock: ServerClock
let server: PostgresServer
let client: Client
beforeAll(async () => {
  clock = await ServerClock.make()
  server = await PostgresServer.start({ env: clock.env })
  await makeTables(server)
  client = await server.connect()
})
afterAll(async () => {
  await client.end()
  await server.stop()
  await clock.remove()
})

const statements = new Statements('holdfast')
async function execute(name: StatementName, rows: readonly Row[], args?: Row): Promise<void> {
  const statement = statements.get(name)
  await client.query(statement.text, valuesFor(statement, 1, { rows, ...(args === undefined ? {} : { args }) }))
}

async function column(text: string): Promise<unknown[]> {
  const { rows } = await client.query({ text: inSchema(text, 'holdfast'), rowMode: 'array' })
  return rows.map(([value]) => Number(value))
}

const LIMITS = { max_attempts: 3, max_attempts_fixed: 0, max_crashes: 3 }
const job = (id: string): Row => ({ id, lane: 'a', type: 't', priority: 0, delay_ms: 0, payload: '{}', ...LIMITS })
const claim = { lanes: ['a'], limit: 2, worker_id: 'w', nonce: 'n', lease_ms: 1000, force: 0, ordinal: 0 }

it('in a transaction that has been open for a minute', async () => {
  clock.freeze(START_MS)
  await client.query('BEGIN')
  await client.query('SELECT 1')
  clock.freeze(LATER_MS)
  await execute('job_enqueue', [job('one'), job('two')])
  expect(await column('SELECT created_at FROM holdfast.job')).toEqual([LATER_MS, LATER_MS])
  await execute('job_add', [{ ...job('three'), delay_ms: 9 }])
  expect(await column("SELECT run_at FROM holdfast.job WHERE id = 'three'")).toEqual([LATER_MS + 9])
  await execute('job_claim', [], claim)
  expect(await column('SELECT lease_expires_at FROM holdfast.job WHERE lease_expires_at IS NOT NULL')).toEqual([
    LATER_MS + 1000,
    LATER_MS + 1000,
  ])
  const { rows } = await client.query('SELECT id, token FROM holdfast.job ORDER BY seq')
  const [one, two] = rows
  await execute('lease_renew', [{ ...one, lease_ms: 5000 }])
  expect(await column("SELECT lease_expires_at FROM holdfast.job WHERE id = 'one'")).toEqual([LATER_MS + 5000])
  const failed = { outcome: 'failed', delay_ms: 7, duration_ms: 1, failure: '{}', crashes: 0, retry: '{}' }
  await execute('job_retry', [{ ...one, ...failed, max_attempts: 3, if_expired: 0 }])
  expect(await column("SELECT run_at FROM holdfast.job WHERE id = 'one'")).toEqual([LATER_MS + 7])
  await execute('job_turn', [{ ...two, keep_ms: null, duration_ms: 1, output: '1', keep_output_ms: null }], claim)
  expect(await column('SELECT finished_at FROM holdfast.archive')).toEqual([LATER_MS])
  await client.query('ROLLBACK')
})
