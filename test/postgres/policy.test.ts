/** A policy of PostgreSQL is one point in time for all claimers: those under way end before it, later ones see it, limited ones queue up. */
import { randomBytes } from 'node:crypto'
import type { Client } from 'pg'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { Statements, valuesFor } from '#dist/src/backends/postgres/statement.js'
import type { Row } from '#dist/src/backends/sql/plan.js'
import type { StatementName } from '#dist/src/backends/sql/statement-name.js'
import { eventually } from '../support/event.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { claim, complete, definition, put, settle } from '../support/protocol.ts'
import { openBackend } from './support.ts'

const statements = new Statements('holdfast')
const ASKED = { worker_id: 'other', nonce: 'n', lease_ms: 60_000, force: 0, ordinal: 0 }

let server: PostgresServer
let other: Client
let backend: PostgresBackend
let ns: number

beforeAll(async () => {
  server = await PostgresServer.start({ settings: { fsync: 'off' } })
  other = await server.connect()
})
afterAll(async () => {
  await other.end()
  await server.stop()
})
beforeEach(async () => {
  const namespace = `policy-${randomBytes(6).toString('hex')}`
  backend = await openBackend(server.url, namespace)
  ns = Number((await other.query('SELECT ns FROM holdfast.namespace WHERE name = $1', [namespace])).rows[0].ns)
  return () => backend.close()
})

function run(name: StatementName, row: Row): Promise<{ rows: unknown[] }> {
  const statement = statements.get(name)
  return other.query(statement.text, valuesFor(statement, ns, { rows: [row] }))
}

/** True once somebody waits for a lock that another holds. */
const isWaiting = async (): Promise<boolean> =>
  Number((await server.query('SELECT count(*) AS n FROM pg_locks WHERE NOT granted'))[0]?.n) > 0

it.each([{ paused: true }, { maxInFlight: 1 }])('a claim under way ends before %o is answered', async (change) => {
  await put(backend, { lane: 'a' })
  await put(backend, { lane: 'a' })
  await other.query('BEGIN')
  const { rows } = await run('job_claim', { ...ASKED, lanes: ['a'], limit: 1 })
  expect(rows).toHaveLength(2)
  let isAnswered = false
  const changed = backend.call('queue.policy', { changes: [{ lane: 'a', ...change }], usage: ['a'] }).then((reply) => {
    isAnswered = true
    return reply
  })
  await eventually(isWaiting, 'the policy to wait')
  const claimed = claim(backend, { lanes: ['a'], limit: 5 })
  expect(isAnswered).toBe(false)
  await other.query('COMMIT')
  expect((await changed).usage[0]).toMatchObject({ inFlight: 1 })
  expect(await claimed).toEqual([])
})

it('claims under limits come one after the other, and each counts what the one before was given', async () => {
  await backend.call('queue.policy', { changes: [{ lane: 'a', maxInFlight: 3 }] })
  await backend.call('job.enqueue', { jobs: Array.from({ length: 9 }, () => definition({ lane: 'a' })) })
  await other.query('BEGIN')
  await run('limit_lock', { lane: 'a' })
  const claims = Promise.all([1, 2, 3, 4].map((n) => claim(backend, { workerId: `w${n}`, lanes: ['a'], limit: 2 })))
  await eventually(isWaiting, 'the claims to wait')
  const first = await other.query(
    "SELECT seq FROM holdfast.job WHERE ns = $1 AND state = 'queued' ORDER BY seq LIMIT 1",
    [ns],
  )
  await run('job_grant', { ...ASKED, seqs: [Number(first.rows[0].seq)] })
  await other.query('COMMIT')
  expect((await claims).flat()).toHaveLength(2)
})

it('many connections never exceed the limits of a lane, beside one without', async () => {
  const backends = await Promise.all(
    Array.from({ length: 6 }, () => openBackend(`${server.url}?connections=2`, 'many')),
  )
  const [first] = backends as [PostgresBackend]
  await first.call('queue.policy', { changes: [{ lane: 'a', maxInFlight: 5, maxPerKey: 2 }] })
  const jobs = Array.from({ length: 60 }, (_, n) => definition({ lane: 'a', concurrencyKey: `k${n % 4}` }))
  const free = Array.from({ length: 60 }, () => definition({ lane: 'b' }))
  await first.call('job.enqueue', { jobs: [...jobs, ...free] })
  const done = new Set<string>()
  const work = async (backend: PostgresBackend, n: number): Promise<void> => {
    while (done.size < 120) {
      const lanes = n % 2 === 0 ? ['a', 'b'] : ['b', 'a']
      for (const job of await claim(backend, { workerId: `w${n}`, lanes, limit: 3 })) {
        const { usage } = await backend.call('queue.policy', { changes: [], usage: ['a'] })
        expect(usage[0]?.inFlight).toBeLessThanOrEqual(5)
        expect(await settle(backend, complete(job))).toBe('applied')
        done.add(job.id)
      }
    }
  }
  await Promise.all(backends.map(work))
  expect(done.size).toBe(120)
  await Promise.all(backends.map((each) => each.close()))
})
