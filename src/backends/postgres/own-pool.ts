/**
 * The pool of a store that was opened by its URL: a few connections, each to the first of the given servers that is a primary, with
 * settings that hold whatever the role or the database says. A pooler refuses such settings; from then on there are none.
 */
import { Client, type ClientConfig, Pool, type PoolClient } from 'pg'
import type { Timers } from '../../clock.ts'
import type { Deadlines } from '../../deadlines.ts'
import { Borrowing, type ClientSource } from './client-source.ts'
import { isStartupRefused, verdictOf } from './errors.ts'
import { type Endpoint, serverOf, type Target } from './location.ts'
import type { DriverTls } from './tls.ts'
import type { Limits, Wiring } from './wiring.ts'

const KEEP_ALIVE_MS = 10_000
/** How long a connection may take to say goodbye; one whose other side is gone would keep the process alive. */
const GOODBYE_MS = 500

/**
 * To plan the hot statements costs 1 to 3 ms, more than to run them, so a plan is kept (see `plan-age.ts` for how long).
 * Just-in-time compilation costs more than any of the statements, to read a whole table is right only while that is small, and what has an
 * index in its order is not to be sorted, however few rows the planner expects.
 */
const PLANNING = ['plan_cache_mode=force_generic_plan', 'jit=off', 'enable_seqscan=off', 'enable_sort=off']
const ISOLATION = 'default_transaction_isolation=read\\ committed'

export interface OwnPoolOptions {
  readonly target: Target
  readonly tls: DriverTls
  readonly connections: number
  /** Known to be behind a pooler. */
  readonly isPlain: boolean
}

/** What a connection is made with. */
export function clientConfig(target: Target, endpoint: Endpoint, tls: DriverTls): ClientConfig {
  const { user, password, database, applicationName } = target
  return {
    host: endpoint.host,
    port: endpoint.port,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password }),
    ...(database === undefined ? {} : { database }),
    // A copy: the driver changes what it is given.
    ssl: typeof tls === 'object' ? { ...tls } : tls,
    application_name: applicationName,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  }
}

/** Settings in the first packet of a connection of its own. */
export function sessionSettings(limits: Limits): ClientConfig {
  return {
    statement_timeout: limits.statementMs,
    lock_timeout: limits.lockMs,
    idle_in_transaction_session_timeout: limits.idleMs,
    options: [...PLANNING, ISOLATION].map((setting) => `-c ${setting}`).join(' '),
  }
}

export class OwnPool implements ClientSource {
  readonly server: string
  private readonly options: OwnPoolOptions
  private readonly limits: Limits
  private readonly pool: Pool
  private readonly borrowing: Borrowing
  private readonly timers: Timers
  private readonly clients = new Set<PoolClient>()
  private isPlain: boolean
  /** Of the endpoints, the one that is connected to. */
  private at = 0

  constructor(options: OwnPoolOptions, wiring: Wiring, deadlines: Deadlines) {
    const { target, connections } = options
    this.options = options
    this.limits = wiring.limits
    this.timers = wiring.timers
    this.isPlain = options.isPlain
    this.server = serverOf(target)
    const nextConfig = (): ClientConfig => this.config()
    class NextClient extends Client {
      constructor() {
        super(nextConfig())
      }
    }
    this.pool = new Pool({
      Client: NextClient,
      max: connections,
      connectionTimeoutMillis: wiring.limits.connectMs,
      idleTimeoutMillis: 0,
    })
    this.pool.on('connect', (client: PoolClient) => this.clients.add(client))
    this.pool.on('remove', (client: PoolClient) => this.clients.delete(client))
    this.borrowing = new Borrowing(this.pool, this.server, wiring, deadlines)
  }

  get isRefusingSettings(): boolean {
    return this.isPlain && !this.options.isPlain
  }

  /** Of a connection that nobody has borrowed. */
  onIdleError(listener: (error: Error) => void): void {
    this.pool.on('error', listener)
  }

  /** Tries each server once. */
  async connect(): Promise<PoolClient> {
    for (let left = this.options.target.endpoints.length; ; left -= 1) {
      const { at, isPlain } = this
      try {
        return await this.borrowing.take()
      } catch (error) {
        if (!isPlain && isStartupRefused(error)) {
          this.isPlain = true
          left += 1
          continue
        }
        const isWaiting = error instanceof Error && error.message.includes('timeout exceeded when trying to connect')
        if (isWaiting || left <= 1 || !verdictOf(error, this.server, 'connect').error.retryable) throw error
        this.moveFrom(at)
      }
    }
  }

  passOn(client: PoolClient): void {
    const at = this.options.target.endpoints.findIndex(({ host, port }) => client.host === host && client.port === port)
    this.moveFrom(at)
  }

  async close(): Promise<void> {
    this.borrowing.close()
    await this.pool.end()
    this.timers.set(
      () => {
        for (const { connection } of this.clients) connection.stream.destroy()
      },
      GOODBYE_MS,
      true,
    )
  }

  /** Another borrower may have moved on already. */
  private moveFrom(at: number): void {
    if (at === this.at) this.at = (at + 1) % this.options.target.endpoints.length
  }

  private config(): ClientConfig {
    const { target, tls } = this.options
    const endpoint = target.endpoints[this.at] ?? { host: 'localhost', port: 5432 }
    return { ...clientConfig(target, endpoint, tls), ...(this.isPlain ? {} : sessionSettings(this.limits)) }
  }
}
