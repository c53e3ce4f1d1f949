/** Every statement is a file, says what it is given, is understood by the server, and selects what its twin of SQLite selects. */
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { Statements, valuesFor } from '#dist/src/backends/postgres/statement.js'
import type { ClaimedJob, Settlement } from '#dist/src/backends/protocol/index.js'
import type { Row } from '#dist/src/backends/sql/plan.js'
import { POSTGRES_STATEMENTS, SHARED_STATEMENTS, type StatementName } from '#dist/src/backends/sql/statement-name.js'
import { partsOf } from '#dist/src/backends/sqlite/statement.js'
import { openStore } from '../sqlite/support.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { claimOf, claimOne, complete, put, release, settle } from '../support/protocol.ts'
import { openBackend } from './support.ts'

const NAMES: readonly StatementName[] = [...SHARED_STATEMENTS, ...POSTGRES_STATEMENTS]
const statements = new Statements('holdfast')

let server: PostgresServer
let client: Client
let backend: PostgresBackend
let ns: number
const namespace = `test-${randomBytes(6).toString('hex')}`

beforeAll(async () => {
  server = await PostgresServer.start()
  backend = await openBackend(server.url, namespace)
  client = await server.connect()
  const { rows } = await client.query<{ ns: number }>('SELECT ns FROM holdfast.namespace WHERE name = $1', [namespace])
  ns = rows[0]?.ns ?? -1
})
afterAll(async () => {
  await client.end()
  await backend.close()
  await server.stop()
})

/** Runs with no rows, and with arguments that find nothing. */
function columnsIn(name: StatementName): Promise<readonly string[]> {
  const statement = statements.get(name)
  const values = valuesFor(statement, ns, { rows: [], args: { limit: 0, lanes: [], force: 0, name: 'other' } })
  return client
    .query({ text: statement.text, values, rowMode: 'array' })
    .then(({ fields }) => fields.map((field) => field.name))
}

describe('statements of PostgreSQL', () => {
  it('the folder holds those of the list and no others', () => {
    const folder = fileURLToPath(new URL('../../src/backends/postgres/statement', import.meta.url))
    expect(readdirSync(folder).sort()).toEqual(NAMES.map((name) => `${name}.sql`).sort())
  })

  it.each(NAMES)('%s means the same whatever standard_conforming_strings says', (name) => {
    const literals = statements.get(name).text.match(/E?'(?:[^']|'')*'/g) ?? []
    expect(literals.filter((literal) => literal.includes('\\') && !literal.startsWith('E'))).toEqual([])
  })

  it.each(NAMES)('%s uses the parameters of its header, all of them and no others', (name) => {
    const { text, args, rows } = statements.get(name)
    const used = new Set([...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
    // A command of the server's own takes no values.
    if (name === 'lane_fence') return expect([used.size, args.length, rows.length]).toEqual([0, 0, 0])
    const given = Array.from({ length: 1 + args.length + rows.length }, (_, index) => index + 1)
    expect([...used].sort((a, b) => a - b)).toEqual(given)
  })

  it.each(NAMES)('%s runs on the server', async (name) => {
    await client.query('BEGIN')
    await columnsIn(name)
    await client.query('ROLLBACK')
  })

  it('reads select the same columns in both dialects', async () => {
    const store = openStore()
    const reads = SHARED_STATEMENTS.filter((name) =>
      /^\s*(?:--.*\n)*\s*(?:SELECT|WITH RECURSIVE)/.test(statements.get(name).text),
    )
    expect(reads.length).toBeGreaterThan(10)
    for (const name of reads) {
      const last = partsOf(name).at(-1)?.text ?? ''
      const theirs = store.connection.database.prepare(last).columns()
      expect([...(await columnsIn(name))].sort(), name).toEqual(theirs.map((column) => column.name).sort())
    }
    store.close()
  })

  it('a plain enqueue writes what a careful one writes, but for the key', () => {
    const written = (name: StatementName): readonly string[] => {
      const [, columns = ''] = /INSERT INTO "holdfast"\.job \(([^)]*)\)/.exec(statements.get(name).text) ?? []
      return columns.split(',').map((column) => column.trim())
    }
    const given = (name: StatementName) => [...statements.get(name).args, ...statements.get(name).rows]
    /** What a batch that goes this way has none of; and nothing is admitted that a lane counts. */
    const none = ['idempotency_key', 'key', 'concurrency_key', 'retry', 'metadata', 'trace_id', 'replay_of', 'admitted']
    const isThere = (name: string): boolean => !none.includes(name)
    expect(written('job_add').length).toBeGreaterThan(15)
    expect(written('job_add').toSorted()).toEqual(written('job_enqueue').filter(isThere).toSorted())
    const names = (name: StatementName) => given(name).map((column) => `${column.name} ${column.type}`)
    expect(names('job_add').toSorted()).toEqual(
      names('job_enqueue')
        .filter((text) => isThere(text.split(' ', 1)[0] ?? ''))
        .toSorted(),
    )
  })

  it('a token that is forgotten after a reaping leaves that of a later grant', async () => {
    await put(backend, { id: 'mail/1', lane: 'mail' })
    const first = await claimOne(backend, { lanes: ['mail'] })
    await settle(backend, release(first))
    const second = await claimOne(backend, { lanes: ['mail'] })
    await settle(backend, release(second))
    const forget = async (row: Row): Promise<void> => {
      const statement = statements.get('lease_forget')
      await client.query(statement.text, valuesFor(statement, ns, { rows: [row] }))
    }
    const tokenOf = async (): Promise<unknown> =>
      (await client.query('SELECT token FROM holdfast.job WHERE id = $1', [first.id])).rows[0]
    await forget({ id: first.id, token: first.token })
    expect(await tokenOf()).toEqual({ token: second.token })
    await forget({ id: first.id, token: second.token })
    expect(await tokenOf()).toEqual({ token: null })
  })

  it('a turn ends no job under the token of an earlier grant, also when that left no trace', async () => {
    const lanes = ['turned']
    await put(backend, { id: 'turned/1', lane: 'turned' })
    const first = await claimOne(backend, { lanes })
    await settle(backend, { ...release(first), started: false } as Settlement)
    const second = await claimOne(backend, { lanes })
    const end = (job: ClaimedJob) =>
      backend.call('job.turn', { settlements: [complete(job)], claims: [claimOf({ lanes })], resend: false })
    expect((await end(first)).verdicts).toEqual(['leaseLost'])
    expect((await end(second)).verdicts).toEqual(['applied'])
  })
})
