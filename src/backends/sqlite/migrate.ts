/**
 * Brings the tables of a file up to date. Migrations are numbered files, append-only; a ledger in the file keeps the
 * checksum of each that was applied. A changed checksum is STORE_CORRUPT, one from a later release that is marked
 * `--! breaking` is STORE_SCHEMA_TOO_NEW. All runs in one transaction under the write lock, so first starts may race.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { HoldfastError } from '../../errors.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
  readonly checksum: string
  /** An earlier release must not write to a file that has it. */
  readonly isBreaking: boolean
}

interface LedgerRow {
  readonly version: number
  readonly name: string
  readonly checksum: string
  readonly breaking: number
}

const FILE = /^(\d{4})-([a-z0-9-]+)\.sql$/
const folder = new URL('./migration/', import.meta.url)

/** The migrations of this release, in order. */
export function readMigrations(): readonly Migration[] {
  return readdirSync(folder)
    .sort()
    .flatMap((file) => {
      const match = FILE.exec(file)
      return match === null
        ? []
        : [migrationOf(Number(match[1]), match[2] ?? '', readFileSync(new URL(file, folder), 'utf8'))]
    })
}

export function migrationOf(version: number, name: string, text: string): Migration {
  const checksum = createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex')
  return { version, name, text, checksum, isBreaking: /^--! breaking\b/m.test(text) }
}

const LEDGER = `CREATE TABLE IF NOT EXISTS holdfast_migration (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, breaking INTEGER NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT`

function readLedger(database: Database.Database): readonly LedgerRow[] {
  const table = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'holdfast_migration'")
    .get()
  if (table === undefined) return []
  return database
    .prepare<[], LedgerRow>('SELECT version, name, checksum, breaking FROM holdfast_migration ORDER BY version')
    .all()
}

/** Throws when the file was changed by other hands or by a release that this one must not follow. */
function checkLedger(ledger: readonly LedgerRow[], known: ReadonlyMap<number, Migration>, path: string): void {
  for (const row of ledger) {
    const details = { path, version: row.version, name: row.name, outcome: 'refused' }
    const migration = known.get(row.version)
    if (migration === undefined && row.breaking === 1) {
      throw new HoldfastError(
        'STORE_SCHEMA_TOO_NEW',
        `the SQLite store ${path} was migrated to ${row.version} (${row.name}) by a later release of Holdfast`,
        { details },
      )
    }
    if (migration !== undefined && migration.checksum !== row.checksum) {
      throw new HoldfastError(
        'STORE_CORRUPT',
        `the SQLite store ${path}: migration ${row.version} (${row.name}) is not the one of this release`,
        { details },
      )
    }
  }
}

export interface Migrating {
  readonly database: Database.Database
  readonly path: string
  readonly isReadonly: boolean
  readonly nowMs: number
  /** Runs under the write lock, all or nothing. */
  write(run: () => void): void
}

/** Applies what is missing and returns the version of the file. */
export function migrate(target: Migrating, migrations: readonly Migration[] = readMigrations()): number {
  const known = new Map(migrations.map((migration) => [migration.version, migration]))
  const before = readLedger(target.database)
  checkLedger(before, known, target.path)
  const isComplete = migrations.every(({ version }) => before.some((row) => row.version === version))
  if (!isComplete && target.isReadonly) {
    throw new HoldfastError(
      'STORE_READONLY',
      `the SQLite store ${target.path} needs a migration and is open for reading`,
      {
        details: { path: target.path, outcome: 'refused' },
      },
    )
  }
  if (!isComplete) target.write(() => apply(target, migrations, known))
  return Math.max(0, ...migrations.map(({ version }) => version), ...before.map(({ version }) => version))
}

function apply(target: Migrating, migrations: readonly Migration[], known: ReadonlyMap<number, Migration>): void {
  const { database } = target
  database.exec(LEDGER)
  // Another process may have been first while this one waited for the lock.
  const ledger = readLedger(database)
  checkLedger(ledger, known, target.path)
  const done = new Set(ledger.map(({ version }) => version))
  const add = database.prepare('INSERT INTO holdfast_migration VALUES (?, ?, ?, ?, ?)')
  for (const { version, name, text, checksum, isBreaking } of migrations) {
    if (done.has(version)) continue
    database.exec(text)
    add.run(version, name, checksum, isBreaking ? 1 : 0, target.nowMs)
  }
}
