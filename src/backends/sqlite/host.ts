/**
 * The inside of the store's thread without the thread: opens the store, runs batches of messages, watches for commits of
 * other connections. After a commit whose outcome is not known, or once the path names another file, the connection is
 * thrown away and opened afresh, since its view of the file can no longer be trusted.
 */

import type { Reply, Request } from '../protocol/index.ts'
import { MEMORY_PATH, type Surroundings } from './connection.ts'
import { storeError, toWire } from './errors.ts'
import { type Call, runGroup } from './group-commit.ts'
import { SqliteStore, type SqliteStoreOptions } from './store.ts'
import type { FromThread } from './thread-messages.ts'

export type NumberedCall = Call & { readonly id: number }

export class StoreHost {
  private readonly options: SqliteStoreOptions
  private readonly surroundings: Surroundings
  private readonly post: (message: FromThread) => void
  private store: SqliteStore | null
  private seenVersion: unknown = null
  private isLogPinned = false

  /** Throws when the store cannot be opened. */
  constructor(options: SqliteStoreOptions, surroundings: Surroundings, post: (message: FromThread) => void) {
    this.options = options
    this.surroundings = surroundings
    this.post = post
    this.store = new SqliteStore(options, surroundings)
  }

  /** Runs calls that arrived together; all are answered. */
  run(calls: readonly NumberedCall[]): void {
    let store: SqliteStore
    try {
      store = this.store ?? new SqliteStore(this.options, this.surroundings)
      this.store = store
    } catch (error) {
      const wire = toWire(storeError(error, this.options.path, 'open'))
      for (const { id } of calls) this.post({ kind: 'error', id, error: wire })
      return
    }
    const answers = runGroup(store, calls)
    answers.forEach((answer, index) => {
      const id = calls[index]?.id ?? -1
      if ('reply' in answer) this.post({ kind: 'reply', id, reply: answer.reply })
      else this.post({ kind: 'error', id, error: toWire(answer.error) })
    })
    const isDoubtful = answers.some((answer) => 'error' in answer && answer.error.details.outcome === 'unknown')
    const isOver = isDoubtful || !store.connection.isUsable
    if (isOver && this.options.path !== MEMORY_PATH) this.discard(store)
    else if (calls.some(({ type }) => type === 'store.maintain')) this.housekeep(store)
  }

  /** Says it once when the log begins to stay, and once when it is well again. */
  private housekeep(store: SqliteStore): void {
    const bytes = store.connection.housekeep()
    if ((bytes !== null) === this.isLogPinned) return
    this.isLogPinned = bytes !== null
    this.post({ kind: 'logPinned', bytes })
  }

  private discard(store: SqliteStore): void {
    this.store = null
    try {
      store.close()
    } catch {
      // What could be told has been told with the failed call.
    }
  }

  /** For the leases of a main loop that cannot ask. Throws while there is no store; the next call opens it. */
  renew(request: Request<'lease.renew'>): Reply<'lease.renew'> {
    if (this.store === null) throw new Error('the store is not open')
    return this.store.call('lease.renew', request)
  }

  /** Says so when another connection has committed since the last look. */
  look(): void {
    if (this.store === null) return
    const version = this.versionOf(this.store)
    if (version === null) return
    const isNews = this.seenVersion !== null && version !== this.seenVersion
    this.seenVersion = version
    if (isNews) this.post({ kind: 'changed' })
  }

  /** null: it cannot be read now. This is for hints only, so whoever has work to do will hear why. */
  private versionOf(store: SqliteStore): unknown {
    try {
      return store.connection.dataVersion()
    } catch {
      return null
    }
  }

  close(): void {
    this.store?.close()
    this.store = null
  }
}
