/** Tables come to be once whoever starts, by whom may make them, and nobody writes to tables that are not his release's. */
import { Pool } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { locationOfPool } from '#dist/src/backends/postgres/caller-pool.js'
import type { LinkOptions } from '#dist/src/backends/postgres/connect.js'
import type { PostgresLocation } from '#dist/src/backends/postgres/location.js'
import { type Migrated, migrate, planMigration, readMigrations } from '#dist/src/backends/postgres/migrate.js'
import { parsePostgresUrl } from '#dist/src/backends/postgres/url.js'
import { type Migration, migrationOf } from '#dist/src/backends/sql/migration.js'
import { failureOf } from '../support/failure-of.ts'
import { lookFor } from '../support/look.ts'
import { TransactionPooler } from '../support/pooler.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { open, optionsOf, statement } from './opening.ts'

let server: PostgresServer
let database: string
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.stop())
beforeEach(async () => {
  database = await server.createDatabase()
})

const FIRST = migrationOf(1, 'one', 'CREATE TABLE holdfast.one (n int);\nINSERT INTO holdfast.one VALUES (1);\n')
const SECOND = migrationOf(2, 'two', 'ALTER TABLE holdfast.one ADD COLUMN more int DEFAULT 2;')
const BREAKING = migrationOf(3, 'three', '--! breaking\nCREATE TABLE holdfast.three (n int);')
const BOTH = [FIRST, SECOND]

interface Migrating extends Partial<LinkOptions> {
  readonly role?: string
  readonly timeoutMs?: number
}

async function run(
  where: string | PostgresLocation,
  migrations: readonly Migration[],
  options: Migrating = {},
): Promise<Migrated> {
  const location = typeof where === 'string' ? parsePostgresUrl(where) : where
  const link = await open(location)
  return migrate(link, { ...optionsOf(), ...options, location, migrations })
}

const urlOf = (parameters = {}, user?: string): string =>
  server.urlOf({ database, parameters, ...(user === undefined ? {} : { user }) })
const query = (text: string) => server.query(text, [], { database })
const ones = () => query('SELECT * FROM holdfast.one')
const versionsOf = ({ applied }: Migrated): number[] => applied.map(({ version }) => version)

async function schemas(): Promise<unknown[]> {
  const rows = await query("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$|^public$'")
  return rows.map(({ nspname }) => nspname)
}

