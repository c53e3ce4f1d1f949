/**
 * A claim on a lane under limits, inside a transaction that holds the lane's policy: one after the other, so that what is counted is still so
 * when the grant is written. What runs is counted from the leases. A job whose key is at its limit is parked when a claim meets it, and
 * met again only under its key, when that has a free place.
 *
 * Cost, with n jobs granted, R running and P parked jobs, K of their keys: O(R) to count, min(K, KEYS_MAX) look-ups by key, O(n) to grant,
 * and at most LOOKED_MAX jobs parked, each once for each time its key fills up again: a flood of one key is moved aside once.
 */
import type { JobId } from '../../job.ts'
import { allowanceOf, limitsClaims, mayGiveMore, nextTokenInMs, taken, throttleOf } from '../limits.ts'
import type { Claim, ClaimedJob, Throttle } from '../protocol/index.ts'
import { change, type Plan, read } from './plan.ts'
import { holdersOf, isAnyParked } from './policy.ts'
import { bucketOf, type GateRow, type LaneRow, limitsOf } from './policy-row.ts'

/** Keys with parked jobs that one claim looks at; the next one goes on behind them. */
const KEYS_MAX = 250
/** Jobs that one claim parks. */
const LOOKED_MAX = 1_000
const BATCH = 100
/** Parked jobs that one claim reads. */
const ASIDE_MAX = 5_000

export interface Candidate {
  readonly seq: number
  readonly id: JobId
  readonly key: string | null
  readonly priority: number
  readonly run_at: number
  readonly isParked: boolean
}

export interface LaneClaim {
  readonly claim: Claim
  readonly lane: string
  readonly wanted: number
  /** Of the first job that is granted. */
  readonly ordinal: number
}

export interface LaneGrant {
  readonly jobs: readonly ClaimedJob[]
  readonly more: boolean
  readonly throttle: Throttle | null
}

const NOTHING: LaneGrant = { jobs: [], more: false, throttle: null }

/** `grant` gives leases to what was picked, in that order. */
export function* claimLimited(
  laneClaim: LaneClaim,
  grant: (picked: readonly Candidate[], laneClaim: LaneClaim) => Plan<readonly ClaimedJob[]>,
): Plan<LaneGrant> {
  const { lane, wanted } = laneClaim
  const [row] = yield* read<LaneRow>('limit_lock', [{ lane }])
  // Somebody paused it, or took its limits away: the next claim sees it as it is.
  if (row === undefined || row.paused === 1 || row.limited === 0) return { ...NOTHING, more: row?.paused !== 1 }
  const limits = limitsOf(row, undefined)
  const { inFlight, keys } = yield* holdersOf(lane)
  const allowance = allowanceOf(limits, bucketOf(row), inFlight, row.now)
  const allowed = Math.min(wanted, allowance.slots, allowance.tokens)
  const picking = new Picking(lane, keys, limits.maxPerKey ?? Number.POSITIVE_INFINITY)
  const after = allowed > 0 ? yield* picking.pick(allowed, row.parked_after) : row.parked_after
  const jobs = picking.picked.length > 0 ? yield* grant(picking.picked, laneClaim) : []
  const isReady = (yield* read('ready_keys', [{ lane, limit: 1, offset: 0 }])).length > 0
  const hasReady = isReady || picking.isCut
  const hasParked = yield* isAnyParked(lane)
  const outcome = { wanted, granted: picking.picked.length, hasReady, hasParked }
  let bucket = bucketOf(row)
  if (limits.rate !== null && jobs.length > 0) bucket = taken(limits.rate, bucket, row.now, jobs.length)
  const reason = throttleOf(allowance, outcome)
  if (reason !== null) yield* change('throttle_add', [{ lane, reason, count: 1 }])
  if (!limitsClaims(limits) && !hasParked) yield* tidy(lane)
  else if (bucket.at !== row.rate_at || bucket.debt !== row.rate_debt || after !== row.parked_after)
    yield* change('limit_use', [{ lane, rate_debt: bucket.debt, rate_at: bucket.at, parked_after: after }])
  const inMs = reason === 'RATE_EXCEEDED' && limits.rate !== null ? nextTokenInMs(limits.rate, bucket, row.now) : null
  return { jobs, more: mayGiveMore(allowance, outcome), throttle: reason === null ? null : { lane, reason, inMs } }
}

