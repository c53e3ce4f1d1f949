/**
 * The protocol on one connection, synchronous, for one namespace of the file. `handle` expects a transaction around it;
 * `call` puts one around a single message, `group-commit.ts` one around many.
 */
import { HoldfastError, isHoldfastError } from '../../errors.ts'
import type { MessageType, Reply, Request } from '../protocol/index.ts'
import { isRead, type PlannedType, plansOf } from '../sql/handlers.ts'
import { change, type Plan, read } from '../sql/plan.ts'
import { turnAt } from './claim.ts'
import { Connection, type ConnectionOptions, logBytes, type Surroundings } from './connection.ts'
import { storeError } from './errors.ts'
import { missingIn } from './migrate.ts'

export interface SqliteStoreOptions extends ConnectionOptions {
  readonly namespace: string
}

export class SqliteStore {
  readonly connection: Connection
  private readonly ns: number
  private readonly systemNow: () => number
  /** Why nothing is done any more. */
  private refusal: HoldfastError | null = null
  /** The store's time of the message at hand. */
  private now = 0
  private readonly plans = plansOf({ turn: turnAt(() => this.now), fence: null })

  constructor(options: SqliteStoreOptions, surroundings: Surroundings) {
    this.connection = new Connection(options, surroundings)
    this.systemNow = () => surroundings.clock.now()
    try {
      this.ns = this.namespaceOf(options.namespace)
    } catch (error) {
      this.connection.close()
      throw error
    }
  }

  /** Runs one message inside a transaction that is open. */
  handle<T extends MessageType>(type: T, request: Request<T>, nowMs?: number | null): Reply<T>
  handle(type: MessageType, request: unknown, nowMs: number | null = null): unknown {
    this.now = Math.floor(nowMs ?? this.systemNow())
    if (type === 'store.maintain') this.followLedger()
    if (this.refusal !== null) throw this.refusal
    if (type === 'store.health') return this.health(request as Request<'store.health'>)
    return this.run(this.planOf(type, request))
  }

  /** A later release may have migrated the file meanwhile, so that this one must not write to it any more. */
  private followLedger(): void {
    const { database, path } = this.connection
    try {
      missingIn(database, path)
    } catch (error) {
      if (isHoldfastError(error) && error.code === 'STORE_SCHEMA_TOO_NEW') this.refusal = error
      throw error
    }
  }

  private planOf(type: PlannedType, request: unknown): Plan<unknown> {
    const plan = this.plans[type] as (request: unknown) => Plan<unknown>
    return plan(request)
  }

  private run<T>(plan: Plan<T>): T {
    const { ns, now } = this
    return this.connection.sql.run(plan, { ns, now })
  }

  /** Runs one message in a transaction of its own. */
  call<T extends MessageType>(type: T, request: Request<T>, nowMs: number | null = null): Reply<T> {
    const run = (): Reply<T> => this.handle(type, request, nowMs)
    return isRead(type, request) ? this.connection.read(run) : this.connection.write(run)
  }

  private namespaceOf(name: string): number {
    const { connection } = this
    const scope = { ns: -1, now: 0 }
    const find = (): number | undefined =>
      connection.read(() => connection.sql.run(read<{ ns: number }>('namespace_find', [{ name }]), scope)[0]?.ns)
    const known = find()
    if (known !== undefined) return known
    // Nothing was ever written under it, and with no writes nothing will be.
    if (connection.isReadonly) return -1
    connection.write(() => connection.sql.run(change('namespace_add', [{ name }]), scope))
    const made = find()
    if (made === undefined) throw new HoldfastError('INTERNAL', `the namespace ${name} was not kept`)
    return made
  }

  private health({ rights = false }: Request<'store.health'>): Reply<'store.health'> {
    const { connection } = this
    const { database, path, versions } = connection
    const pragma = (name: string): number => Number(database.pragma(name, { simple: true }))
    const pageBytes = pragma('page_size')
    return {
      nowMs: this.now,
      details: {
        path,
        sqliteVersion: versions.sqlite,
        schemaVersion: versions.schema,
        bytes: pragma('page_count') * pageBytes,
        logBytes: logBytes(connection),
        freeBytes: pragma('freelist_count') * pageBytes,
        // A file that may not be written was refused when it was opened.
        ...(rights ? { missingRights: '' } : {}),
      },
    }
  }

  close(): void {
    try {
      this.connection.close()
    } catch (error) {
      throw storeError(error, this.connection.path, 'run')
    }
  }
}
