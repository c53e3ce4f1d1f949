/**
 * The turn on PostgreSQL: one statement ends what completed and grants what is ready. What ended otherwise is settled before, and
 * where a job is due or past its deadline, the lanes are brought up to the store's time before anything of them is granted.
 */
import { isHoldfastError } from '../../errors.ts'
import type { JobId } from '../../job.ts'
import type { Claim, ClaimedJob, Grant, Reply, Request, Settlement, Throttle, Verdict } from '../protocol/index.ts'
import { buryDamaged } from '../sql/damage.ts'
import { buryDeadlined, MOVED_PER_CLAIM_MAX, promoteDue } from '../sql/due.ts'
import { heldBy } from '../sql/held.ts'
import { type Candidate, claimLimited, type LaneClaim } from '../sql/limited.ts'
import { noteLast } from '../sql/note.ts'
import { atomically, change, type Plan, type Row, read } from '../sql/plan.ts'
import type { LaneRow } from '../sql/policy-row.ts'
import { readClaimed, type TimedRow } from '../sql/row.ts'
import { type Complete, settle } from '../sql/settle.ts'

/** What a row of `job_claim` or `job_turn` is. */
const ENDED = 0
const GRANTED = 1
const SEEN = 2

type TurnRow = readonly [kind: number, i: number | null, ...TimedRow]

export function* turn({ settlements, claims, resend }: Request<'job.turn'>): Plan<Reply<'job.turn'>> {
  const [claim] = claims
  const completes = settlements.filter((one): one is Complete => one.kind === 'complete')
  const isPlain = claims.length === 1 && !resend && completes.length > 0 && isDistinct(settlements)
  if (claim !== undefined && isPlain) return yield* turnAtOnce(settlements, completes, claim)
  const verdicts = yield* settle(settlements)
  const grants: Grant[] = []
  for (const one of claims) grants.push(yield* grant(one, resend ? yield* heldBy(one) : []))
  return { verdicts, grants }
}

const isDistinct = (settlements: readonly Settlement[]): boolean =>
  new Set(settlements.map(({ id }) => id)).size === settlements.length

function* turnAtOnce(
  settlements: readonly Settlement[],
  completes: readonly Complete[],
  claim: Claim,
): Plan<Reply<'job.turn'>> {
  const verdicts = new Map<Settlement, Verdict>()
  const others = settlements.filter(({ kind }) => kind !== 'complete')
  const settled = yield* settle(others)
  others.forEach((settlement, index) => {
    verdicts.set(settlement, settled[index] ?? 'leaseLost')
  })
  yield* noteLast(completes)
  const rows = yield* read<TurnRow>('job_turn', completes.map(completionRow), claimArgs(claim, claim.limit, false))
  for (const [kind, i] of rows) {
    const settlement = kind === ENDED && i !== null ? completes[i - 1] : undefined
    if (settlement !== undefined) verdicts.set(settlement, 'applied')
  }
  // Those that did not end are told why.
  const missing = completes.filter((settlement) => !verdicts.has(settlement))
  const explained = yield* settle(missing)
  missing.forEach((settlement, index) => {
    verdicts.set(settlement, explained[index] ?? 'leaseLost')
  })
  const first = yield* readGrant(rows)
  const granted = first.isBlocked ? yield* grant(claim, []) : first.grant
  return { verdicts: settlements.map((settlement) => verdicts.get(settlement) ?? 'leaseLost'), grants: [granted] }
}

const completionRow = ({ id, token, keepMs, durationMs, output, keepOutputMs }: Complete): Row => ({
  id,
  token,
  keep_ms: keepMs,
  duration_ms: durationMs,
  output,
  keep_output_ms: keepOutputMs,
})

/** `ordinal`: of the first job that is granted. */
const claimArgs = ({ lanes, workerId, nonce, leaseMs }: Claim, limit: number, isForced: boolean, ordinal = 0): Row => ({
  lanes,
  limit,
  worker_id: workerId,
  nonce,
  lease_ms: leaseMs,
  force: isForced ? 1 : 0,
  ordinal,
})

