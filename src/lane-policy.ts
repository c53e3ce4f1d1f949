/** Policies of lanes as users write and read them: every limit is checked here, before a store is asked. */
import type { LanePolicy, LaneUsage, PolicyChange, RateLimit, ThrottleCount } from './backends/protocol/index.ts'
import { type Duration, LIMITS, parseDuration, parseInteger, parseName, refuseUnknown } from './config.ts'
import { invalidArgument } from './errors.ts'

/** `limit` in every `per`, at least 1 ms and at most 30 days. */
export interface EnqueueRate {
  readonly limit: number
  readonly per: Duration
}

export interface StartRate extends EnqueueRate {
  /** How many may start at once after a quiet time. Default `limit`. In any time t at most `burst + limit × t / per` start. */
  readonly burst?: number
}

/** null takes a limit away; what is not named stays as it is. */
export interface LanePolicyOptions {
  /** Running jobs of the lane at once, over all workers: 1 to 1,000,000. */
  readonly maxInFlight?: number | null
  /** Starts of jobs. */
  readonly rate?: StartRate | null
  /** Running jobs of the lane at once that have the same `concurrencyKey`. Jobs without one are not counted. */
  readonly maxPerKey?: number | null
  /** Accepted jobs; more are refused with ENQUEUE_RATE_EXCEEDED. Those of `enqueueTx` are neither counted nor refused. */
  readonly enqueueRate?: EnqueueRate | null
}

/** The policy of a lane and how much of it is used now. */
export interface LanePolicyReport extends LanePolicy, LaneUsage {}

export type { LanePolicy, ThrottleCount }

const OPTIONS = new Set(['maxInFlight', 'rate', 'maxPerKey', 'enqueueRate'])
const RATE_OPTIONS = new Set(['limit', 'per', 'burst'])
const ENQUEUE_RATE_OPTIONS = new Set(['limit', 'per'])

export function parsePolicy(lane: unknown, options: LanePolicyOptions): PolicyChange {
  refuseUnknown(options, OPTIONS, 'policy')
  const { maxInFlight, rate, maxPerKey, enqueueRate } = options
  return {
    lane: parseName(lane, 'lane'),
    ...(maxInFlight !== undefined && { maxInFlight: parseCount(maxInFlight, 'maxInFlight') }),
    ...(rate !== undefined && { rate: parseRate(rate, 'rate', RATE_OPTIONS) }),
    ...(maxPerKey !== undefined && { maxPerKey: parseCount(maxPerKey, 'maxPerKey') }),
    ...(enqueueRate !== undefined && { enqueueRate: parseRate(enqueueRate, 'enqueueRate', ENQUEUE_RATE_OPTIONS) }),
  }
}

const parseCount = (value: unknown, field: string): number | null =>
  value === null ? null : parseInteger(value, field, 1, LIMITS.lanePolicy)

function parseRate(value: StartRate | null, field: string, known: ReadonlySet<string>): RateLimit | null {
  if (value === null) return null
  refuseUnknown(value, known, field)
  const limit = parseInteger(value.limit, `${field}.limit`, 1, LIMITS.lanePolicy)
  const perMs = parseDuration(value.per, `${field}.per`)
  if (perMs < 1 || perMs > LIMITS.ratePeriodMs) {
    throw invalidArgument(`${field}.per`, 'expected 1 ms to 30 days', { min: 1, max: LIMITS.ratePeriodMs })
  }
  const burst = value.burst === undefined ? limit : parseInteger(value.burst, `${field}.burst`, 1, LIMITS.lanePolicy)
  return { limit, perMs, burst }
}
