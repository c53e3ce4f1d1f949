/** F40: a claim grants what was asked for, no more and the right ones, whatever plan the server is made to take. */
import type { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { Statements, valuesFor } from '#dist/src/backends/postgres/statement.js'
import { PostgresServer } from '../support/postgres-server.ts'
import { definition } from '../support/protocol.ts'
import { openBackend } from './support.ts'

const JOBS = 2_000
const LIMIT = 3
/** Each alone, then all of them. */
const WAYS = [
  'hashjoin',
  'mergejoin',
  'nestloop',
  'material',
  'memoize',
  'indexscan',
  'indexonlyscan',
  'bitmapscan',
  'sort',
]

let server: PostgresServer
let backend: PostgresBackend
let client: Client

beforeAll(async () => {
  server = await PostgresServer.start()
  backend = await openBackend(server.url, 'hostile')
  const jobs = Array.from({ length: JOBS }, (_, index) =>
    definition({
      id: `mail/${index}`,
      lane: index % 2 === 0 ? 'mail' : 'post',
      priority: index === 700 ? 9 : 0,
      runAt: index + 1,
    }),
  )
  for (let from = 0; from < JOBS; from += 1000)
    await backend.call('job.enqueue', { jobs: jobs.slice(from, from + 1000) })
  client = await server.connect()
  await client.query('ANALYZE holdfast.job')
})
afterAll(async () => {
  await client.end()
  await backend.close()
  await server.stop()
})

async function grantedWithout(ways: readonly string[]): Promise<readonly unknown[]> {
  const statement = new Statements('holdfast').get('job_claim')
  const { rows } = await client.query<{ ns: number }>("SELECT ns FROM holdfast.namespace WHERE name = 'hostile'")
  const claim = { lanes: ['mail', 'post'], limit: LIMIT, worker_id: 'w', nonce: 'n', lease_ms: 1000, force: 0 }
  await client.query('BEGIN')
  try {
    for (const way of ways) await client.query(`SET LOCAL enable_${way} = off`)
    const values = valuesFor(statement, rows[0]?.ns ?? -1, { rows: [claim] })
    const answer = await client.query({ text: statement.text, values, rowMode: 'array' })
    const running = await client.query("SELECT id FROM holdfast.job WHERE state = 'running'")
    const granted = (answer.rows as unknown[][]).filter(([kind]) => Number(kind) === 1).map(([, , , id]) => id)
    expect(running.rows.map(({ id }) => id).sort()).toEqual([...granted].sort())
    return granted
  } finally {
    await client.query('ROLLBACK')
  }
}

const CASES = [[], ...WAYS.map((way) => [way]), WAYS.filter((way) => way !== 'nestloop'), WAYS]

it.each(CASES.map((ways) => ({ ways, without: ways.join(', ') || 'nothing' })))(
  'without $without',
  async ({ ways }) => {
    expect([...(await grantedWithout(ways))].sort()).toEqual(['mail/0', 'mail/2', 'mail/700'])
  },
)
