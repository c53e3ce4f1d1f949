/** The hot statements do what they should and no more work than it takes, whatever the planner believes of the tables. */
import type { Client } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { readMigrations } from '#dist/src/backends/postgres/migrate.js'
import { sessionSettings } from '#dist/src/backends/postgres/own-pool.js'
import { inSchema, Statements, valuesFor } from '#dist/src/backends/postgres/statement.js'
import { LIMITS } from '#dist/src/backends/postgres/wiring.js'
import type { StatementName } from '#dist/src/backends/sql/statement-name.js'
import { PostgresServer } from '../support/postgres-server.ts'

const BATCH = 50
const RUNNING = 2_000
const JOBS = 30_000

let server: PostgresServer
let admin: Client
beforeAll(async () => {
  server = await PostgresServer.start({ settings: { autovacuum: 'off' } })
  admin = await server.connect()
})
afterAll(async () => {
  await admin.end()
  await server.stop()
})
beforeEach(async () => {
  await admin.query('DROP SCHEMA IF EXISTS holdfast CASCADE; CREATE SCHEMA holdfast')
  for (const { text } of readMigrations()) await admin.query(inSchema(text, 'holdfast'))
})

const statements = new Statements('holdfast')
const numbers = Array.from({ length: BATCH }, (_, index) => index)
/** Those that run first, so that half of them are cancelled by nobody and still there. */
const held = (index: number) => ({ id: `a/${index + 1}`, token: `t${index + 1}`, duration_ms: 1, if_expired: 0 })
const settled = { delay_ms: 1, failure: '{}', crashes: 0, retry: '{}', max_attempts: 9, outcome: 'failed', started: 1 }
/** Every other one leaves no record, but its key. */
const ended = (index: number) => ({ keep_ms: index % 2 === 0 ? null : 0, ...END })
const END = { output: '1', keep_output_ms: null, from: 'running', to: 'dlq', keeps_token: 0 }
const BUDGET = { max_attempts: 7, max_attempts_fixed: 0, max_crashes: 3 }
const PLAIN = { type: 't', priority: 0, delay_ms: 0, payload: '1', admitted: 1, ...BUDGET }
const keyed = (index: number) => ({ id: `b/${index}`, lane: 'b', key: `k${index}`, ...PLAIN })
/** A record. */
const over = (index: number) => ({ id: `c/${index + 1}` })
/** Live, or a record. */
const found = (index: number) => (index % 2 === 0 ? held(index) : over(index))
const due = (index: number) => ({ id: `a/${JOBS - index}` })
const claim = { lanes: ['a', 'b'], limit: BATCH, worker_id: 'w', nonce: 'n', lease_ms: 1000, force: 1, ordinal: 0 }