/** Lets go of what an unlimited lane with nothing parked does not need. */
function* tidy(lane: string): Plan<void> {
  yield* change('lane_drop', [{ lane }])
  const gates = yield* read<GateRow>('gate_list', [{}])
  if (!gates.some((gate) => gate.lane === lane)) yield* change('throttle_drop', [{ lane }])
}

/** Chooses what a claim gets, in the order in which jobs run, and parks what it must pass over. */
class Picking {
  readonly picked: Candidate[] = []
  private readonly lane: string
  private readonly keys: Map<string, number>
  private readonly max: number
  /** More of some key might be free than was read. */
  isCut = false
  private aside: Candidate[] = []
  private readyPicked = 0

  constructor(lane: string, keys: Map<string, number>, max: number) {
    this.lane = lane
    this.keys = keys
    this.max = max
  }

  /** Returns the key behind which the next claim goes on. */
  *pick(allowed: number, after: string): Plan<string> {
    const keys = yield* this.parkedKeys(after)
    yield* this.readAside(keys, allowed)
    for (let looked = 0; this.picked.length < allowed && looked < LOOKED_MAX; ) {
      const limit = Math.min(allowed - this.picked.length + BATCH, LOOKED_MAX)
      const ready = yield* this.readReady(limit)
      looked += ready.length
      yield* this.merge(ready, allowed)
      if (ready.length < limit) {
        this.takeAside(allowed, null)
        break
      }
    }
    return keys.length < KEYS_MAX ? '' : (keys.at(-1) ?? '')
  }

  private *parkedKeys(after: string): Plan<readonly string[]> {
    const find = (from: string, limit: number): Plan<readonly { readonly key: string }[]> =>
      read<{ key: string }>('parked_keys', [{ lane: this.lane, after: from, limit }])
    const keys = (yield* find(after, KEYS_MAX)).map(({ key }) => key)
    if (after === '' || keys.length === KEYS_MAX) return keys
    const before = (yield* find('', KEYS_MAX - keys.length)).map(({ key }) => key).filter((key) => key <= after)
    return [...keys, ...before]
  }

  /** As many of each key as it has free places. */
  private *readAside(keys: readonly string[], allowed: number): Plan<void> {
    const most = Math.max(1, Math.floor(ASIDE_MAX / Math.max(1, keys.length)))
    const rows = keys.flatMap((key) => {
      const free = Math.min(allowed, this.max - this.held(key))
      this.isCut ||= free > most
      return free > 0 ? [{ lane: this.lane, key, limit: Math.min(free, most) }] : []
    })
    const found = yield* read<Omit<Candidate, 'isParked'>>('parked_first', rows)
    this.aside = found.map((row) => ({ ...row, isParked: true })).sort(byReadiness)
  }

  private *readReady(limit: number): Plan<readonly Candidate[]> {
    const row = { lane: this.lane, limit, offset: this.readyPicked }
    const rows = yield* read<Omit<Candidate, 'isParked'>>('ready_keys', [row])
    return rows.map((each) => ({ ...each, isParked: false }))
  }

  /** What is ready up to the last one that was picked, or all of it. */
  private *merge(ready: readonly Candidate[], allowed: number): Plan<void> {
    const full: Candidate[] = []
    for (const candidate of ready) {
      this.takeAside(allowed, candidate)
      if (this.picked.length >= allowed) break
      if (!this.take(candidate)) full.push(candidate)
    }
    yield* change(
      'job_park',
      full.map(({ seq }) => ({ seq })),
    )
  }

  /** Takes those that come before another one; null: all of them. */
  private takeAside(allowed: number, before: Candidate | null): void {
    while (this.picked.length < allowed) {
      const [first] = this.aside
      if (first === undefined || (before !== null && byReadiness(before, first) < 0)) return
      this.aside.shift()
      this.take(first)
    }
  }

  private held(key: string | null): number {
    return key === null ? 0 : (this.keys.get(key) ?? 0)
  }

  private take(candidate: Candidate): boolean {
    const { key, isParked } = candidate
    if (key !== null) {
      if (this.held(key) >= this.max) return false
      this.keys.set(key, this.held(key) + 1)
    }
    if (!isParked) this.readyPicked += 1
    this.picked.push(candidate)
    return true
  }
}

const byReadiness = (a: Candidate, b: Candidate): number =>
  b.priority - a.priority || a.run_at - b.run_at || a.seq - b.seq
