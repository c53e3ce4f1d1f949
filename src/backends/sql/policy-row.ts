/** The rows in which policies are kept, and what they say. */
import { type Bucket, NO_LIMITS } from '../limits.ts'
import type { LaneLimits, LanePolicy, RateLimit } from '../protocol/index.ts'
import type { Row } from './plan.ts'

export interface LaneRow {
  readonly lane: string
  readonly paused: number
  readonly max_in_flight: number | null
  readonly rate_limit: number | null
  readonly rate_per_ms: number | null
  readonly rate_burst: number | null
  readonly rate_debt: number
  readonly rate_at: number
  readonly max_per_key: number | null
  readonly limited: number
  readonly parked_after: string
  readonly now: number
}

export interface GateRow {
  readonly lane: string
  readonly rate_limit: number
  readonly rate_per_ms: number
  readonly rate_debt: number
  readonly rate_at: number
  readonly now: number
}

export const bucketOf = (row: Pick<GateRow, 'rate_debt' | 'rate_at'>): Bucket => ({
  debt: row.rate_debt,
  at: row.rate_at,
})

export const gateRateOf = ({ rate_limit: limit, rate_per_ms: perMs }: GateRow): RateLimit => ({
  limit,
  perMs,
  burst: limit,
})

export function limitsOf(row: LaneRow | undefined, gate: GateRow | undefined): LaneLimits {
  const enqueueRate = gate === undefined ? null : gateRateOf(gate)
  if (row === undefined) return { ...NO_LIMITS, enqueueRate }
  const { rate_limit: limit, rate_per_ms: perMs, rate_burst: burst } = row
  const rate = limit === null || perMs === null || burst === null ? null : { limit, perMs, burst }
  return { maxInFlight: row.max_in_flight, rate, maxPerKey: row.max_per_key, enqueueRate }
}

/** What `lane_set` is given. */
export function laneRow({ lane, paused, maxInFlight, rate, maxPerKey }: LanePolicy, bucket: Bucket): Row {
  return {
    lane,
    paused: paused ? 1 : 0,
    max_in_flight: maxInFlight,
    rate_limit: rate?.limit ?? null,
    rate_per_ms: rate?.perMs ?? null,
    rate_burst: rate?.burst ?? null,
    rate_debt: bucket.debt,
    rate_at: bucket.at,
    max_per_key: maxPerKey,
  }
}