/** What each is given. */
const HOT: readonly (readonly [StatementName, rows: (index: number) => object, args: object | undefined])[] = [
  ['job_claim', () => ({}), claim],
  ['job_turn', (index) => ({ ...held(index), ...ended(index) }), claim],
  ['lease_renew', (index) => ({ ...held(index), lease_ms: 1 }), undefined],
  ['job_note', (index) => ({ ...held(index), progress: '1', has_lines: 1, first_number: 1, room: 9 }), undefined],
  ['log_add', (index) => ({ ...held(index), number: 1, line: '{}' }), undefined],
  ['job_retry', (index) => ({ ...held(index), ...settled }), undefined],
  ['job_release', (index) => ({ ...held(index), ...settled }), undefined],
  ['job_requeue', (index) => ({ ...held(index), ...settled }), undefined],
  ['job_end', (index) => ({ ...held(index), ...settled, ...ended(index) }), undefined],
  ['job_delete', (index) => ({ ...held(index), ...ended(index) }), undefined],
  ['cancel_request', held, undefined],
  ['job_promote', due, undefined],
  ['job_find', found, undefined],
  ['job_find_key', (index) => ({ lane: index % 2 === 0 ? 'a' : 'c', key: `k${index + 1}` }), undefined],
  ['job_get', found, undefined],
  ['attempt_list', found, undefined],
  ['attempt_last', found, undefined],
  ['log_list', () => ({}), { id: 'a/7', lease_epoch: -9, number: 0, limit: BATCH }],
  ['archive_find', over, undefined],
  ['archive_forget', (index) => ({ ...over(index), token: `t${index + 1}` }), undefined],
  ['archive_trim', () => ({}), { lane: 'c', state: 'completed', count: BATCH, limit: BATCH }],
  ['archive_prune', () => ({}), { limit: BATCH }],
  ['output_drop', () => ({}), { limit: BATCH }],
  ['archive_list', () => ({}), { before: 9e15, limit: BATCH }],
  ['archive_list_lane', () => ({ before: 9e15, limit: 1, lane: 'c', state: 'completed' }), undefined],
  ['archive_list_state', () => ({ before: 9e15, limit: 1, state: 'dlq' }), undefined],
  ['job_ahead', (index) => ({ id: `a/${JOBS / 2 + index}`, limit: 1 }), undefined],
  ['job_enqueue', keyed, undefined],
  ['lease_forget', held, undefined],
  ['due_promote', () => ({ lane: 'a', limit: 1 }), undefined],
  ['lease_expired', () => ({}), { limit: BATCH }],
  ['holder_count', () => ({ lane: 'a' }), undefined],
  ['ready_keys', () => ({}), { lane: 'a', limit: BATCH, offset: BATCH }],
  ['parked_keys', () => ({}), { lane: 'a', after: '', limit: BATCH }],
  ['parked_first', () => ({ lane: 'a', key: 'k', limit: 1 }), undefined],
  ['job_park', (index) => ({ seq: JOBS / 2 + index }), undefined],
  ['job_grant', () => ({}), { ...claim, seqs: numbers.map((index) => JOBS / 2 + index), ordinal: 0 }],
]

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  return typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`
}

function execute(name: StatementName, [rows, args]: readonly [(index: number) => object, object | undefined]): string {
  const statement = statements.get(name)
  const values = valuesFor(statement, 1, { rows: numbers.map(rows) as never, ...(args ? { args: args as never } : {}) })
  return `EXECUTE ${name} (${values.map(literal).join(', ')})`
}

async function prepare(client: Client): Promise<void> {
  for (const [name, rows, args] of HOT) {
    await client.query(`PREPARE ${name} AS ${statements.get(name).text}`)
    // The plan is made here, where nothing is there yet.
    await client.query(execute(name, [rows, args]))
  }
}

/**
 * Running jobs first, then those that wait, and at last some that are to run at another time; of each an attempt and a line, of most a key.
 * One in a hundred of those that wait is set aside for its concurrency key.
 */
const fill = (jobs = JOBS, running = RUNNING) =>
  admin.query(`INSERT INTO holdfast.job (created_at, updated_at, run_at, ns, priority, max_attempts, max_crashes,
      max_attempts_fixed, id, lane, state, type, payload, token, lease_expires_at, started_at, worker_id, idempotency_key, recorded,
      parked, concurrency_key)
    SELECT 1, 1, CASE WHEN state = 'scheduled' THEN 9e15 ELSE 1 END, 1, 0, 7, 3, false, 'a/' || i, 'a', state, 't', '{}',
      CASE WHEN i <= ${running} THEN 't' || i END, CASE WHEN i <= ${running} THEN 1 END, 1, 'w', CASE WHEN i % 4 <> 1 THEN 'k' || i END, i % 4 = 0,
      state = 'queued' AND i % 100 = 7, CASE WHEN i % 100 = 7 THEN 'g' || i END
    FROM generate_series(1, ${jobs}) AS i, LATERAL (
      SELECT CASE WHEN i <= ${running} THEN 'running' WHEN i > ${jobs - 2 * BATCH} THEN 'scheduled' ELSE 'queued' END AS state
    ) AS chosen;
    INSERT INTO holdfast.attempt (job_seq, lease_epoch, started_at, finished_at, attempt, outcome, worker_id)
    SELECT seq, -1, 1, 1, 1, 'failed', 'w' FROM holdfast.job WHERE lane = 'a';
    INSERT INTO holdfast.job_log (job_seq, lease_epoch, number, line) SELECT seq, -1, 1, '{}' FROM holdfast.job WHERE lane = 'a';
    INSERT INTO holdfast.key (ns, lane, key, id) SELECT 1, lane, idempotency_key, id FROM holdfast.job WHERE lane = 'a' AND idempotency_key IS NOT NULL`)

/** As many records as jobs: every third one in the dead letter queue, each with a key. */
const fillArchive = () =>
  admin.query(`INSERT INTO holdfast.archive (seq, created_at, updated_at, run_at, lease_epoch, finished_at, keep_until, output_until,
      expiry_day, ns, priority, attempts, max_attempts, crashes, max_crashes, max_attempts_fixed, cancel_requested, id, lane, state,
      type, token, idempotency_key, output)
    SELECT -i, 1, 1, 1, 1, 1, i, i, 0, 1, 0, 1, 7, 0, 3, false, false, 'c/' || i, 'c', CASE WHEN i % 3 = 0 THEN 'dlq' ELSE 'completed' END,
      't', 't' || i, 'k' || i, '1'
    FROM generate_series(1, ${JOBS}) AS i;
    INSERT INTO holdfast.key (ns, lane, key, id) SELECT 1, lane, idempotency_key, id FROM holdfast.archive;
    INSERT INTO holdfast.counter (ns, lane, state, jobs) SELECT 1, lane, state, count(*) FROM holdfast.archive GROUP BY 2, 3`)

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Join Filter'?: number
  readonly Plans?: readonly PlanNode[]
}

/** Rows that went through the busiest step. */
function mostRows(node: PlanNode): number {
  const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0)
  const own = (node['Actual Rows'] + removed) * node['Actual Loops']
  return Math.max(own, ...(node.Plans ?? []).map(mostRows))
}

async function explain(client: Client, text: string): Promise<number> {
  await client.query('BEGIN')
  const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`)
  await client.query('ROLLBACK')
  return mostRows(rows[0]['QUERY PLAN'][0].Plan)
}

