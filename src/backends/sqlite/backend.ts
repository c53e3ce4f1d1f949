/**
 * The SQLite store behind the backend interface, on the main thread: posts each message to the thread of the store and
 * waits. A thread that dies takes the calls in flight with it, outcome unknown; the next call starts another.
 */
import { sharedMonotonic, systemClock } from '../../clock.ts'
import { HoldfastError } from '../../errors.ts'
import type {
  Backend,
  BackendOptions,
  CancelListener,
  HintListener,
  HintSubscription,
  LeaseKeeping,
} from '../backend.ts'
import type { Capabilities } from '../capabilities.ts'
import { EndListeners } from '../end-listeners.ts'
import { LimitedLanes } from '../freed.ts'
import { LeaseBoards } from '../lease-boards.ts'
import type { LeaseTerms } from '../lease-policy.ts'
import { everyHint, neverChanges } from '../local.ts'
import type { MessageType, Reply, Request } from '../protocol/index.ts'
import { hintsOf } from '../sql/hint.ts'
import { type ConnectionOptions, MEMORY_PATH } from './connection.ts'
import type { Call } from './group-commit.ts'
import { StoreThread } from './thread.ts'
import { SqliteTransactional } from './transactional.ts'

export type SqliteBackendOptions = BackendOptions & ConnectionOptions

export const SQLITE_CAPABILITIES: Capabilities = Object.freeze({
  durableJobs: true,
  durability: 'power',
  sameHostProcesses: true,
  distributedWorkers: false,
  transactionalEnqueue: true,
  notifications: 'sameHost',
  ordering: Object.freeze(['fifo'] as const),
  retention: 'stored',
  leaseKeeper: 'thread',
  schedules: false,
  continuations: false,
  partitions: false,
  streams: false,
  rateLimits: true,
})

/** What is left of them without a file. */
const SQLITE_MEMORY_CAPABILITIES: Capabilities = Object.freeze({
  ...SQLITE_CAPABILITIES,
  durableJobs: false,
  durability: 'none',
  sameHostProcesses: false,
  transactionalEnqueue: false,
  notifications: 'process',
  retention: 'process',
  leaseKeeper: 'main',
})

export class SqliteBackend implements Backend {
  readonly name = 'sqlite'
  readonly overlapsTurns = false
  readonly capabilities: Capabilities
  readonly transactional: SqliteTransactional | null
  readonly limits = { enqueueJobs: 1_000, turnSettlements: 1_000, claimJobs: 1_000 }
  readonly onChange = neverChanges
  private readonly options: SqliteBackendOptions
  private readonly limited = new LimitedLanes()
  private readonly listeners = new Set<HintListener>()
  private readonly cancelListeners = new Set<CancelListener>()
  private readonly ends = new EndListeners()
  private thread: StoreThread | null = null
  private readonly boards = new LeaseBoards({
    post: (message) => this.thread?.tell(message),
    isReady: () => this.thread !== null,
  })
  private isClosed = false

  private constructor(options: SqliteBackendOptions) {
    this.options = options
    const isMemory = options.path === MEMORY_PATH
    this.capabilities = isMemory ? SQLITE_MEMORY_CAPABILITIES : SQLITE_CAPABILITIES
    const { path, namespace, clock, readonly = false } = options
    this.transactional = isMemory ? null : new SqliteTransactional({ path, namespace, clock, readonly })
  }

  /** Opens the file, creating and migrating it where needed. Rejects with one error naming the path. */
  static async open(options: SqliteBackendOptions): Promise<SqliteBackend> {
    const backend = new SqliteBackend(options)
    await backend.running().opened
    return backend
  }

  async call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>> {
    if (this.isClosed) throw new HoldfastError('CLOSED', 'the store was closed', { details: { outcome: 'refused' } })
    // The system's clock is read by the thread when it runs the message, which may be after a wait for the file.
    const nowMs = this.options.clock === systemClock ? null : this.options.clock.now()
    const reply = (await this.running().call({ type, request, nowMs } as Call)) as Reply<T>
    this.hintAfter(type, request, reply)
    return reply
  }

  private running(): StoreThread {
    if (this.thread !== null) return this.thread
    const { path, namespace, readonly = false, create = true, busyDeadlineMs } = this.options
    const store = { path, namespace, readonly, create, ...(busyDeadlineMs === undefined ? {} : { busyDeadlineMs }) }
    const originMs = sharedMonotonic() - this.options.clock.monotonic()
    const thread: StoreThread = this.spawn({ store, boards: this.boards.list(), originMs })
    this.thread = thread
    if (this.isWatching) thread.watch(true)
    return thread
  }

  private spawn(data: ConstructorParameters<typeof StoreThread>[0]): StoreThread {
    const thread: StoreThread = new StoreThread(data, {
      changed: () => {
        this.hint(null)
        for (const listener of this.cancelListeners) listener()
        this.ends.tell(null)
      },
      logPinned: (bytes) => this.warnOfLog(bytes),
      ended: () => {
        if (this.thread === thread) this.thread = null
      },
    })
    return thread
  }

  private warnOfLog(bytes: number): void {
    const { path, warn } = this.options
    const problem = `the log beside ${path} has ${Math.round(bytes / 1_048_576)} MiB and cannot be cut back`
    warn({ code: 'LOG_PINNED', path, bytes }, `${problem}: some process keeps a transaction open that reads the file`)
  }

  private hintAfter<T extends MessageType>(type: T, request: Request<T>, reply: Reply<T>): void {
    if (this.listeners.size === 0) return
    for (const lane of hintsOf(type, request, reply)) this.hint(lane)
    for (const lane of this.limited.freedBy(type, request, reply)) this.hint(lane)
  }

  private hint(lane: string | null): void {
    for (const listener of this.listeners) listener(lane)
  }

  subscribe(_lanes: readonly string[], listener: HintListener, onCancel?: CancelListener): HintSubscription {
    this.watchFor(() => this.listeners.add(listener))
    if (onCancel !== undefined) this.cancelListeners.add(onCancel)
    const subscription = everyHint(() => {
      if (onCancel !== undefined) this.cancelListeners.delete(onCancel)
      this.watchFor(() => this.listeners.delete(listener))
    })
    return { ...subscription, hearsCancels: true }
  }

  /** What this client itself ends it knows; here it is about others who write to the file. */
  awaitEnds(lane: string, listener: () => void): () => void {
    let remove = (): void => {}
    this.watchFor(() => {
      remove = this.ends.add(lane, listener)
    })
    return () => this.watchFor(remove)
  }

  private get isWatching(): boolean {
    return this.listeners.size > 0 || this.ends.isAwaited
  }

  /** The file is looked at while anybody listens. */
  private watchFor(change: () => void): void {
    const before = this.isWatching
    change()
    if (this.isWatching !== before) this.thread?.watch(this.isWatching)
  }

  keepLeases(terms: LeaseTerms): LeaseKeeping | null {
    // The thread renews by the system's clock, and would shorten leases of another one.
    const isPossible = this.capabilities.leaseKeeper === 'thread' && this.options.clock === systemClock
    return isPossible ? this.boards.open(terms) : null
  }

  /** Finishes what was sent, writes the log back, ends the thread. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.thread?.close()
  }
}
