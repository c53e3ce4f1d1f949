/**
 * Where a PostgreSQL store is and how it is used, as a URL or a caller's own pool tells it, in the form that connections are made
 * from. The text that messages name a server by is made here, and never holds a secret.
 */
import type { Pool } from 'pg'

export interface Endpoint {
  /** A name, an address, or the folder of a Unix socket. */
  readonly host: string
  readonly port: number
}

/** As libpq has it: `require` encrypts and believes any certificate, `verify-ca` checks who signed it, `verify-full` also for whom. */
export type SslMode = 'disable' | 'require' | 'verify-ca' | 'verify-full'

/** TLS, with the paths of files that are read when the store is opened. */
export interface Tls {
  readonly mode: SslMode
  readonly rootFile: string | undefined
  readonly certificateFile: string | undefined
  readonly keyFile: string | undefined
}

/** What a connection is made from. */
export interface Target {
  /** At least one; the first that is a primary is used. */
  readonly endpoints: readonly Endpoint[]
  readonly database: string | undefined
  readonly user: string | undefined
  readonly password: string | undefined
  readonly tls: Tls
  readonly applicationName: string
}

/** How the store is used, whatever it is reached by. */
export interface StoreSettings {
  /** The schema of the tables. */
  readonly schema: string
  /** Whether opening may create or change tables. */
  readonly isMigrating: boolean
  /** Whether this process tells others of new jobs. */
  readonly isNotifying: boolean
}

export interface UrlLocation extends StoreSettings {
  readonly kind: 'url'
  readonly target: Target
  /** Behind a pooler that gives each transaction another connection; else it is found out. */
  readonly isPooled: boolean
  /** Connections for everything but LISTEN. */
  readonly connections: number
  /** Where the one connection for LISTEN goes: null for nowhere, undefined for the same server. */
  readonly listen: Target | null | undefined
}

export interface PoolLocation extends StoreSettings {
  readonly kind: 'pool'
  /** The caller's: used, and never ended. */
  readonly pool: Pool
  readonly isPooled: boolean
  /** Null for nowhere, undefined for where the pool connects to. */
  readonly listen: Target | null | undefined
}

export type PostgresLocation = UrlLocation | PoolLocation

export const DEFAULT_SCHEMA = 'holdfast'
export const DEFAULT_PORT = 5432

/** PostgreSQL cuts longer names without a word. */
const SCHEMA = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/

/** What is wrong with the name of a schema, or null. It is quoted wherever it is used; the strictness is for people. */
export function schemaProblem(schema: unknown): string | null {
  if (typeof schema !== 'string' || !SCHEMA.test(schema))
    return "expected 1 to 63 letters, digits, '_' or '-', the first one a letter or '_'"
  return /^pg_|^information_schema$/i.test(schema) ? `'${schema}' belongs to PostgreSQL` : null
}

export const isSocket = ({ host }: Endpoint): boolean => host.startsWith('/')

/** `host:port`, with brackets around an IPv6 address, or the path of the socket. */
export function addressOf(endpoint: Endpoint): string {
  const { host, port } = endpoint
  if (isSocket(endpoint)) return `${host}/.s.PGSQL.${port}`
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** As messages name the server. */
export function serverOf({ endpoints, database }: Target): string {
  return `${endpoints.map(addressOf).join(', ')}${database === undefined ? '' : `, database ${database}`}`
}
