/**
 * A caller's own pool in the place of a URL. Its connections are borrowed for one statement or transaction at a time and given back;
 * it is never ended, and nothing is set on its connections that would outlast a statement.
 */
import type { Pool, PoolClient } from 'pg'
import type { Deadlines } from '../../deadlines.ts'
import { invalidArgument } from '../../errors.ts'
import { Borrowing, type ClientSource } from './client-source.ts'
import { addressOf, DEFAULT_PORT, DEFAULT_SCHEMA, type PoolLocation, schemaProblem, type Target } from './location.ts'
import type { PoolOptions } from './pool-options.ts'
import type { DriverTls } from './tls.ts'
import { isPostgresUrl, parseTarget } from './url.ts'
import type { Wiring } from './wiring.ts'

const OPTIONS = new Set(['schema', 'pooler', 'listen', 'notify', 'migrate'])

/** Told apart by shape, since it may come from another copy of pg. */
export function isPostgresPool(value: unknown): value is Pool {
  if (typeof value !== 'object' || value === null) return false
  const { connect, query, totalCount, idleCount, options } = value as Readonly<Record<string, unknown>>
  if (typeof connect !== 'function' || typeof query !== 'function') return false
  return typeof totalCount === 'number' && typeof idleCount === 'number' && typeof options === 'object'
}

/** Throws INVALID_ARGUMENT or INVALID_URL. */
export function locationOfPool(pool: Pool, options: PoolOptions = {}): PoolLocation {
  for (const name of Object.keys(options))
    if (!OPTIONS.has(name)) throw invalidArgument(name, `no such option; known are ${[...OPTIONS].sort().join(', ')}`)
  const { schema = DEFAULT_SCHEMA, pooler, listen, notify = true, migrate = true } = options
  const problem = schemaProblem(schema)
  if (problem !== null) throw invalidArgument('schema', problem)
  if (pooler !== undefined && pooler !== 'transaction') throw invalidArgument('pooler', "expected 'transaction'")
  for (const [name, value] of Object.entries({ notify, migrate }))
    if (typeof value !== 'boolean') throw invalidArgument(name, 'expected true or false')
  if (listen !== undefined && listen !== false && !isPostgresUrl(listen))
    throw invalidArgument('listen', 'expected a postgres:// URL, or false')
  return {
    kind: 'pool',
    pool,
    schema,
    isPooled: pooler !== undefined,
    isMigrating: migrate,
    isNotifying: notify,
    listen: listen === undefined ? undefined : listen === false ? null : parseTarget(listen),
  }
}

/** As messages name it. A connection string is not read: it may be anything that the driver takes. */
function serverOfPool({ options }: Pool): string {
  const { host, port, database } = options
  if (typeof host !== 'string' || host === '') return 'the given pool'
  return `${addressOf({ host, port: Number(port ?? DEFAULT_PORT) })}${database === undefined ? '' : `, database ${database}`}`
}

/** What the files of a URL would say; a pool has it in its own options. */
const NO_FILES = { rootFile: undefined, certificateFile: undefined, keyFile: undefined }

export interface PoolTarget {
  readonly target: Target
  readonly tls: DriverTls | null
}

/**
 * Where the pool's connections go, in plain data, so that another thread can go there too. null: a function is in it, or something
 * that only the driver understands.
 */
export function targetOfPool({ options }: Pool): PoolTarget | null {
  const { connectionString, host, port, user, password, database, ssl, stream, Client, application_name } = options
  if (stream !== undefined || Client !== undefined || typeof password === 'function') return null
  if (connectionString !== undefined) {
    const isPlain = ssl === undefined && isPostgresUrl(connectionString)
    return isPlain ? targetOfUrl(connectionString) : null
  }
  // Then the driver would ask the environment how to encrypt.
  if (ssl === undefined && process.env.PGSSLMODE !== undefined) return null
  if (host === undefined && process.env.PGHOST !== undefined) return null
  const tls = typeof ssl === 'object' ? { ...ssl, ...(ssl.key === undefined ? {} : { key: ssl.key }) } : (ssl ?? false)
  const target = {
    endpoints: [{ host: host ?? 'localhost', port: Number(port ?? DEFAULT_PORT) }],
    ...{ database, user, password },
    tls: { mode: 'disable', ...NO_FILES },
    applicationName: application_name ?? 'holdfast',
  } as const
  return { target, tls }
}

function targetOfUrl(url: string): PoolTarget | null {
  try {
    return { target: parseTarget(url), tls: null }
  } catch {
    return null
  }
}

export class CallerPool implements ClientSource {
  readonly server: string
  readonly isRefusingSettings = false
  private readonly pool: Pool
  private readonly borrowing: Borrowing
  private readonly listeners = new Set<(error: Error) => void>()

  constructor(pool: Pool, wiring: Wiring, deadlines: Deadlines) {
    this.pool = pool
    this.server = serverOfPool(pool)
    this.borrowing = new Borrowing(pool, this.server, wiring, deadlines)
  }

  onIdleError(listener: (error: Error) => void): void {
    this.pool.on('error', listener)
    this.listeners.add(listener)
  }

  connect(): Promise<PoolClient> {
    return this.borrowing.take()
  }

  /** Where the next connection goes is the pool's business. */
  passOn(): void {}

  async close(): Promise<void> {
    this.borrowing.close()
    for (const listener of this.listeners) this.pool.removeListener('error', listener)
    this.listeners.clear()
  }
}
