/**
 * The protocol on one connection, synchronous, for one namespace of the file. `handlers` do the work and expect a
 * transaction around them; `call` puts one around a single message, `group-commit.ts` one around many.
 */
import { HoldfastError } from '../../errors.ts'
import type { MessageType, Reply, Request, SyncBackendHandlers } from '../protocol/index.ts'
import { turn } from './claim.ts'
import { Connection, type ConnectionOptions, logBytes, type Surroundings } from './connection.ts'
import { cancel, maintain, policy, promote } from './control.ts'
import { enqueue } from './enqueue.ts'
import { storeError } from './errors.ts'
import { progress, reap, renew } from './lease.ts'
import { get, history, list, stats } from './read.ts'
import type { Session } from './statement.ts'

export interface SqliteStoreOptions extends ConnectionOptions {
  readonly namespace: string
}

const READS: ReadonlySet<MessageType> = new Set<MessageType>([
  'job.get',
  'job.list',
  'job.history',
  'queue.stats',
  'store.health',
])

export class SqliteStore {
  readonly connection: Connection
  private readonly session: Session
  /** The time that came with the message at hand; null: the clock of the thread. */
  private nowMs: number | null = null

  constructor(options: SqliteStoreOptions, surroundings: Surroundings) {
    this.connection = new Connection(options, surroundings)
    try {
      const { clock } = surroundings
      const ns = this.namespaceOf(options.namespace)
      this.session = { sql: this.connection.sql, ns, now: () => Math.floor(this.nowMs ?? clock.now()) }
    } catch (error) {
      this.connection.close()
      throw error
    }
  }

  readonly handlers = {
    'job.enqueue': (request) => enqueue(this.session, request),
    'job.turn': (request) => turn(this.session, request),
    'lease.renew': (request) => renew(this.session, request),
    'lease.reap': (request) => reap(this.session, request),
    'job.progress': (request) => progress(this.session, request),
    'job.cancel': (request) => cancel(this.session, request),
    'job.promote': (request) => promote(this.session, request),
    'job.get': (request) => get(this.session, request),
    'job.list': (request) => list(this.session, request),
    'job.history': (request) => history(this.session, request),
    'queue.stats': (request) => stats(this.session, request),
    'queue.policy': (request) => policy(this.session, request),
    'store.maintain': (request) => maintain(this.session, request),
    'store.health': () => this.health(),
  } satisfies SyncBackendHandlers

  /** Runs one message inside a transaction that is open. */
  handle<T extends MessageType>(type: T, request: Request<T>, nowMs: number | null = null): Reply<T> {
    this.nowMs = nowMs
    const handler = this.handlers[type] as (request: Request<T>) => Reply<T>
    return handler(request)
  }

  /** Runs one message in a transaction of its own. */
  call<T extends MessageType>(type: T, request: Request<T>, nowMs: number | null = null): Reply<T> {
    const run = (): Reply<T> => this.handle(type, request, nowMs)
    return isRead(type, request) ? this.connection.read(run) : this.connection.write(run)
  }

  private namespaceOf(name: string): number {
    const { connection } = this
    const find = (): number | undefined =>
      connection.read(() => connection.sql.get<{ ns: number }>('namespace_find', { name })?.ns)
    const known = find()
    if (known !== undefined) return known
    // Nothing was ever written under it, and with no writes nothing will be.
    if (connection.isReadonly) return -1
    connection.write(() => connection.sql.run('namespace_add', { name }))
    const made = find()
    if (made === undefined) throw new HoldfastError('INTERNAL', `the namespace ${name} was not kept`)
    return made
  }

  private health(): Reply<'store.health'> {
    const { connection, session } = this
    const { database, path, versions } = connection
    const pragma = (name: string): number => Number(database.pragma(name, { simple: true }))
    const pageBytes = pragma('page_size')
    return {
      nowMs: session.now(),
      details: {
        path,
        sqliteVersion: versions.sqlite,
        schemaVersion: versions.schema,
        bytes: pragma('page_count') * pageBytes,
        logBytes: logBytes(connection),
        freeBytes: pragma('freelist_count') * pageBytes,
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

/** True when the message writes nothing, so it need not wait for writers. */
export function isRead<T extends MessageType>(type: T, request: Request<T>): boolean {
  if (READS.has(type)) return true
  // An idle system looks for expired leases and lane policies all the time.
  if ('decisions' in request) return request.decisions.length === 0
  return 'changes' in request && request.changes.length === 0
}
