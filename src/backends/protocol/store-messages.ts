/** The messages about lanes and the store as a whole: counts, pause, maintenance, health. */
import type { JobState, TerminalState } from '../../job.ts'
import type { KeepDead } from './job-messages.ts'

export interface LaneStats {
  readonly lane: string
  readonly paused: boolean
  readonly counts: Readonly<Record<JobState, number>>
  /** Age of the oldest job that could run now; null: none. */
  readonly oldestReadyMs: number | null
}

export interface LanePolicy {
  readonly lane: string
  readonly paused: boolean
}

/** The most ended jobs of each state that a lane keeps, those that came first removed; null: any number. */
export type StateCounts = Readonly<Record<TerminalState, number | null>>

export interface KeepCounts {
  readonly all: StateCounts
  /** Lanes that have their own. */
  readonly lanes: Readonly<Record<string, StateCounts>>
}

export interface StoreProtocol {
  /** `lanes` null: all lanes that have a job or a policy. */
  'queue.stats': {
    request: { readonly lanes: readonly string[] | null }
    reply: { readonly lanes: readonly LaneStats[] }
  }
  /** Sets policies, then gives those of all lanes that have one. */
  'queue.policy': {
    request: { readonly changes: readonly LanePolicy[] }
    reply: { readonly policies: readonly LanePolicy[] }
  }
  /** Removes up to `limit` terminal jobs and outputs whose time is over or that are too many; moves due jobs and passed deadlines of all lanes. */
  'store.maintain': {
    request: KeepDead & { readonly limit: number; readonly keepCounts?: KeepCounts }
    reply: {
      readonly pruned: number
      readonly outputsDropped: number
      readonly promoted: number
      readonly deadlined: number
      readonly more: boolean
    }
  }
  /** With `rights`, `details.missingRights` names what this user lacks; empty: nothing. */
  'store.health': {
    request: { readonly rights?: boolean }
    reply: { readonly nowMs: number; readonly details: Readonly<Record<string, string | number | boolean>> }
  }
}
