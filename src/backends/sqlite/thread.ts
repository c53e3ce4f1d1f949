/**
 * The main-thread end of one store thread: numbers the calls, keeps those that wait for an answer, and rejects them all
 * when the thread dies. The process is kept alive only while calls wait. Owned by `SqliteBackend`.
 */
import { Worker } from 'node:worker_threads'
import { HoldfastError } from '../../errors.ts'
import { type WorkerRole, workerFile } from '../../worker-file.ts'
import type { ToKeeper } from '../lease-thread-messages.ts'
import type { MessageType, Reply } from '../protocol/index.ts'
import { fromWire } from './errors.ts'
import type { Call } from './group-commit.ts'
import type { FromThread, ThreadData, ToThread } from './thread-messages.ts'

interface Pending {
  resolve(reply: Reply<MessageType>): void
  reject(error: Error): void
}

export interface ThreadEvents {
  /** Another connection has committed. */
  changed(): void
  /** The log cannot be cut back and has this size. */
  logPinned(bytes: number): void
  /** The thread is gone, whatever the reason; no more calls can be sent. */
  ended(): void
}

export class StoreThread {
  /** Settles once the store is open, or could not be opened. */
  readonly opened: Promise<void>
  private readonly worker: Worker
  private readonly path: string
  private readonly events: ThreadEvents
  private readonly pending = new Map<number, Pending>()
  private readonly opening: { resolve(): void; reject(error: Error): void }
  private readonly exited: Promise<void>
  private lastId = 0
  /** What calls that still wait are told when the thread ends. */
  private endError: HoldfastError | null = null

  constructor(data: ThreadData, events: ThreadEvents) {
    this.path = data.store.path
    this.events = events
    let opening = { resolve: (): void => {}, reject: (_error: Error): void => {} }
    this.opened = new Promise((resolve, reject) => {
      opening = { resolve, reject }
    })
    this.opened.catch(() => {}) // Those who wait for it are told; nobody may be waiting.
    this.opening = opening
    this.worker = new Worker(workerFile(), { argv: ['sqlite-store' satisfies WorkerRole], workerData: data })
    this.worker.on('message', (message: FromThread) => this.receive(message))
    this.worker.on('error', (error) => this.fail(this.died(error)))
    this.exited = new Promise((resolve) => {
      this.worker.once('exit', () => {
        this.end()
        resolve()
      })
    })
  }

  call(call: Call): Promise<Reply<MessageType>> {
    return new Promise((resolve, reject) => {
      this.lastId += 1
      this.send({ kind: 'call', id: this.lastId, ...call })
      if (this.pending.size === 0) this.worker.ref()
      this.pending.set(this.lastId, { resolve, reject })
    })
  }

  /** Throws before anything is sent when a value cannot cross to a thread. */
  private send(message: ToThread): void {
    try {
      this.post(message)
    } catch (cause) {
      const problem = cause instanceof Error ? cause.message : String(cause)
      const details = { path: this.path, outcome: 'refused' }
      throw new HoldfastError('INVALID_ARGUMENT', `a value cannot be sent to the store: ${problem}`, { details, cause })
    }
  }

  watch(isWatching: boolean): void {
    this.post({ kind: 'watch', isWatching })
  }

  /** Tells of leases to renew while the main loop cannot. */
  tell(message: ToKeeper): void {
    this.post(message)
  }

  /** Ends the thread once all that was sent is done. */
  close(): Promise<void> {
    this.worker.ref()
    this.post({ kind: 'close' })
    return this.exited
  }

  private post(message: ToThread): void {
    this.worker.postMessage(message)
  }

  private receive(message: FromThread): void {
    switch (message.kind) {
      case 'opened':
        if (this.pending.size === 0) this.worker.unref()
        this.opening.resolve()
        break
      case 'openFailed':
        this.fail(fromWire(message.error))
        break
      case 'reply':
        this.take(message.id)?.resolve(message.reply)
        break
      case 'error':
        this.take(message.id)?.reject(fromWire(message.error))
        break
      case 'changed':
        this.events.changed()
        break
      case 'logPinned':
        if (message.bytes !== null) this.events.logPinned(message.bytes)
        break
      default:
        message satisfies never
    }
  }

  private take(id: number): Pending | undefined {
    const pending = this.pending.get(id)
    this.pending.delete(id)
    if (this.pending.size === 0) this.worker.unref()
    return pending
  }

  private died(cause?: unknown): HoldfastError {
    return new HoldfastError('STORE_UNAVAILABLE', `the thread of the SQLite store ${this.path} ended`, {
      details: { path: this.path, outcome: 'unknown' },
      cause,
    })
  }

  private fail(error: HoldfastError): void {
    this.endError ??= error
    this.opening.reject(this.endError)
    for (const { reject } of this.pending.values()) reject(this.endError)
    this.pending.clear()
    this.events.ended()
  }

  private end(): void {
    this.fail(this.died())
  }
}
