/** The messages about lanes and the store as a whole: counts, policies, maintenance, health. */
import type { JobState, TerminalState } from '../../job.ts'
import type { KeepDead } from './job-messages.ts'

export interface LaneStats {
  readonly lane: string
  readonly paused: boolean
  readonly counts: Readonly<Record<JobState, number>>
  /** Age of the oldest job that could run now; null: none. */
  readonly oldestReadyMs: number | null
}

/** A token bucket on the store's clock: it holds `burst` tokens at most and gains `limit` in each `perMs`. */
export interface RateLimit {
  readonly limit: number
  readonly perMs: number
  readonly burst: number
}

/** null: not limited. */
export interface LaneLimits {
  /** Running jobs of the lane, over all workers. */
  readonly maxInFlight: number | null
  /** Starts. */
  readonly rate: RateLimit | null
  /** Running jobs of the lane that have the same concurrency key. */
  readonly maxPerKey: number | null
  /** Accepted jobs. */
  readonly enqueueRate: RateLimit | null
}

export interface LanePolicy extends LaneLimits {
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

/** What is not named stays as it is. */
export interface PolicyChange extends Partial<LaneLimits> {
  readonly lane: string
  readonly paused?: boolean
}

const THROTTLE_REASONS = ['IN_FLIGHT_EXCEEDED', 'RATE_EXCEEDED', 'KEY_LIMIT_EXCEEDED', 'ENQUEUE_RATE_EXCEEDED'] as const

/** Why a claim was given less than it could have run, or an enqueue was refused. */
export type ThrottleReason = (typeof THROTTLE_REASONS)[number]

/** How often a limit of the lane held something back. Times are the store's. */
export interface ThrottleCount {
  readonly reason: ThrottleReason
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
}

export interface LaneUsage {
  readonly lane: string
  /** Leases of the lane. */
  readonly inFlight: number
  /** Starts that the rate permits now; null: no rate. */
  readonly tokens: number | null
  /** Enqueues that their rate permits now; null: no rate. */
  readonly enqueueTokens: number | null
  /** Keys that have as many running jobs as they may, up to `FULL_KEYS_MAX`, in order. */
  readonly fullKeys: readonly string[]
  /** Queued jobs that were set aside since their key is, or was, at its limit. */
  readonly parked: number
  /** Since the lane has had limits, by reason, those that occurred. */
  readonly throttles: readonly ThrottleCount[]
}

export const FULL_KEYS_MAX = 100

export interface StoreProtocol {
  /** `lanes` null: all lanes that have a job or a policy. */
  'queue.stats': {
    request: { readonly lanes: readonly string[] | null }
    reply: { readonly lanes: readonly LaneStats[] }
  }
  /** Sets policies, then gives those of all lanes that have one, and how much of them is used in the lanes of `usage`. */
  'queue.policy': {
    request: { readonly changes: readonly PolicyChange[]; readonly usage?: readonly string[] }
    reply: { readonly policies: readonly LanePolicy[]; readonly usage: readonly LaneUsage[] }
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
