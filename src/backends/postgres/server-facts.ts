/** What a server tells about itself: read on each connection before anything else is sent on it, with no right but to connect. */
import type { Capabilities } from '../capabilities.ts'
import { unsupported } from './errors.ts'

export interface ServerFacts {
  readonly version: string
  readonly encoding: string
  readonly synchronousCommit: string
  readonly isFsync: boolean
  readonly isFullPageWrites: boolean
  readonly hasSynchronousStandbys: boolean
  readonly defaultIsolation: string
}

export interface ServerReport {
  readonly versionNumber: number
  readonly isStandby: boolean
  /** Another text: another server, another start, or another history of writes than before. */
  readonly identity: string
  readonly facts: ServerFacts
}

const OLDEST_VERSION = 130_000

const SETTINGS = `current_setting('server_version') AS version,
  current_setting('server_version_num') AS version_number,
  current_setting('server_encoding') AS encoding,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_standby_names') AS synchronous_standby_names,
  current_setting('default_transaction_isolation') AS default_isolation,
  pg_is_in_recovery() AS is_standby,
  extract(epoch FROM pg_postmaster_start_time())::text AS started_at`

/**
 * A crash of one process restarts all others but not the postmaster, and may lose commits that were not flushed; from 15 on it
 * resets the statistics, which tells it apart.
 */
export const REPORT = `SELECT ${SETTINGS},
  (SELECT system_identifier::text FROM pg_catalog.pg_control_system()) AS system_id,
  CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline,
  CASE WHEN current_setting('server_version_num')::int4 >= 150000
    THEN (SELECT stats_reset::text FROM pg_catalog.pg_stat_bgwriter) END AS statistics_since`

/** Of a service that hides its files; a failover there is seen by the start of the other server. */
export const SHORT_REPORT = `SELECT ${SETTINGS}, '' AS system_id, '' AS timeline, '' AS statistics_since`

/** The two columns that are no text are decoded by the driver as `decode.ts` says. */
export function readReport(row: unknown): ServerReport {
  const fields = (typeof row === 'object' && row !== null ? row : {}) as Readonly<Record<string, unknown>>
  const text = (name: string): string => String(fields[name] ?? '')
  return {
    versionNumber: Number(text('version_number')),
    isStandby: fields.is_standby === true,
    identity: ['system_id', 'timeline', 'started_at', 'statistics_since'].map(text).join(' '),
    facts: {
      version: text('version').replace(/ .*/, ''),
      encoding: text('encoding'),
      synchronousCommit: text('synchronous_commit'),
      isFsync: text('fsync') === 'on',
      isFullPageWrites: text('full_page_writes') === 'on',
      hasSynchronousStandbys: text('synchronous_standby_names') !== '',
      defaultIsolation: text('default_isolation'),
    },
  }
}

/** UNSUPPORTED is the code, since the server lacks what the store needs and neither retrying nor other arguments can help. */
export function checkServer({ versionNumber, facts }: ServerReport, server: string): void {
  if (!(versionNumber >= OLDEST_VERSION)) {
    const message = `PostgreSQL at ${server} has version ${facts.version || 'unknown'}; Holdfast needs 13 or later`
    throw unsupported('SERVER_VERSION', message, server)
  }
  if (facts.encoding !== 'UTF8') {
    const message = `PostgreSQL at ${server}: the database has encoding ${facts.encoding}; create one with ENCODING 'UTF8'`
    throw unsupported('ENCODING', message, server)
  }
}

/** Settings of synchronous_commit that wait for a standby to have written the commit down. */
const REPLICATING: ReadonlySet<string> = new Set(['on', 'remote_apply'])

/** What an acknowledged commit survives on this server. */
export function durabilityOf(facts: ServerFacts): Capabilities['durability'] {
  if (facts.synchronousCommit === 'off') return 'everysec'
  if (!facts.isFsync) return 'process'
  if (facts.hasSynchronousStandbys && REPLICATING.has(facts.synchronousCommit)) return 'replicated'
  // Without whole pages in the log a power cut may tear one; what was flushed is there, but perhaps not readable.
  return facts.isFullPageWrites ? 'power' : 'always'
}
