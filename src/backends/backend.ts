/**
 * What stands behind the backend actor: one `call` for every message of the protocol, hints, and an end.
 * A call answers, or rejects with a HoldfastError whose `details.outcome` says whether anything may have been done.
 */
import type { Clock } from '../clock.ts'
import type { Random } from '../random.ts'
import type { Warn } from '../telemetry.ts'
import type { Capabilities } from './capabilities.ts'
import type { LeaseTerms } from './lease-policy.ts'
import type { MessageType, Reply, Request } from './protocol/index.ts'
import type { TransactionalEnqueue } from './transactional.ts'

/** How large one call may be; more is split by the backend actor. */
export interface BackendLimits {
  readonly enqueueJobs: number
  readonly turnSettlements: number
  readonly claimJobs: number
}

/** A lane that may have become ready; null: some lane. Only ever a hint. */
export type HintListener = (lane: string | null) => void

/** Some running job may have been asked to stop, or taken from its owner by force. Only ever a hint. */
export type CancelListener = () => void

/** The hints of one worker. A hint that comes when none is wanted is harmless. */
export interface HintSubscription {
  /** Whether this worker has a free slot and nothing to claim: only then does a store spend a wake-up on it. False at first. */
  want(isWanted: boolean): void
  /** True while hints surely arrive, so that the poll behind them may be rarer. */
  readonly isReliable: boolean
  /** True while hints about cancellations surely arrive; else whoever runs jobs has to look. */
  readonly hearsCancels?: boolean
  stop(): void
}

/** A thread that renews the leases of one worker while its main loop cannot. */
export interface LeaseKeeping {
  /** False while it is being started or replaced: then the main loop alone renews. */
  readonly isReady: boolean
  /** Memory laid out as a `LeasePage`. */
  addPage(memory: SharedArrayBuffer): void
  stop(): void
}

export interface Backend {
  readonly name: string
  readonly capabilities: Capabilities
  readonly limits: BackendLimits
  /** Writes through the caller's own transaction; null: the store does not offer it. */
  readonly transactional: TransactionalEnqueue | null
  /**
   * True for a store elsewhere that works on one turn while the handlers of another run, and for which settling beside a claim costs
   * no more than settling with it. False where a turn costs a commit of its own or is answered at once.
   */
  readonly overlapsTurns: boolean
  call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>>
  /** Hints about these lanes; others may come too. */
  subscribe(lanes: readonly string[], listener: HintListener, onCancel?: CancelListener): HintSubscription
  /**
   * Hints that some jobs of the lane may have ended, until the returned function is called. While nobody in any process asks
   * for them, ending a job costs nothing more.
   */
  awaitEnds(lane: string, listener: () => void): () => void
  /**
   * The listener is called, and awaited, when the store may be another server than before (restart, failover): what is held is
   * renewed before anything is claimed. It never rejects. Returns a function that removes it.
   */
  onChange(listener: () => Promise<void>): () => void
  /** null: no thread of this store can, and leases are renewed on the main loop alone. */
  keepLeases(terms: LeaseTerms): LeaseKeeping | null
  close(): Promise<void>
}

/** What the engine hands to a store. */
export interface BackendOptions {
  readonly namespace: string
  readonly clock: Clock
  readonly random: Random
  /** Writes a warning to the log of the client; those of one `code` at most once a second. */
  readonly warn: Warn
  /** How long opening may take. */
  readonly openDeadlineMs: number
}

/**
 * Outcome of a failed call, in `details.outcome` of its error: `notDone` may be repeated freely; `unknown` only with the
 * same ids and tokens; `refused` never succeeds as it is.
 */
export type FailedCallOutcome = 'notDone' | 'unknown' | 'refused'
