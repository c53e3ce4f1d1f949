/**
 * Brings the tables of a schema up to date, by the migrations in `migration/` and the ledger in the schema. All runs in one transaction
 * under a lock of the schema's own, so first starts may race. A schema that is up to date needs no right but to read the ledger.
 */
import { createHash } from 'node:crypto'
import { HoldfastError, invalidArgument } from '../../errors.ts'
import {
  type LedgerRow,
  lastVersion,
  type Migration,
  migrationsIn,
  missingMigrations,
  type Named,
} from '../sql/migration.ts'
import { type LinkOptions, openLink } from './connect.ts'
import { sqlStateOf } from './errors.ts'
import type { Link, PostgresLink, Prepared } from './link.ts'
import type { PostgresLocation } from './location.ts'
import { createLedger, createSchema, grants, ledgerOf, recordOf, textOf } from './migration-text.ts'
import { TEXTS } from './texts.js'

/** The migrations of this release, in order. */
export const readMigrations = (): readonly Migration[] => migrationsIn(TEXTS)

export interface MigrateOptions extends LinkOptions {
  readonly location: PostgresLocation
  /** Gets the rights that a worker or a producer needs. */
  readonly role?: string | undefined
  /** How long it may take once the server is reached. Default: as long as opening. */
  readonly timeoutMs?: number
  readonly migrations?: readonly Migration[]
}

/** `applied`: what this call did, in order. */
export interface Migrated {
  readonly version: number
  readonly applied: readonly Migration[]
}

const GIVE_UP_MS = 1000

/** Nothing that is done here is done often. */
const once = (name: string, text: string): Prepared => ({ name, text, isOnce: true })

interface Target {
  readonly schema: string
  readonly migrations: readonly Migration[]
  readonly role: string | undefined
  readonly named: Named
}

/**
 * Over a link that is open, and another one with time enough where there is something to do. Rejects with UNSUPPORTED where it may not,
 * STORE_SCHEMA_TOO_NEW, STORE_CORRUPT, or STORE_BUSY when others did not end in time.
 */
export async function migrate(link: PostgresLink, options: MigrateOptions): Promise<Migrated> {
  const { location, timeoutMs = options.openDeadlineMs } = options
  const target = targetOf(link, options)
  const ledger = await readLedger((statement, values) => link.query(statement, values), target)
  const missing = missingMigrations(target.migrations, ledger, target.named)
  const version = lastVersion(target.migrations, ledger)
  if (missing.length === 0 && target.role === undefined) return { version, applied: [] }
  if (missing.length > 0 && !location.isMigrating) throw notMigrated(target, { ledger, why: 'migrate=off' })
  const limits = { statementMs: timeoutMs, lockMs: timeoutMs, idleMs: timeoutMs, repeatMs: timeoutMs }
  const single = location.kind === 'url' ? { ...location, connections: 1 } : location
  // The server gives up first. What there is to warn of, the link that is open has warned of.
  const more = { warn: () => {}, limits: { ...limits, answerMs: timeoutMs + GIVE_UP_MS } }
  const worker = await openLink(single, { ...options, ...more })
  try {
    const applied = await worker.transaction((query) => apply(query, target, timeoutMs))
    return { version, applied }
  } catch (error) {
    if (sqlStateOf(error) === '42501') throw notMigrated(target, { ledger, why: 'this role may not change it', error })
    if (sqlStateOf(error) === '42704') throw invalidArgument('role', `there is no role '${target.role}'`)
    throw error
  } finally {
    await worker.close()
  }
}

/** Throws STORE_SCHEMA_TOO_NEW once a later release has changed the tables so that this one must not write to them any more. */
export async function checkLedger(link: PostgresLink, options: MigrateOptions): Promise<void> {
  const target = targetOf(link, options)
  const ledger = await readLedger((statement, values) => link.query(statement, values), target)
  missingMigrations(target.migrations, ledger, target.named)
}

