/**
 * Brings the tables of a file up to date, by the migrations in `migration/` and the ledger in the file. All runs in one transaction
 * under the write lock, so first starts may race.
 */
import type Database from 'better-sqlite3'
import { HoldfastError } from '../../errors.ts'
import {
  type LedgerRow,
  lastVersion,
  type Migration,
  migrationsIn,
  missingMigrations,
  type Named,
} from '../sql/migration.ts'
import { TEXTS } from './texts.js'

interface LedgerRecord {
  readonly version: number
  readonly name: string
  readonly checksum: string
  readonly breaking: number
}

/** The migrations of this release, in order. */
export const readMigrations = (): readonly Migration[] => migrationsIn(TEXTS)

export const LEDGER = `CREATE TABLE IF NOT EXISTS holdfast_migration (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, breaking INTEGER NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT`

function readLedger(database: Database.Database): readonly LedgerRow[] {
  const table = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'holdfast_migration'")
    .get()
  if (table === undefined) return []
  return database
    .prepare<[], LedgerRecord>('SELECT version, name, checksum, breaking FROM holdfast_migration ORDER BY version')
    .all()
    .map(({ breaking, ...row }) => ({ ...row, isBreaking: breaking === 1 }))
}

const named = (path: string): Named => ({ store: `the SQLite store ${path}`, details: { path } })

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
  const { database, path } = target
  const before = readLedger(database)
  const missing = missingMigrations(migrations, before, named(path))
  if (missing.length > 0 && target.isReadonly) {
    const message = `the SQLite store ${path} needs a migration and is open for reading`
    throw new HoldfastError('STORE_READONLY', message, { details: { path, outcome: 'refused' } })
  }
  if (missing.length > 0) target.write(() => apply(target, migrations))
  return lastVersion(migrations, before)
}

/** What `migrate` would apply. Throws as it does. */
export function missingIn(
  database: Database.Database,
  path: string,
  migrations: readonly Migration[] = readMigrations(),
): readonly Migration[] {
  return missingMigrations(migrations, readLedger(database), named(path))
}

function apply({ database, path, nowMs }: Migrating, migrations: readonly Migration[]): void {
  database.exec(LEDGER)
  const add = database.prepare('INSERT INTO holdfast_migration VALUES (?, ?, ?, ?, ?)')
  // Another process may have been first while this one waited for the lock.
  for (const { version, name, text, checksum, isBreaking } of missingIn(database, path, migrations)) {
    database.exec(text)
    add.run(version, name, checksum, isBreaking ? 1 : 0, nowMs)
  }
}
