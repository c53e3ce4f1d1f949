/** What crosses between the backend on the main thread and the thread of its store: plain data, both ways. */
import type { BoardMessage, ToKeeper } from '../lease-thread-messages.ts'
import type { MessageType, Reply } from '../protocol/index.ts'
import type { WireError } from './errors.ts'
import type { Call } from './group-commit.ts'
import type { SqliteStoreOptions } from './store.ts'

/** Handed to the thread when it starts. */
export interface ThreadData {
  readonly store: SqliteStoreOptions
  /** Leases to renew while the main loop cannot, and what its clock showed when the one of all threads showed nothing. */
  readonly boards: readonly BoardMessage[]
  readonly originMs: number
}

export type ToThread =
  | (Call & { readonly kind: 'call'; readonly id: number })
  /** Whether somebody wants to hear of commits by other connections. */
  | { readonly kind: 'watch'; readonly isWatching: boolean }
  | ToKeeper

export type FromThread =
  | { readonly kind: 'opened' }
  | { readonly kind: 'openFailed'; readonly error: WireError }
  | { readonly kind: 'reply'; readonly id: number; readonly reply: Reply<MessageType> }
  | { readonly kind: 'error'; readonly id: number; readonly error: WireError }
  | { readonly kind: 'changed' }
  /** Somebody keeps the log from being cut back: how large it is; null: no longer so. */
  | { readonly kind: 'logPinned'; readonly bytes: number | null }
