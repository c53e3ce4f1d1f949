/** `holdfast migrate`: tables come to be, or are only shown, on each kind of store. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { connect, migrate } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readMigrations } from '#dist/src/backends/postgres/migrate.js'
import { lastVersion, titleOf } from '#dist/src/backends/sql/migration.js'
import { runInProcess } from '../support/cli.ts'
import { codeOf } from '../support/event.ts'
import { PostgresServer } from '../support/postgres-server.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-migrate-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Both SQL stores have the same ones. */
const LAST = lastVersion(readMigrations())
const NAMES = readMigrations().map(titleOf)

const run = (url: string, ...flags: string[]) => runInProcess(['migrate', ...flags], { HOLDFAST_URL: url })
const json = async (url: string, ...flags: string[]): Promise<unknown> =>
  JSON.parse((await run(url, '--json', ...flags)).stdout)

describe('a SQLite store', () => {
  const path = join(folder, 'jobs.db')
  const url = `sqlite:${path}`

  it('is only shown with --dry-run, and by hand comes out the same', async () => {
    const { stdout, code } = await run(url, '--dry-run')
    expect(code).toBe(0)
    expect(existsSync(path)).toBe(false)
    const byHand = new Database(path)
    byHand.exec(stdout)
    byHand.close()
    expect(await json(url, '--dry-run')).toMatchObject({
      store: 'sqlite',
      schemaVersion: LAST,
      migrations: [],
      sql: '',
    })
    expect((await run(url, '--dry-run')).stdout).toBe('-- the sqlite store has nothing to run\n')
    const store = await connect(url)
    expect((await store.health()).store.details).toMatchObject({ schemaVersion: LAST })
    await store.close()
  })

  it('is made without', async () => {
    const other = `sqlite:${join(folder, 'other.db')}`
    expect((await run(other)).stdout).toBe(`the sqlite store is at schema version ${LAST}\n`)
    expect(await json(other)).toEqual({ url: other, store: 'sqlite', schemaVersion: LAST, migrations: [] })
  })

  it('has no roles', async () => {
    for (const flags of [
      ['--role', 'app'],
      ['--role', 'app', '--dry-run'],
    ]) {
      const { code, stderr } = await run(url, ...flags)
      expect([code, stderr]).toEqual([2, 'holdfast: role: only a PostgreSQL store has roles (INVALID_ARGUMENT)\n'])
    }
  })
})

it('a store without tables has nothing to run', async () => {
  expect((await run('memory:', '--dry-run')).stdout).toBe('-- the memory store has nothing to run\n')
  expect((await run('memory:')).stdout).toBe('the memory store has no schema\n')
})

describe('a PostgreSQL store', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start({ password: 's3cr3t' })
    await server.query("CREATE ROLE app LOGIN PASSWORD 'app'; CREATE ROLE poor LOGIN PASSWORD 'poor'")
  })
  afterAll(() => server.stop())

  it('is only shown with --dry-run, rights and all, and by hand comes out the same', async () => {
    const url = server.urlOf({ database: await server.createDatabase() })
    const { stdout, stderr, code } = await run(url, '--dry-run', '--role', 'app')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^BEGIN;\n[\s\S]*CREATE SCHEMA "holdfast";[\s\S]*TO "app";[\s\S]*\nCOMMIT;\n$/)
    expect(await json(url, '--dry-run')).toMatchObject({ schemaVersion: 0, migrations: NAMES })
    const database = new URL(url).pathname.slice(1)
    await server.query(stdout, [], { database })
    expect(await json(url)).toMatchObject({ store: 'postgres', schemaVersion: LAST, migrations: [] })
    expect((await run(url, '--dry-run')).stdout).toMatch(/^-- A role that only runs jobs/)
  })

  it('is made by one role for another, which then needs no more', async () => {
    const database = await server.createDatabase()
    const url = server.urlOf({ database })
    const applied = await run(url, '--role', 'app')
    expect(applied.stdout).toBe(`the postgres store is at schema version ${LAST}; applied ${NAMES.join(', ')}\n`)
    expect(applied.stdout + applied.stderr).not.toContain('s3cr3t')
    expect(await json(server.urlOf({ database, user: 'app', password: 'app' }))).toMatchObject({ migrations: [] })
  })

  it('that may not be made says so in one line, and changes nothing', async () => {
    const url = server.urlOf({ database: await server.createDatabase(), user: 'poor', password: 'poor' })
    const { code, stdout, stderr } = await run(url)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^holdfast: .*version 0, this release needs \d+, .*'holdfast migrate'.*\n$/)
    expect((await run(`${url}?migrate=off`, '--dry-run')).code).toBe(0)
  })
})

it('as a function refuses what it does not know', async () => {
  expect(await codeOf(migrate('sqlite::memory:', { dry: true } as never))).toBe('INVALID_ARGUMENT')
  expect(await codeOf(migrate('sqlite::memory:', { dryRun: 'yes' } as never))).toBe('INVALID_ARGUMENT')
  expect(await codeOf(migrate('sqlite::memory:', { role: '' }))).toBe('INVALID_ARGUMENT')
  expect(await codeOf(migrate({} as never))).toBe('INVALID_ARGUMENT')
  expect(await codeOf(migrate('nope:'))).toBe('INVALID_URL')
  expect(await migrate('sqlite::memory:', { dryRun: true })).toMatchObject({ store: 'sqlite', schemaVersion: 0 })
})
