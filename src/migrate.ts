/** `migrate(url)`: brings a store to the schema of this release apart from using it, or tells the SQL that would. */
import { migrateStore, planStore } from './backends/migrate.ts'
import { connect } from './client.ts'
import { systemClock } from './clock.ts'
import { DEFAULTS, type Duration, parseDuration, parseName, parseText, refuseUnknown } from './config.ts'
import { invalidArgument } from './errors.ts'
import { systemRandom } from './random.ts'
import { createLogger, type Warn } from './telemetry.ts'

export interface MigrateOptions {
  /** Changes nothing, and tells the SQL that would. */
  readonly dryRun?: boolean
  /** A role of PostgreSQL that gets the rights it needs to run jobs, and no others. */
  readonly role?: string
  readonly namespace?: string
  /** How long it may take once the store is reached, the wait for another process that migrates included. Default 10 min. */
  readonly deadline?: Duration
}

/** What was done, or would be. */
export interface Migrated {
  readonly store: string
  /** As it is now; null for a store without one. */
  readonly schemaVersion: number | null
  /** The migrations that were applied, or would be, in order; none where a store migrates by being opened. */
  readonly migrations: readonly string[]
  /** With `dryRun` what would be run; else null. */
  readonly sql: string | null
}

const OPTIONS = new Set(['dryRun', 'role', 'namespace', 'deadline'])
const DEADLINE_MS = 600_000
const ROLE_CHARS_MAX = 63

/** Creates the store where it is not there yet. Rejects as `connect` does. */
export async function migrate(url: string, options: MigrateOptions = {}): Promise<Migrated> {
  if (typeof url !== 'string') throw invalidArgument('url', 'expected the URL of a store')
  refuseUnknown(options, OPTIONS, 'migrate')
  const { dryRun = false } = options
  if (typeof dryRun !== 'boolean') throw invalidArgument('dryRun', 'expected true or false')
  const request = {
    url,
    role: options.role === undefined ? undefined : parseText(options.role, 'role', ROLE_CHARS_MAX),
    namespace: options.namespace === undefined ? DEFAULTS.namespace : parseName(options.namespace, 'namespace'),
    openDeadlineMs: DEFAULTS.callDeadlineMs,
    timeoutMs: options.deadline === undefined ? DEADLINE_MS : parseDuration(options.deadline, 'deadline'),
    clock: systemClock,
    random: systemRandom,
    warn: toWarn(),
  }
  if (dryRun) return planStore(request)
  return (await migrateStore(request)) ?? byOpening(url, request.namespace)
}

function toWarn(): Warn {
  const logger = createLogger()
  return (fields, message) => logger.warn(fields, message)
}

/** A store that does by itself what there is to do. */
async function byOpening(url: string, namespace: string): Promise<Migrated> {
  const client = await connect(url, { namespace })
  try {
    const { store } = await client.health()
    if (!store.ok) throw new Error(store.error ?? 'the store does not answer')
    const { schemaVersion } = store.details
    const known = typeof schemaVersion === 'number' ? schemaVersion : null
    return { store: store.name, schemaVersion: known, migrations: [], sql: null }
  } finally {
    await client.close()
  }
}
