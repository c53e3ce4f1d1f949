/** What crosses between the main thread and the one that renews leases on a connection of its own: plain data, both ways. */
import type { LeaseTerms } from './lease-policy.ts'
import type { PostgresPlace } from './postgres/renewer.ts'
import type { RedisPlace } from './redis/renewer.ts'

/** Where the leases are, in a form that can cross to a thread. */
export type LeasePlace = RedisPlace | PostgresPlace

export interface BoardMessage {
  readonly kind: 'board'
  readonly id: number
  readonly terms: LeaseTerms
  readonly pages: readonly SharedArrayBuffer[]
}

/** Handed to the thread when it starts. */
export interface KeeperData {
  readonly place: LeasePlace
  /** What the clock of the main thread showed when the one that all threads share showed nothing. */
  readonly originMs: number
  readonly boards: readonly BoardMessage[]
}

export type ToKeeper =
  | BoardMessage
  | { readonly kind: 'page'; readonly id: number; readonly memory: SharedArrayBuffer }
  | { readonly kind: 'end'; readonly id: number }
  | { readonly kind: 'close' }

/** `refused`: the store will have nothing to do with it, whatever the number of tries. */
export type FromKeeper = { readonly kind: 'ready' } | { readonly kind: 'refused'; readonly message: string }