/** What a vacuum writes down of a table whose rows were dead but for so many, in pages that it could not give back. */
const vacuumedWith = (rows: number) =>
  admin.query(`UPDATE pg_class SET reltuples = ${rows}, relpages = pg_relation_size(oid) / 8192
    WHERE relnamespace = 'holdfast'::regnamespace AND relkind IN ('r', 'i')`)
const VACUUMED = { 'vacuumed with one row left': 1, 'vacuumed with 5 rows left': 5, 'vacuumed with 100 rows left': 100 }

describe.each(['never analysed', 'analysed while empty', 'analysed', ...Object.keys(VACUUMED)])(
  'with tables %s',
  (state) => {
    it('the hot statements read what they were asked for and little more', async () => {
      const client = await server.connect(sessionSettings(LIMITS))
      if (state === 'analysed while empty') await admin.query('VACUUM ANALYZE')
      await prepare(client)
      await fill()
      await fillArchive()
      if (state === 'analysed') await admin.query('ANALYZE')
      const rowsLeft = new Map(Object.entries(VACUUMED)).get(state)
      if (rowsLeft !== undefined) await vacuumedWith(rowsLeft)
      await client.query('DISCARD PLANS')
      const worked: [string, number][] = []
      for (const [name, rows, args] of HOT) worked.push([name, await explain(client, execute(name, [rows, args]))])
      // Each row may be compared with each other one of the batch, but not with what else is in the table; and each has something to do.
      expect(worked.filter(([, count]) => count === 0 || count > BATCH * BATCH)).toEqual([])
      await client.end()
    })
  },
)

it('a claim holds as soon as there is work, though its plan was made before', async () => {
  const client = await server.connect(sessionSettings(LIMITS))
  await prepare(client)
  await fill()
  const [name, rows, args] = HOT[0] ?? []
  if (name === undefined || rows === undefined) throw new Error('no claim')
  expect(await explain(client, execute(name, [rows, args]))).toBeLessThan(BATCH * BATCH)
  await client.end()
})

const SWITCHES = [
  'hashjoin',
  'mergejoin',
  'nestloop',
  'material',
  'indexscan',
  'indexonlyscan',
  'bitmapscan',
  'sort',
  'seqscan',
]
it.each([...SWITCHES.map((each) => [each]), ['hashjoin', 'mergejoin', 'material', 'indexscan', 'sort']])(
  'the limit holds without %s',
  async (...off) => {
    const options = ['plan_cache_mode=force_generic_plan', 'jit=off', ...off.map((each) => `enable_${each}=off`)]
    const client = await server.connect({ options: options.map((each) => `-c ${each}`).join(' ') })
    await prepare(client)
    await fill(500, 50)
    const running = async () =>
      Number((await client.query("SELECT count(*) AS n FROM holdfast.job WHERE state = 'running'")).rows[0].n)
    for (let round = 0; round < 2; round += 1) {
      const before = await running()
      const { rows } = await client.query(execute('job_claim', [() => ({}), { ...claim, limit: 3 }]))
      expect(rows.filter(({ kind }: { kind: number }) => kind === 1).length).toBe(3)
      expect(await running()).toBe(before + 3)
      await admin.query('ANALYZE')
    }
    await client.end()
  },
)
