/** Opening: what is set, what is refused with one clear error and nothing left behind, and migrations. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { migrationOf } from '#dist/src/backends/sql/migration.js'
import { SqliteBackend } from '#dist/src/backends/sqlite/backend.js'
import { migrate, readMigrations } from '#dist/src/backends/sqlite/migrate.js'
import { checkDriverVersion, checkSqliteVersion, loadDriver } from '#dist/src/backends/sqlite/open-checks.js'
import { HoldfastError } from '#dist/src/errors.js'
import { claim, freshPath, job, openStore, quiet } from './support.ts'

const open = (path: string, more: { readonly?: boolean; create?: boolean } = {}): Promise<SqliteBackend> =>
  SqliteBackend.open({ ...quiet, path, ...more })

async function errorOf(work: Promise<unknown>): Promise<HoldfastError> {
  const error: unknown = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(HoldfastError)
  return error as HoldfastError
}

/** One typed error that names the path, and a folder that is as it was. */
async function expectRefused(path: string, code: string, more: Parameters<typeof open>[1] = {}): Promise<void> {
  const folder = dirname(path)
  const list = (): unknown => (existsSync(folder) && statSync(folder).isDirectory() ? readdirSync(folder) : null)
  const before = list()
  const error = await errorOf(open(path, more))
  expect(error.code).toBe(code)
  expect(error.message).toContain(path)
  expect(error.details).toMatchObject({ path, outcome: 'refused' })
  expect(list()).toEqual(before)
}

test('a new file belongs to its owner alone and has the settings that durability needs', async () => {
  const path = freshPath()
  const backend = await open(path)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  await backend.close()
  const store = openStore({ path })
  const pragma = (name: string): unknown => store.connection.database.pragma(name, { simple: true })
  expect(['journal_mode', 'synchronous', 'temp_store', 'trusted_schema', 'auto_vacuum'].map(pragma)).toEqual([
    'wal',
    2,
    2,
    0,
    2,
  ])
  store.close()
})

test('a folder in place of the file is refused', async () => {
  const path = freshPath()
  mkdirSync(path)
  await expectRefused(path, 'STORE_UNAVAILABLE')
})

test('a missing folder is refused', () => expectRefused(join(freshPath(), 'none', 'jobs.db'), 'STORE_UNAVAILABLE'))

test('a file in place of the folder is refused', async () => {
  const path = freshPath()
  writeFileSync(path, 'text')
  await expectRefused(join(path, 'jobs.db'), 'STORE_UNAVAILABLE')
})

test('a file that is not a database is refused and left as it is', async () => {
  const path = freshPath()
  writeFileSync(path, 'this is a diary and not a database at all')
  await expectRefused(path, 'STORE_CORRUPT')
  expect(readFileSync(path, 'utf8')).toBe('this is a diary and not a database at all')
})

test('a damaged database is refused', async () => {
  const path = freshPath()
  writeFileSync(path, Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(8_192, 7)]))
  await expectRefused(path, 'STORE_CORRUPT')
})

test.each([0o444, 0o000])('a file with mode %o is refused', async (mode) => {
  const path = freshPath()
  openStore({ path }).close()
  chmodSync(path, mode)
  await expectRefused(path, 'STORE_READONLY')
})

test('a folder that nobody may write is refused', async () => {
  const path = freshPath()
  chmodSync(dirname(path), 0o555)
  await expectRefused(path, 'STORE_READONLY')
  chmodSync(dirname(path), 0o755)
})

test('a missing file is not created when it must be there', async () => {
  await expectRefused(freshPath(), 'STORE_UNAVAILABLE', { create: false })
  await expectRefused(freshPath(), 'STORE_UNAVAILABLE', { readonly: true })
})

test('a store that is open for reading reads and refuses writes', async () => {
  const path = freshPath()
  const writer = await open(path)
  await writer.call('job.enqueue', { jobs: [job('1')] })
  const reader = await open(path, { readonly: true })
  expect((await reader.call('job.get', { ids: ['mail/1'] })).jobs[0]?.state).toBe('queued')
  expect((await errorOf(reader.call('job.enqueue', { jobs: [job('2')] }))).code).toBe('STORE_READONLY')
  await Promise.all([reader.close(), writer.close()])
})

