/** What a start would change in a file, without changing it: for those who want to see the SQL first. */
import { existsSync } from 'node:fs'
import { lastVersion, type Migration } from '../sql/migration.ts'
import { MEMORY_PATH } from './connection.ts'
import { storeError } from './errors.ts'
import { LEDGER, missingIn, readMigrations } from './migrate.ts'
import { loadDriver } from './open-checks.ts'

export interface MigrationPlan {
  /** Before anything is done. */
  readonly version: number
  readonly missing: readonly Migration[]
  readonly sql: string
}

/** A file that is not there yet is made by all of them. Throws a HoldfastError. */
export function planMigration(path: string): MigrationPlan {
  const missing = path === MEMORY_PATH || !existsSync(path) ? readMigrations() : missingInFile(path)
  const isMissing = (version: number): boolean => missing.some((each) => each.version === version)
  return {
    version: lastVersion(readMigrations().filter(({ version }) => !isMissing(version))),
    missing,
    sql:
      missing.length === 0 ? '' : ['BEGIN IMMEDIATE;', `${LEDGER};`, ...missing.map(textOf), 'COMMIT;\n'].join('\n\n'),
  }
}

function missingInFile(path: string): readonly Migration[] {
  try {
    const database = new (loadDriver())(path, { readonly: true, fileMustExist: true })
    try {
      return missingIn(database, path)
    } finally {
      database.close()
    }
  } catch (error) {
    throw storeError(error, path, 'open')
  }
}

function textOf({ version, name, text, checksum, isBreaking }: Migration): string {
  const values = `${version}, '${name}', '${checksum}', ${isBreaking ? 1 : 0}, unixepoch() * 1000`
  return `${text.trim()}\n\nINSERT INTO holdfast_migration VALUES (${values});`
}
