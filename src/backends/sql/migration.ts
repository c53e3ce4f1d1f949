/**
 * Migrations of SQL stores: numbered files, append-only, and a ledger in the store that keeps the checksum of each that was applied. A
 * changed checksum is STORE_CORRUPT, one from a later release that is marked `--! breaking` is STORE_SCHEMA_TOO_NEW.
 */
import { createHash } from 'node:crypto'
import { HoldfastError } from '../../errors.ts'
import { type Texts, textAt } from './text.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
  readonly checksum: string
  /** An earlier release must not write to a store that has it. */
  readonly isBreaking: boolean
}

/** What the store knows of one that was applied. */
export type LedgerRow = Omit<Migration, 'text'>

/** As errors name the store. */
export interface Named {
  /** Such as `the SQLite store jobs.db`. */
  readonly store: string
  readonly details: Readonly<Record<string, unknown>>
}

const FILE = /^migration\/(\d{4})-([a-z0-9-]+)\.sql$/

/** The migrations among the texts of a store, in order. */
export function migrationsIn(texts: Texts): readonly Migration[] {
  return Object.keys(texts)
    .sort()
    .flatMap((path) => {
      const match = FILE.exec(path)
      return match === null ? [] : [migrationOf(Number(match[1]), match[2] ?? '', textAt(texts, path))]
    })
}

export function migrationOf(version: number, name: string, text: string): Migration {
  const checksum = createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex')
  return { version, name, text, checksum, isBreaking: /^--! breaking\b/m.test(text) }
}

/** As messages name it. */
export const titleOf = ({ version, name }: Pick<Migration, 'version' | 'name'>): string =>
  `${String(version).padStart(4, '0')}-${name}`

/** Those that were not applied. Throws when the store was changed by other hands or by a release that this one must not follow. */
export function missingMigrations(
  migrations: readonly Migration[],
  ledger: readonly LedgerRow[],
  { store, details }: Named,
): readonly Migration[] {
  const known = new Map(migrations.map((migration) => [migration.version, migration]))
  for (const { version, name, checksum, isBreaking } of ledger) {
    const migration = known.get(version)
    const about = { details: { ...details, version, name, outcome: 'refused' } }
    if (migration === undefined && isBreaking) {
      const message = `${store} was migrated to ${version} (${name}) by a later release of Holdfast`
      throw new HoldfastError('STORE_SCHEMA_TOO_NEW', message, about)
    }
    if (migration !== undefined && migration.checksum !== checksum) {
      const message = `${store}: migration ${version} (${name}) is not the one of this release`
      throw new HoldfastError('STORE_CORRUPT', message, about)
    }
  }
  const applied = new Set(ledger.map(({ version }) => version))
  return migrations.filter(({ version }) => !applied.has(version))
}

/** The last version among them; 0: none. */
export function lastVersion(...lists: readonly (readonly Pick<Migration, 'version'>[])[]): number {
  return Math.max(0, ...lists.flat().map(({ version }) => version))
}