describe('a schema', () => {
  it('is made with its ledger, and then brought up to date by what is missing', async () => {
    expect(await run(urlOf(), [FIRST])).toMatchObject({ version: 1, applied: [FIRST] })
    expect(await run(urlOf(), [FIRST])).toMatchObject({ version: 1, applied: [] })
    expect(await run(urlOf(), BOTH)).toMatchObject({ version: 2, applied: [SECOND] })
    expect(await ones()).toEqual([{ n: 1, more: 2 }])
    const ledger = await query(
      'SELECT version, name, checksum, breaking, applied_at <= now() AS past FROM holdfast.migration ORDER BY 1',
    )
    expect(ledger).toEqual(
      BOTH.map(({ version, name, checksum }) => ({ version, name, checksum, breaking: false, past: true })),
    )
  })

  it('of another name is another store, whatever the name', async () => {
    for (const schema of ['Jobs-2', '_x', 'select']) await run(urlOf({ schema }), BOTH)
    expect(await query('SELECT * FROM "Jobs-2".one')).toEqual([{ n: 1, more: 2 }])
    expect((await schemas()).sort()).toEqual(['Jobs-2', '_x', 'select'])
  })

  it('is made once, though twenty start at once', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => run(urlOf({ connections: '1' }), BOTH)))
    expect(all.flatMap(versionsOf)).toEqual([1, 2])
    expect(all.every(({ version }) => version === 2)).toBe(true)
    expect(await ones()).toEqual([{ n: 1, more: 2 }])
  })

  it('is left as it was when a migration fails', async () => {
    const broken = migrationOf(2, 'broken', 'CREATE TABLE holdfast.half (n int); SELECT 1/0;')
    expect(await failureOf(run(urlOf(), [FIRST, broken]))).toMatchObject({ outcome: 'refused', sqlState: '22012' })
    expect(await schemas()).toEqual([])
    expect(versionsOf(await run(urlOf(), BOTH))).toEqual([1, 2])
  })

  it('gets the time that it needs, whatever the role and the link allow a statement', async () => {
    await query(`ALTER DATABASE ${database} SET statement_timeout = 200`)
    const slow = migrationOf(1, 'slow', 'SELECT pg_sleep(0.5);')
    const pool = new Pool({ connectionString: urlOf(), statement_timeout: 200 })
    expect(versionsOf(await run(locationOfPool(pool), [slow]))).toEqual([1])
    await pool.end()
  })

  it('is made behind a pooler too', async () => {
    const pooler = await TransactionPooler.start({ upstream: server.port, connections: 2 })
    const url = server.urlOf({ database, port: pooler.port, parameters: { pooler: 'transaction' } })
    const all = await Promise.all(Array.from({ length: 4 }, () => run(url, BOTH)))
    expect(all.flatMap(versionsOf)).toEqual([1, 2])
    await pooler.close()
  })

  it('is waited for while another one migrates, but not for ever', async () => {
    const rival = await server.connect({ database })
    const { sql } = await planMigration(await open(urlOf()), {
      ...optionsOf(),
      location: parsePostgresUrl(urlOf()),
      migrations: BOTH,
    })
    const lock = /SELECT pg_advisory_xact_lock\(-?\d+\);/.exec(sql)?.[0] ?? ''
    await rival.query(`BEGIN; ${lock}`)
    expect(await failureOf(run(urlOf(), BOTH, { timeoutMs: 200 }))).toMatchObject({
      code: 'STORE_BUSY',
      outcome: 'notDone',
    })
    const waiting = run(urlOf(), BOTH)
    await lookFor('one who waits', async () =>
      (await query("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")).length > 0 ? true : undefined,
    )
    await rival.query('COMMIT')
    expect(versionsOf(await waiting)).toEqual([1, 2])
    await rival.end()
  })
})

describe('a ledger', () => {
  it('of a later release is followed, unless that broke with this one', async () => {
    await run(urlOf(), BOTH)
    expect(await run(urlOf(), [FIRST])).toMatchObject({ version: 2, applied: [] })
    await run(urlOf(), [...BOTH, BREAKING])
    expect(await failureOf(run(urlOf(), BOTH))).toMatchObject({
      code: 'STORE_SCHEMA_TOO_NEW',
      outcome: 'refused',
      message: expect.stringContaining('migrated to 3 (three)'),
    })
    expect(await run(urlOf(), [...BOTH, BREAKING])).toMatchObject({ version: 3 })
  })

  it('of other migrations under the same number is not believed', async () => {
    await run(urlOf(), [migrationOf(1, 'one', `${FIRST.text}-- changed`)])
    expect(await failureOf(run(urlOf(), BOTH))).toMatchObject({ code: 'STORE_CORRUPT', outcome: 'refused' })
  })
})

