/**
 * The turn on SQLite: settles what ended, then grants what the lanes have ready, row by row under the write lock. A lane is
 * first brought up to the store's time: what is due becomes ready, what is past its deadline goes to the dead letters.
 */
import { isHoldfastError } from '../../errors.ts'
import type { JobId } from '../../job.ts'
import type { Claim, ClaimedJob, Grant, Reply, Request, Throttle } from '../protocol/index.ts'
import { leaseToken, nextEpoch } from '../rules.ts'
import { buryDamaged } from '../sql/damage.ts'
import { buryDeadlined, MOVED_PER_CLAIM_MAX, promoteDue } from '../sql/due.ts'
import { heldBy } from '../sql/held.ts'
import { type Candidate, claimLimited, type LaneClaim } from '../sql/limited.ts'
import { change, type Plan, type Row, read, write } from '../sql/plan.ts'
import { type ClaimRow, type Granted, readClaimed } from '../sql/row.ts'
import { settle } from '../sql/settle.ts'

/** `now`: the store's time of the message at hand. */
export function turnAt(now: () => number): (request: Request<'job.turn'>) => Plan<Reply<'job.turn'>> {
  return function* turn({ settlements, claims, resend }) {
    const verdicts = yield* settle(settlements)
    const grants: Grant[] = []
    for (const claim of claims) grants.push(yield* grant(claim, { now: now(), resend }))
    return { verdicts, grants }
  }
}

function* grant(claim: Claim, { now, resend }: { now: number; resend: boolean }): Plan<Grant> {
  const jobs = resend ? yield* heldBy(claim) : []
  const limit = jobs.length > 0 ? jobs.length : claim.limit
  const deadlined: JobId[] = []
  let dueAt: number | null = null
  let more = false
  const limited: string[] = []
  const throttled: Throttle[] = []
  for (const lane of claim.lanes) {
    const [policy] = yield* read<{ paused: number; limited: number }>('lane_find', [{ lane }])
    if (policy?.paused === 1) continue
    const firstDueAt = yield* nextDueAt(lane)
    if (firstDueAt !== null && firstDueAt <= now) yield* promoteDue([lane], MOVED_PER_CLAIM_MAX)
    const burial = { lanes: [lane], limit: MOVED_PER_CLAIM_MAX, keepDead: claim }
    deadlined.push(...(yield* buryDeadlined(burial)))
    if (policy?.limited === 1) {
      const laneClaim = { claim, lane, wanted: limit - jobs.length, ordinal: jobs.length }
      const given = yield* claimLimited(laneClaim, (picked, of) => leasePicked(picked, of, now))
      jobs.push(...given.jobs)
      limited.push(lane)
      if (given.throttle !== null) throttled.push(given.throttle)
      more ||= given.more
    } else {
      if (jobs.length < limit) yield* claimReady({ claim, lane, now, limit }, jobs)
      more ||= (yield* read('ready_first', [{ lane }])).length > 0
    }
    const laneDueAt = yield* nextDueAt(lane)
    if (laneDueAt !== null) dueAt = Math.min(dueAt ?? laneDueAt, laneDueAt)
  }
  return {
    jobs,
    more,
    dueInMs: dueAt === null ? null : dueAt - now,
    deadlined,
    ...(throttled.length > 0 && { throttled }),
    ...(limited.length > 0 && { limited }),
  }
}

function* nextDueAt(lane: string): Plan<number | null> {
  return (yield* read<{ run_at: number }>('due_next', [{ lane }]))[0]?.run_at ?? null
}

interface LaneReady {
  readonly claim: Claim
  readonly lane: string
  readonly now: number
  readonly limit: number
}

/** Adds to `jobs` until `limit`. A damaged row is put aside before it is leased, so that it cannot hold up its lane for ever. */
function* claimReady({ claim, lane, now, limit }: LaneReady, jobs: ClaimedJob[]): Plan<void> {
  while (jobs.length < limit) {
    const wanted = limit - jobs.length
    const rows = yield* read<ClaimRow>('ready_list', [{ lane, limit: wanted }])
    yield* lease(rows, { claim, now }, jobs)
    if (rows.length < wanted) return
  }
}

/** What was picked under the limits of a lane. */
function* leasePicked(picked: readonly Candidate[], { claim, ordinal }: LaneClaim, now: number): Plan<ClaimedJob[]> {
  const seqs = (candidates: readonly Candidate[]): readonly Row[] => candidates.map(({ seq }) => ({ seq }))
  yield* change('job_unpark', seqs(picked.filter(({ isParked }) => isParked)))
  const jobs: ClaimedJob[] = []
  yield* lease(yield* read<ClaimRow>('ready_one', seqs(picked)), { claim, now, ordinal }, jobs)
  return jobs
}

/** Adds the jobs of these rows, from `ordinal` on. */
function* lease(
  rows: readonly ClaimRow[],
  { claim, now, ordinal = 0 }: { claim: Claim; now: number; ordinal?: number },
  jobs: ClaimedJob[],
): Plan<void> {
  const { workerId, nonce, leaseMs } = claim
  const leases: Row[] = []
  for (const row of rows) {
    const attempts = row[5] + 1
    const epoch = nextEpoch(row[16], now)
    const token = leaseToken(epoch, workerId, nonce, ordinal + jobs.length)
    const job = decode(row, { token, attempt: attempts, now })
    if (typeof job === 'string') yield* buryDamaged({ id: row[1], from: 'queued', token: row[17], problem: job })
    else {
      jobs.push(job)
      leases.push({ attempts, lease_epoch: epoch, token, worker_id: workerId, lease_ms: leaseMs, seq: row[0] })
    }
  }
  yield* write('lease_grant', leases)
}

/** The job, or what is wrong with its row. */
function decode(row: ClaimRow, granted: Granted): ClaimedJob | string {
  try {
    return readClaimed(row, granted)
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    return error.message
  }
}