test('a driver that is absent, too old, too new or fatal on this Node is refused before it is loaded', () => {
  const code = (run: () => unknown): unknown => {
    try {
      run()
      return null
    } catch (error) {
      return error instanceof HoldfastError ? error.code : error
    }
  }
  const absent = (): never => {
    throw new Error('Cannot find module')
  }
  expect(code(() => loadDriver(absent))).toBe('DEPENDENCY_MISSING')
  const loaded: string[] = []
  const fake = (version: string) => (name: string) => {
    loaded.push(name)
    return { version }
  }
  expect(code(() => loadDriver(fake('11.10.0')))).toBe('DEPENDENCY_MISSING')
  expect(loaded).toEqual(['better-sqlite3/package.json'])
  expect(code(() => checkDriverVersion('13.0.1', 'v20.19.0'))).toBe('DEPENDENCY_MISSING')
  expect(code(() => checkDriverVersion('13.0.1', 'v24.1.0'))).toBeNull()
  expect(code(() => checkDriverVersion('12.11.0', 'v24.1.0'))).toBe('DEPENDENCY_MISSING')
  expect(code(() => checkDriverVersion('12.11.1', 'v20.19.0'))).toBeNull()
  expect(code(() => checkDriverVersion('14.0.0', 'v24.1.0'))).toBe('DEPENDENCY_MISSING')
  expect(code(() => checkSqliteVersion('3.51.2'))).toBe('DEPENDENCY_MISSING')
  expect(code(() => checkSqliteVersion('3.51.3'))).toBeNull()
})

test('migrations are applied once, and a changed or later breaking one is refused', async () => {
  const path = freshPath()
  openStore({ path }).close()
  const database = new Database(path)
  const ledger = database.prepare('SELECT version, checksum FROM holdfast_migration')
  expect(ledger.all()).toEqual(readMigrations().map(({ version, checksum }) => ({ version, checksum })))

  const add = database.prepare('INSERT INTO holdfast_migration VALUES (?, ?, ?, ?, 0)')
  add.run(9_001, 'later', 'x', 0)
  await (await open(path)).close()
  add.run(9_002, 'later-breaking', 'x', 1)
  expect(await errorOf(open(path))).toMatchObject({ code: 'STORE_SCHEMA_TOO_NEW', details: { version: 9_002 } })

  database.exec('DELETE FROM holdfast_migration WHERE version > 9000')
  database.exec("UPDATE holdfast_migration SET checksum = 'other' WHERE version = 1")
  expect(await errorOf(open(path))).toMatchObject({ code: 'STORE_CORRUPT', details: { version: 1 } })
  database.close()
})

test('a migration that fails leaves nothing of itself', () => {
  const store = openStore()
  const { database } = store.connection
  const broken = migrationOf(9_999, 'broken', 'CREATE TABLE half (a); CREATE TABLE holdfast_job (b);')
  const target = { database, path: ':memory:', isReadonly: false, nowMs: 0 }
  const write = (run: () => void): void => store.connection.write(run)
  expect(() => migrate({ ...target, write }, [...readMigrations(), broken])).toThrow(/already exists/)
  expect(database.prepare("SELECT name FROM sqlite_schema WHERE name = 'half'").all()).toEqual([])
  store.close()
})

test('a file with tables of its own keeps them', () => {
  const path = freshPath()
  const database = new Database(path)
  database.exec("CREATE TABLE orders (id); INSERT INTO orders VALUES ('o1')")
  const store = openStore({ path })
  store.call('job.enqueue', { jobs: [job('1')] })
  expect(database.prepare('SELECT * FROM orders').all()).toEqual([{ id: 'o1' }])
  database.close()
  store.close()
})

test('ten first starts at once make one store', async () => {
  const path = freshPath()
  const backends = await Promise.all(Array.from({ length: 10 }, () => open(path)))
  await Promise.all(backends.map((backend, index) => backend.call('job.enqueue', { jobs: [job(String(index))] })))
  const { grants } = (await backends[0]?.call('job.turn', { settlements: [], claims: [claim()], resend: false })) ?? {}
  expect(grants?.[0]?.jobs).toHaveLength(10)
  await Promise.all(backends.map((backend) => backend.close()))
})
