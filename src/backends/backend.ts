/**
 * What stands behind the backend actor: one `call` for every message of the protocol, hints, and an end.
 * A call answers, or rejects with a HoldfastError whose `details.outcome` says whether anything may have been done.
 */
import type { Clock } from '../clock.ts'
import type { Random } from '../random.ts'
import type { Capabilities } from './capabilities.ts'
import type { MessageType, Reply, Request } from './protocol/index.ts'

/** How large one call may be; more is split by the backend actor. */
export interface BackendLimits {
  readonly enqueueJobs: number
  readonly turnSettlements: number
  readonly claimJobs: number
}

/** A lane that may have become ready; null: some lane. Only ever a hint. */
export type HintListener = (lane: string | null) => void

export interface Backend {
  readonly name: string
  readonly capabilities: Capabilities
  readonly limits: BackendLimits
  call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>>
  /** Returns a function that stops the hints. */
  onHint(listener: HintListener): () => void
  close(): Promise<void>
}

/** What the engine hands to a store. */
export interface BackendOptions {
  readonly namespace: string
  readonly clock: Clock
  readonly random: Random
}

/**
 * Outcome of a failed call, in `details.outcome` of its error: `notDone` may be repeated freely; `unknown` only with the
 * same ids and tokens; `refused` never succeeds as it is.
 */
export type FailedCallOutcome = 'notDone' | 'unknown' | 'refused'
