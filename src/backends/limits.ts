/**
 * The arithmetic of limits, pure: token buckets in whole numbers, how many of a lane may start, and why not more. Memory, SQLite and
 * PostgreSQL decide here; `src/lua/include/limits.lua` does the same.
 */
import type { LaneLimits, RateLimit, ThrottleReason } from './protocol/index.ts'

/**
 * What was taken and has not been filled up again, in tokens × `perMs`, at a time of the store. So all is whole numbers, and the same in
 * Lua and here.
 */
export interface Bucket {
  readonly debt: number
  readonly at: number
}

export const FULL_BUCKET: Bucket = { debt: 0, at: 0 }

/** Time that went back fills nothing, and from then on counts anew. */
function debtAt({ limit }: RateLimit, { debt, at }: Bucket, now: number): number {
  return Math.max(0, debt - Math.max(0, now - at) * limit)
}

export function tokensAt(rate: RateLimit, bucket: Bucket, now: number): number {
  const { perMs, burst } = rate
  return Math.max(0, Math.floor((burst * perMs - debtAt(rate, bucket, now)) / perMs))
}

export function taken(rate: RateLimit, bucket: Bucket, now: number, count: number): Bucket {
  return { debt: debtAt(rate, bucket, now) + count * rate.perMs, at: now }
}

/** Time until there is a token; 0: there is one. */
export function nextTokenInMs(rate: RateLimit, bucket: Bucket, now: number): number {
  const { limit, perMs, burst } = rate
  return Math.max(0, Math.ceil((debtAt(rate, bucket, now) + perMs - burst * perMs) / limit))
}

/** The bucket after the rate was set: as it was under the same rate, full under another. */
export function bucketUnder(before: RateLimit | null, after: RateLimit | null, bucket: Bucket): Bucket {
  const isSame =
    before !== null &&
    after !== null &&
    before.limit === after.limit &&
    before.perMs === after.perMs &&
    before.burst === after.burst
  return isSame ? bucket : FULL_BUCKET
}

/** The limits after a change. */
export const changed = (limits: LaneLimits, change: Partial<LaneLimits>): LaneLimits => ({
  maxInFlight: change.maxInFlight === undefined ? limits.maxInFlight : change.maxInFlight,
  rate: change.rate === undefined ? limits.rate : change.rate,
  maxPerKey: change.maxPerKey === undefined ? limits.maxPerKey : change.maxPerKey,
  enqueueRate: change.enqueueRate === undefined ? limits.enqueueRate : change.enqueueRate,
})

export const NO_LIMITS: LaneLimits = { maxInFlight: null, rate: null, maxPerKey: null, enqueueRate: null }

/** True when claims have to look at limits. */
export const limitsClaims = ({ maxInFlight, rate, maxPerKey }: LaneLimits): boolean =>
  maxInFlight !== null || rate !== null || maxPerKey !== null

export const isLimited = (limits: LaneLimits): boolean => limitsClaims(limits) || limits.enqueueRate !== null

/** What a claim may start of a lane, by each limit. */
export interface Allowance {
  readonly slots: number
  readonly tokens: number
}

export function allowanceOf(limits: LaneLimits, bucket: Bucket, inFlight: number, now: number): Allowance {
  const { maxInFlight, rate } = limits
  return {
    slots: maxInFlight === null ? Number.POSITIVE_INFINITY : Math.max(0, maxInFlight - inFlight),
    tokens: rate === null ? Number.POSITIVE_INFINITY : tokensAt(rate, bucket, now),
  }
}

export interface Outcome {
  readonly wanted: number
  readonly granted: number
  /** Ready jobs are left that were not looked at. */
  readonly hasReady: boolean
  readonly hasParked: boolean
}

/** Why a claim was given less than it wanted though work was left; null: no limit was to blame. */
export function throttleOf({ slots, tokens }: Allowance, outcome: Outcome): ThrottleReason | null {
  const { wanted, granted, hasReady, hasParked } = outcome
  if (granted >= wanted || !(hasReady || hasParked)) return null
  if (granted < Math.min(slots, tokens)) return hasReady ? null : 'KEY_LIMIT_EXCEEDED'
  return slots <= tokens ? 'IN_FLIGHT_EXCEEDED' : 'RATE_EXCEEDED'
}

/** Whether the same claim again might be given something. */
export function mayGiveMore({ slots, tokens }: Allowance, outcome: Outcome): boolean {
  const { wanted, granted, hasReady, hasParked } = outcome
  if (granted >= Math.min(slots, tokens)) return false
  return granted >= wanted ? hasReady || hasParked : hasReady
}
