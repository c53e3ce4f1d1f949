/** What a dispatcher works with, and whom it tells of what becomes of the jobs. */
import type { Verdict } from '../backends/protocol/index.ts'
import type { HoldfastError } from '../errors.ts'
import type { AttemptEnvironment } from './attempt.ts'
import type { BackendActor } from './backend-actor.ts'
import type { JobActor } from './job-actor.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import type { WakeUps } from './notifier.ts'
import type { Ending } from './turn-queue.ts'

export interface DispatcherOptions {
  readonly backend: BackendActor
  readonly env: AttemptEnvironment
  readonly keeper: LeaseKeeper
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