/** With what an earlier sending of the claim was `held`, nothing more is granted. */
function* grant(claim: Claim, held: readonly ClaimedJob[]): Plan<Grant> {
  const limit = held.length > 0 ? 0 : claim.limit
  const first = yield* claimOnce(claimArgs(claim, limit, false))
  if (!first.isBlocked) return { ...first.grant, jobs: [...held, ...first.grant.jobs] }
  // A paused lane stays as it is.
  const policies = new Map((yield* read<LaneRow>('lane_list', [{}])).map((row) => [row.lane, row]))
  const lanes = claim.lanes.filter((lane) => policies.get(lane)?.paused !== 1)
  yield* promoteDue(lanes, MOVED_PER_CLAIM_MAX)
  const burial = { lanes, limit: MOVED_PER_CLAIM_MAX, keepDead: claim }
  const deadlined: JobId[] = [...(yield* buryDeadlined(burial))]
  // Forced: others may hold what is due, and more may have become due since.
  const limited = lanes.filter((lane) => policies.get(lane)?.limited === 1)
  const second =
    limited.length === 0
      ? (yield* claimOnce(claimArgs(claim, limit, true))).grant
      : yield* claimInOrder({ ...claim, lanes, limit }, limited)
  return { ...second, jobs: [...held, ...second.jobs], deadlined }
}

/** Where a lane has limits, lane by lane, so that none is served before its turn. */
function* claimInOrder(claim: Claim, limited: readonly string[]): Plan<Grant> {
  const jobs: ClaimedJob[] = []
  const throttled: Throttle[] = []
  let more = false
  // What is due next is seen for all of them, with nothing granted.
  const { dueInMs } = (yield* claimOnce(claimArgs(claim, 0, true))).grant
  for (const lane of claim.lanes) {
    const wanted = claim.limit - jobs.length
    const laneClaim = { claim, lane, wanted, ordinal: jobs.length }
    const given = limited.includes(lane)
      ? yield* atomically(() => claimLimited(laneClaim, grantPicked), true)
      : {
          ...(yield* claimOnce(claimArgs({ ...claim, lanes: [lane] }, wanted, true, jobs.length))).grant,
          throttle: null,
        }
    jobs.push(...given.jobs)
    more ||= given.more
    if (given.throttle !== null) throttled.push(given.throttle)
  }
  return { jobs, more, dueInMs, deadlined: [], ...(throttled.length > 0 && { throttled }), limited }
}

/** What was picked under the limits of a lane. */
function* grantPicked(picked: readonly Candidate[], { claim, ordinal }: LaneClaim): Plan<readonly ClaimedJob[]> {
  const { workerId, nonce, leaseMs } = claim
  const row = { seqs: picked.map(({ seq }) => seq), ordinal, worker_id: workerId, nonce, lease_ms: leaseMs }
  return (yield* readGrant(yield* read<TurnRow>('job_grant', [row]))).grant.jobs
}

/** Until the transaction ends nobody claims; whoever claims then sees what it did. */
export const fence = (): Plan<number> => change('lane_fence', [{}])

interface Seen {
  readonly isBlocked: boolean
  readonly grant: Grant
}

function* claimOnce(args: Row): Plan<Seen> {
  return yield* readGrant(yield* read<TurnRow>('job_claim', [args]))
}

/** A damaged row is put aside, so that it cannot hold up its lane for ever. */
function* readGrant(rows: readonly TurnRow[]): Plan<Seen> {
  const jobs: { readonly ordinal: number; readonly job: ClaimedJob }[] = []
  let isBlocked = false
  let more = false
  let dueInMs: number | null = null
  for (const [kind, i, ...row] of rows) {
    if (kind === GRANTED) {
      const job = yield* decode(row)
      if (job !== null) jobs.push({ ordinal: i ?? 0, job })
    } else if (kind === SEEN) {
      const [, , , , , blocked, moreReady] = row
      isBlocked = blocked === 1
      more = moreReady === 1
      const dueAt = row[16] as number | null
      dueInMs = dueAt === null ? null : dueAt - row[18]
    }
  }
  jobs.sort((a, b) => a.ordinal - b.ordinal)
  return { isBlocked, grant: { jobs: jobs.map(({ job }) => job), more, dueInMs, deadlined: [] } }
}

function* decode(row: TimedRow): Plan<ClaimedJob | null> {
  const token = row[17] ?? ''
  try {
    return readClaimed(row, { token, attempt: row[5], now: row[18] })
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    yield* buryDamaged({ id: row[1], from: 'running', token, problem: error.message })
    return null
  }
}
