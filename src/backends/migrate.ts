/**
 * Migrations apart from opening a store, for deployments where another role makes the tables: the SQL that is missing, and its
 * application. Redis and memory have no tables; their stores bring themselves up to date when they are opened.
 */
import { invalidArgument } from '../errors.ts'
import type { BackendOptions } from './backend.ts'
import { parseStoreUrl } from './open.ts'
import { isPostgresUrl } from './postgres/url.ts'
import { type Migration, titleOf } from './sql/migration.ts'

export interface MigrateRequest extends BackendOptions {
  readonly url: string
  /** A role of PostgreSQL that gets the rights it needs to run jobs. */
  readonly role: string | undefined
  /** How long the migration may take, once the store is reached. */
  readonly timeoutMs: number
}

/** What a migration does, or would do. */
export interface MigrationReport {
  readonly store: string
  /** As it is: before what is only planned, after what was done. Null for a store that has none, or was not looked at. */
  readonly schemaVersion: number | null
  /** Names of the migrations, in order. */
  readonly migrations: readonly string[]
  /** What would be run; null where it was run. */
  readonly sql: string | null
}

const titles = (migrations: readonly Migration[]): readonly string[] => migrations.map(titleOf)

/** Changes nothing. */
export async function planStore(request: MigrateRequest): Promise<MigrationReport> {
  const { url } = request
  if (isPostgresUrl(url)) return onPostgres(request, true)
  refuseRole(request)
  const location = parseStoreUrl(url)
  if (location.kind !== 'sqlite') return { store: location.kind, schemaVersion: null, migrations: [], sql: '' }
  const { planMigration } = await import('./sqlite/migration-plan.ts')
  const { version, missing, sql } = planMigration(location.path)
  return { store: 'sqlite', schemaVersion: version, migrations: titles(missing), sql }
}

/** Null for a store that migrates when it is opened, and does nothing else. */
export async function migrateStore(request: MigrateRequest): Promise<MigrationReport | null> {
  if (isPostgresUrl(request.url)) return onPostgres(request, false)
  refuseRole(request)
  return null
}

function refuseRole({ role }: MigrateRequest): void {
  if (role !== undefined) throw invalidArgument('role', 'only a PostgreSQL store has roles')
}

async function onPostgres(request: MigrateRequest, isPlan: boolean): Promise<MigrationReport> {
  const [{ parsePostgresUrl }, { openLink }, { migrate, planMigration }] = await Promise.all([
    import('./postgres/url.ts'),
    import('./postgres/connect.ts'),
    import('./postgres/migrate.ts'),
  ])
  // Whoever asks for it wants it, whatever the URL of the workers says.
  const location = { ...parsePostgresUrl(request.url), isMigrating: true }
  const link = await openLink(location, request)
  const options = { ...request, location }
  try {
    const { version, applied, sql } = isPlan
      ? await planMigration(link, options)
      : { ...(await migrate(link, options)), sql: null }
    return { store: 'postgres', schemaVersion: version, migrations: titles(applied), sql }
  } finally {
    await link.close()
  }
}
