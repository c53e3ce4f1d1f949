/**
 * Policies of lanes, set and read. A change is made behind a fence: no claim that began before it ends after it, so that nothing of a lane
 * is claimed once its pause was answered, and what runs under a limit is all that runs.
 */
import { bucketUnder, changed, FULL_BUCKET, isLimited, limitsClaims, NO_LIMITS, tokensAt } from '../limits.ts'
import type { LanePolicy, LaneUsage, PolicyChange, Reply, Request, ThrottleCount } from '../protocol/index.ts'
import { FULL_KEYS_MAX } from '../protocol/index.ts'
import { atomically, change, type Plan, read } from './plan.ts'
import { bucketOf, type GateRow, gateRateOf, type LaneRow, laneRow, limitsOf } from './policy-row.ts'

export function* policy(
  { changes, usage = [] }: Request<'queue.policy'>,
  fence: (() => Plan<unknown>) | null,
): Plan<Reply<'queue.policy'>> {
  if (changes.length > 0) {
    yield* atomically(function* () {
      if (fence !== null) yield* fence()
      for (const one of changes) yield* changeLane(one)
    })
  }
  const rows = yield* read<LaneRow>('lane_list', [{}])
  const gates = yield* read<GateRow>('gate_list', [{}])
  const used: LaneUsage[] = []
  for (const lane of usage) {
    const same = (row: { readonly lane: string }): boolean => row.lane === lane
    used.push(yield* usageOf(lane, rows.find(same), gates.find(same)))
  }
  return { policies: policiesOf(rows, gates), usage: used }
}

function policiesOf(rows: readonly LaneRow[], gates: readonly GateRow[]): readonly LanePolicy[] {
  const lanes = [...new Set([...rows, ...gates].map(({ lane }) => lane))]
  return lanes.flatMap((lane) => {
    const row = rows.find((each) => each.lane === lane)
    const limits = limitsOf(
      row,
      gates.find((each) => each.lane === lane),
    )
    const paused = row?.paused === 1
    return paused || isLimited(limits) ? [{ lane, paused, ...limits }] : []
  })
}

function* changeLane({ lane, paused, ...limits }: PolicyChange): Plan<void> {
  const [row] = yield* read<LaneRow>('limit_lock', [{ lane }])
  const [gate] = yield* read<GateRow>('gate_lock', [{ lane }])
  const before = limitsOf(row, gate)
  const after = changed(before, limits)
  const isPaused = paused ?? row?.paused === 1
  const hasParked = row?.limited === 1 && (yield* isAnyParked(lane))
  const mustLook = limitsClaims(after) || hasParked
  if (isPaused || mustLook) {
    const bucket = row === undefined ? FULL_BUCKET : bucketUnder(before.rate, after.rate, bucketOf(row))
    const set = { ...laneRow({ lane, paused: isPaused, ...after }, bucket), limited: mustLook ? 1 : 0 }
    yield* change('lane_set', [set])
  } else if (row !== undefined) yield* change('lane_drop', [{ lane }])
  if (after.enqueueRate !== null) {
    const { limit, perMs } = after.enqueueRate
    const bucket = gate === undefined ? FULL_BUCKET : bucketUnder(before.enqueueRate, after.enqueueRate, bucketOf(gate))
    const rate = { rate_limit: limit, rate_per_ms: perMs, rate_debt: bucket.debt, rate_at: bucket.at }
    yield* change('gate_set', [{ lane, ...rate }])
  } else if (gate !== undefined) yield* change('gate_drop', [{ lane }])
  if (!isLimited(after) && !hasParked && isLimited(before)) yield* change('throttle_drop', [{ lane }])
}

export function* isAnyParked(lane: string): Plan<boolean> {
  return (yield* read('parked_keys', [{ lane, after: '', limit: 1 }])).length > 0
}

interface HolderRow {
  readonly key: string | null
  readonly jobs: number
}

/** How many jobs of a lane run, and how many with each key. */
export function* holdersOf(lane: string): Plan<{ readonly inFlight: number; readonly keys: Map<string, number> }> {
  const rows = yield* read<HolderRow>('holder_count', [{ lane }])
  const keys = new Map<string, number>()
  for (const { key, jobs } of rows) if (key !== null) keys.set(key, jobs)
  return { inFlight: rows.reduce((sum, { jobs }) => sum + jobs, 0), keys }
}

interface ThrottleRow {
  readonly reason: ThrottleCount['reason']
  readonly count: number
  readonly first_at: number
  readonly last_at: number
}

function* usageOf(lane: string, row: LaneRow | undefined, gate: GateRow | undefined): Plan<LaneUsage> {
  const { rate, maxPerKey } = row === undefined ? NO_LIMITS : limitsOf(row, gate)
  const { inFlight, keys } = yield* holdersOf(lane)
  const full = [...keys].filter(([, held]) => maxPerKey !== null && held >= maxPerKey).map(([key]) => key)
  const [parked] = yield* read<{ jobs: number }>('parked_count', [{ lane }])
  const throttles = yield* read<ThrottleRow>('throttle_list', [{ lane }])
  return {
    lane,
    inFlight,
    tokens: row === undefined || rate === null ? null : tokensAt(rate, bucketOf(row), row.now),
    enqueueTokens: gate === undefined ? null : tokensAt(gateRateOf(gate), bucketOf(gate), gate.now),
    fullKeys: full.sort().slice(0, FULL_KEYS_MAX),
    parked: parked?.jobs ?? 0,
    throttles: throttles.map(({ reason, count, first_at, last_at }) => ({
      reason,
      count,
      firstAt: first_at,
      lastAt: last_at,
    })),
  }
}