describe('who may not', () => {
  const refused = (have: number, need: number, why: RegExp | string) => ({
    code: 'UNSUPPORTED',
    outcome: 'refused',
    message: expect.stringMatching(
      new RegExp(
        `schema holdfast is at version ${have}, this release needs ${need}, and .*${String(why)}.*'holdfast migrate'`,
      ),
    ),
  })
  let user: string
  beforeEach(async () => {
    user = `app_${database}`
    await query(`CREATE ROLE ${user} LOGIN`)
  })

  it('because the URL says so, is told what to run', async () => {
    const off = urlOf({ migrate: 'off' })
    expect(await failureOf(run(off, BOTH))).toMatchObject(refused(0, 2, 'migrate=off'))
    expect(await schemas()).toEqual([])
    await run(urlOf(), [FIRST])
    expect(await failureOf(run(off, BOTH))).toMatchObject(refused(1, 2, 'migrate=off'))
    await run(urlOf(), BOTH)
    expect(await run(off, BOTH)).toMatchObject({ version: 2, applied: [] })
  })

  it('because the role has no right to, is told the same', async () => {
    expect(await failureOf(run(urlOf({}, user), BOTH))).toMatchObject(refused(0, 2, 'this role'))
    await run(urlOf(), [FIRST], { role: user })
    expect(await failureOf(run(urlOf({}, user), BOTH))).toMatchObject(refused(1, 2, 'this role'))
    await run(urlOf(), BOTH)
    expect(await run(urlOf({}, user), BOTH)).toMatchObject({ version: 2, applied: [] })
  })

  it('needs to read the ledger alone where all is done', async () => {
    await run(urlOf(), BOTH)
    await query(`GRANT USAGE ON SCHEMA holdfast TO ${user}; GRANT SELECT ON holdfast.migration TO ${user}`)
    expect(await run(urlOf({}, user), BOTH)).toMatchObject({ version: 2, applied: [] })
  })

  it('C052 gets by --role what it takes to run jobs, in later tables too, and no more', async () => {
    await run(urlOf(), [FIRST], { role: user })
    await run(urlOf(), [...BOTH, BREAKING])
    const link = await open(urlOf({}, user))
    for (const text of [
      'INSERT INTO holdfast.one VALUES (7)',
      'UPDATE holdfast.one SET n = 8 WHERE n = 7',
      'DELETE FROM holdfast.one WHERE n = 8',
      'INSERT INTO holdfast.three VALUES (1)',
      'SELECT version FROM holdfast.migration',
    ])
      expect((await link.query(statement(text), [])).count).toBeGreaterThan(0)
    for (const text of [
      'DELETE FROM holdfast.migration',
      'CREATE TABLE holdfast.own (n int)',
      'DROP TABLE holdfast.one',
      'TRUNCATE holdfast.one',
      'ALTER TABLE holdfast.one ADD COLUMN x int',
    ])
      expect(await failureOf(link.query(statement(text), []))).toMatchObject({ code: 'STORE_DENIED' })
  })

  it('exist is told by its name', async () => {
    const failure = await failureOf(run(urlOf(), BOTH, { role: 'no"body' }))
    expect(failure).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('no"body') })
    expect(await schemas()).toEqual([])
  })
})

describe('the plan', () => {
  const planOf = async (role?: string) =>
    planMigration(await open(urlOf()), { ...optionsOf(), location: parsePostgresUrl(urlOf()), migrations: BOTH, role })

  it('changes nothing, and does by hand what a start would do', async () => {
    const plan = await planOf()
    expect(plan).toMatchObject({ version: 0, applied: BOTH })
    expect(plan.sql).toContain('-- GRANT USAGE ON SCHEMA "holdfast" TO "NAME";')
    expect(await schemas()).toEqual([])
    await query(plan.sql)
    expect(await run(urlOf({ migrate: 'off' }), BOTH)).toMatchObject({ version: 2, applied: [] })
    expect(await planOf()).toMatchObject({ version: 2, applied: [], sql: expect.not.stringContaining('BEGIN') })
  })

  it('has the rights of the role that it is given', async () => {
    await query(`CREATE ROLE r_${database} LOGIN`)
    await run(urlOf(), [FIRST])
    const { sql } = await planOf(`r_${database}`)
    await query(sql)
    const link = await open(urlOf({}, `r_${database}`))
    expect((await link.query(statement('SELECT more FROM holdfast.one'), [])).rows).toEqual([{ more: 2 }])
  })
})

it('the migrations of this release are numbered upwards, none twice, and can be applied', async () => {
  const migrations = readMigrations()
  const versions = migrations.map(({ version }) => version)
  expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b))
  expect(versionsOf(await run(urlOf({ schema: 'Other' }), migrations))).toEqual(
    migrations.map(({ version }) => version),
  )
  expect(await schemas()).toEqual(['Other'])
})
