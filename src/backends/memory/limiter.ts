/**
 * The limits of one lane of the memory store, how much of them is used, and the jobs set aside while their key is at its limit. What is in
 * flight is counted from the rows that run, so no end of an attempt can forget to give a slot back.
 */
import {
  allowanceOf,
  type Bucket,
  FULL_BUCKET,
  limitsClaims,
  mayGiveMore,
  nextTokenInMs,
  taken,
  throttleOf,
  tokensAt,
} from '../limits.ts'
import type { LaneLimits, LaneUsage, RateLimit, Throttle, ThrottleCount, ThrottleReason } from '../protocol/index.ts'
import { FULL_KEYS_MAX } from '../protocol/index.ts'
import type { JobRow } from './row.ts'
import { byReadiness, isCurrent, RowQueue } from './row-queue.ts'

/** Where the limiter takes jobs from that are ready. */
export interface ReadyRows {
  firstReady(): JobRow | undefined
  takeReady(): JobRow | undefined
}

export interface Taken {
  readonly rows: readonly JobRow[]
  readonly more: boolean
  readonly throttle: Omit<Throttle, 'lane'> | null
}

const keyOf = ({ definition }: JobRow): string | null => definition.concurrencyKey

/** How many of the rows have which key. */
function tally(running: Iterable<JobRow>): { readonly inFlight: number; readonly keys: Map<string, number> } {
  const keys = new Map<string, number>()
  let inFlight = 0
  for (const row of running) {
    inFlight += 1
    const key = keyOf(row)
    if (key !== null) keys.set(key, (keys.get(key) ?? 0) + 1)
  }
  return { inFlight, keys }
}

export class Limiter {
  limits: LaneLimits
  private starts: Bucket = FULL_BUCKET
  private arrivals: Bucket = FULL_BUCKET
  private readonly parked = new Map<string, RowQueue>()
  private readonly counts = new Map<ThrottleReason, ThrottleCount>()

  constructor(limits: LaneLimits) {
    this.limits = limits
  }

  change(
    limits: LaneLimits,
    buckets: (before: RateLimit | null, after: RateLimit | null, bucket: Bucket) => Bucket,
  ): void {
    this.starts = buckets(this.limits.rate, limits.rate, this.starts)
    this.arrivals = buckets(this.limits.enqueueRate, limits.enqueueRate, this.arrivals)
    this.limits = limits
  }

  /** Whether claims have to look at it. */
  get holdsClaims(): boolean {
    return limitsClaims(this.limits) || this.hasParked
  }

  /** Time until the lane accepts another job; 0: it was accepted. */
  admit(now: number): number {
    const { enqueueRate } = this.limits
    if (enqueueRate === null) return 0
    const waitMs = nextTokenInMs(enqueueRate, this.arrivals, now)
    if (waitMs === 0) this.arrivals = taken(enqueueRate, this.arrivals, now, 1)
    else this.count('ENQUEUE_RATE_EXCEEDED', now)
    return waitMs
  }

  /** Up to `wanted` rows, in the order in which they run, as far as the limits permit. */
  take(ready: ReadyRows, wanted: number, { running, now }: { running: Iterable<JobRow>; now: number }): Taken {
    const { inFlight, keys } = tally(running)
    const allowance = allowanceOf(this.limits, this.starts, inFlight, now)
    const rows = this.pick(ready, Math.min(wanted, allowance.slots, allowance.tokens), keys)
    const { rate } = this.limits
    if (rate !== null && rows.length > 0) this.starts = taken(rate, this.starts, now, rows.length)
    const hasReady = ready.firstReady() !== undefined
    const outcome = { wanted, granted: rows.length, hasReady, hasParked: this.hasParked }
    const reason = throttleOf(allowance, outcome)
    if (reason !== null) this.count(reason, now)
    const inMs = reason === 'RATE_EXCEEDED' && rate !== null ? nextTokenInMs(rate, this.starts, now) : null
    return { rows, more: mayGiveMore(allowance, outcome), throttle: reason === null ? null : { reason, inMs } }
  }

  private pick(ready: ReadyRows, allowed: number, keys: Map<string, number>): JobRow[] {
    const max = this.limits.maxPerKey ?? Number.POSITIVE_INFINITY
    const rows: JobRow[] = []
    while (rows.length < allowed) {
      const first = ready.firstReady()
      const aside = this.firstAside(keys, max)
      const row = aside !== undefined && (first === undefined || isBefore(aside, first)) ? aside : first
      if (row === undefined) break
      const key = keyOf(row)
      const held = key === null ? 0 : (keys.get(key) ?? 0)
      if (row === aside) this.parked.get(key ?? '')?.pop()
      else ready.takeReady()
      if (key !== null && held >= max) this.park(key, row)
      else {
        rows.push(row)
        if (key !== null) keys.set(key, held + 1)
      }
    }
    return rows
  }

  private park(key: string, row: JobRow): void {
    const queue = this.parked.get(key) ?? new RowQueue(byReadiness, isCurrent)
    queue.push(row)
    row.parkedTicket = row.ticket
    this.parked.set(key, queue)
  }

  private firstAside(keys: ReadonlyMap<string, number>, max: number): JobRow | undefined {
    let best: JobRow | undefined
    for (const [key, queue] of this.parked) {
      const row = queue.peek()
      if (row === undefined) this.parked.delete(key)
      else if ((keys.get(key) ?? 0) < max && (best === undefined || isBefore(row, best))) best = row
    }
    return best
  }

  get hasParked(): boolean {
    for (const [key, queue] of this.parked) {
      if (queue.peek() !== undefined) return true
      this.parked.delete(key)
    }
    return false
  }

  /** Told after a waiting row moved on by another way than `take`. */
  dropped(): void {
    for (const queue of this.parked.values()) queue.noteStale()
  }

  private count(reason: ThrottleReason, now: number): void {
    const { count = 0, firstAt = now } = this.counts.get(reason) ?? {}
    this.counts.set(reason, { reason, count: count + 1, firstAt, lastAt: now })
  }

  usage(lane: string, running: Iterable<JobRow>, now: number): LaneUsage {
    const { rate, enqueueRate, maxPerKey } = this.limits
    const { inFlight, keys } = tally(running)
    const full = [...keys].filter(([, held]) => maxPerKey !== null && held >= maxPerKey).map(([key]) => key)
    return {
      lane,
      inFlight,
      tokens: rate === null ? null : tokensAt(rate, this.starts, now),
      enqueueTokens: enqueueRate === null ? null : tokensAt(enqueueRate, this.arrivals, now),
      fullKeys: full.sort().slice(0, FULL_KEYS_MAX),
      parked: [...this.parked.values()].reduce((sum, queue) => sum + queue.size, 0),
      throttles: [...this.counts.values()].sort((a, b) => (a.reason < b.reason ? -1 : 1)),
    }
  }
}

const isBefore = (a: JobRow, b: JobRow): boolean =>
  byReadiness({ row: a, ticket: 0, runAt: a.runAt }, { row: b, ticket: 0, runAt: b.runAt }) < 0