/** The SQL that `migrate` would run, for those who run it by hand; with no role, the rights that one needs are told in comments. */
export async function planMigration(link: PostgresLink, options: MigrateOptions): Promise<Migrated & { sql: string }> {
  const target = targetOf(link, options)
  const query: Link['query'] = (statement, values) => link.query(statement, values)
  const ledger = await readLedger(query, target)
  const applied = missingMigrations(target.migrations, ledger, target.named)
  const { hasSchema, hasLedger } = await look(query, target)
  const steps = [
    ...(hasSchema ? [] : [createSchema(target.schema)]),
    ...(hasLedger ? [] : [createLedger(target.schema)]),
    ...applied.flatMap((migration) => [textOf(migration, target.schema), recordOf(migration, target.schema)]),
    ...(target.role === undefined ? [] : [grants(target.schema, target.role)]),
  ]
  const work =
    applied.length === 0 && target.role === undefined ? [] : ['BEGIN;', lockText(target), ...steps, 'COMMIT;']
  const advice = target.role === undefined ? [adviceOn(target.schema)] : []
  return { version: lastVersion(ledger), applied, sql: `${[...work, ...advice].join('\n\n')}\n` }
}

function adviceOn(schema: string): string {
  const lines = grants(schema, 'NAME').split('\n')
  return [
    '-- A role that only runs jobs needs no more than this (--role NAME puts it in):',
    ...lines.map((line) => `-- ${line}`),
  ].join('\n')
}

function targetOf(link: PostgresLink, { location, role, migrations = readMigrations() }: MigrateOptions): Target {
  const { server } = link.facts
  const { schema } = location
  const named = { store: `PostgreSQL at ${server}, schema ${schema}`, details: { server, schema } }
  return { schema, role, migrations, named }
}

function notMigrated(
  { named, migrations }: Target,
  { ledger, why, error }: { ledger: readonly LedgerRow[]; why: string; error?: unknown },
): HoldfastError {
  const [have, need] = [lastVersion(ledger), lastVersion(migrations)]
  const said = error instanceof Error ? ` (${error.message})` : ''
  const message = `${named.store} is at version ${have}, this release needs ${need}, and ${why}: run 'holdfast migrate' as a role that may create tables${said}`
  return new HoldfastError('UNSUPPORTED', message, {
    details: { outcome: 'refused', code: 'NOT_MIGRATED', ...named.details, version: have, neededVersion: need },
    cause: error,
  })
}

async function apply(query: Link['query'], target: Target, timeoutMs: number): Promise<readonly Migration[]> {
  const { schema, migrations, role, named } = target
  const run = (name: string, text: string) => query(once(name, text), [])
  // A pooler, the role or the database may have other settings.
  const timeouts = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']
  await run('timeouts', timeouts.map((name) => `SET LOCAL ${name} = ${Math.ceil(timeoutMs)};`).join(' '))
  await run('lock', lockText(target))
  const { hasSchema, hasLedger } = await look(query, target)
  // Not `IF NOT EXISTS`: that asks for the right to create it even where it is there.
  if (!hasSchema) await run('schema', createSchema(schema))
  if (!hasLedger) await run('ledger', createLedger(schema))
  // Another process may have been first while this one waited for the lock.
  const missing = missingMigrations(migrations, await readLedger(query, target), named)
  for (const migration of missing) {
    await run(migration.name, textOf(migration, schema))
    await run('record', recordOf(migration, schema))
  }
  if (role !== undefined) await run('grants', grants(schema, role))
  return missing
}

/** One for each schema of a database. */
function lockText({ schema }: Target): string {
  const key = createHash('sha1').update(`holdfast migration ${schema}`).digest().readBigInt64BE()
  return `SELECT pg_advisory_xact_lock(${key});`
}

interface Found {
  readonly hasSchema: boolean
  readonly hasLedger: boolean
}

/** From catalogs that everybody may read. */
async function look(query: Link['query'], { schema }: Target): Promise<Found> {
  const text = `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1) AS "hasSchema",
  EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'migration') AS "hasLedger"`
  return (await query(once('look', text), [schema])).rows[0] as Found
}

async function readLedger(query: Link['query'], target: Target): Promise<readonly LedgerRow[]> {
  const { hasLedger } = await look(query, target)
  if (!hasLedger) return []
  return (await query(once('ledger', ledgerOf(target.schema)), [])).rows as readonly LedgerRow[]
}
