/** What a dispatcher works with, whom it tells of what becomes of the jobs, and what it is told. */
import type { Reply, Settlement, Verdict } from '../backends/protocol/index.ts'
import type { HoldfastError } from '../errors.ts'
import type { AttemptEnvironment } from './attempt.ts'
import type { BackendActor } from './backend-actor.ts'
import type { JobActor } from './job-actor.ts'
import type { Keeper } from './lease-keepers.ts'
import type { WakeUps } from './notifier.ts'
import type { Ending, SentTurn } from './turn-queue.ts'

export interface DispatcherOptions {
  readonly backend: BackendActor
  readonly env: AttemptEnvironment
  readonly keeper: Keeper
  readonly wakeUps: WakeUps
  readonly lanes: readonly string[]
  readonly concurrency: number
  readonly leaseMs: number
  /** Most jobs held beyond the free slots; 0: none. */
  readonly prefetch: number
  readonly pollMs?: number
  /** False while too many slots are lost: what was claimed could not run. */
  readonly mayClaim?: () => boolean
  /** Told after the store has said what became of an ending. */
  readonly onSettled: (ending: Ending, verdict: Verdict) => void
  readonly onLost: (actor: JobActor) => void
  readonly onDeadlined: (ids: readonly string[]) => void
  readonly onError: (error: HoldfastError) => void
}

export type DispatcherMessage =
  | { readonly type: 'wake' }
  | { readonly type: 'heldTooLong' }
  | { readonly type: 'over'; readonly actor: JobActor; readonly settlement: Settlement | null }
  | { readonly type: 'turned'; readonly turn: SentTurn; readonly reply: Reply<'job.turn'> }
  | { readonly type: 'notTurned'; readonly turn: SentTurn; readonly error: HoldfastError }
