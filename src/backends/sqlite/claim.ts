/**
 * The turn: settles what ended, then grants what the lanes have ready. A lane is first brought up to the store's time:
 * what is due becomes ready, what is past its deadline goes to the dead letters.
 */

import { isHoldfastError } from '../../errors.ts'
import type { JobId } from '../../job.ts'
import type { Claim, ClaimedJob, Grant, Reply, Request } from '../protocol/index.ts'
import { leaseToken, nextEpoch } from '../rules.ts'
import { ENDING, endJob } from './ending.ts'
import { type ClaimRow, readClaimed } from './row.ts'
import { settle } from './settle.ts'
import type { Session } from './statement.ts'

/** More of one lane than any claim moves at once; the next claim goes on. */
const MOVED_PER_CLAIM_MAX = 10_000

export function turn(session: Session, { settlements, claims, resend }: Request<'job.turn'>): Reply<'job.turn'> {
  const now = session.now()
  const verdicts = settlements.map((settlement) => settle(session, settlement, now))
  const grants = claims.map((claim) => grant(session, claim, { now, resend }))
  return { verdicts, grants }
}

function grant(session: Session, claim: Claim, { now, resend }: { now: number; resend: boolean }): Grant {
  const jobs = resend ? heldBy(session, claim, now) : []
  const limit = jobs.length > 0 ? jobs.length : claim.limit
  const deadlined: JobId[] = []
  let dueAt: number | null = null
  let more = false
  for (const lane of claim.lanes) {
    if (session.sql.get<{ paused: number }>('lane_find', { ns: session.ns, lane })?.paused === 1) continue
    promoteDue(session, { lane, now, limit: MOVED_PER_CLAIM_MAX })
    deadlined.push(...buryDeadlined(session, { lane, now, limit: MOVED_PER_CLAIM_MAX }, claim.keepDeadMs))
    if (jobs.length < limit) claimReady(session, { claim, lane, now, limit }, jobs)
    more ||= session.sql.get('ready_first', { ns: session.ns, lane }) !== undefined
    const laneDueAt = nextDueAt(session, lane)
    if (laneDueAt !== null) dueAt = Math.min(dueAt ?? laneDueAt, laneDueAt)
  }
  return { jobs, more, dueInMs: dueAt === null ? null : dueAt - now, deadlined }
}

interface LaneTime {
  readonly lane: string
  readonly now: number
  readonly limit: number
}

const nextDueAt = ({ sql, ns }: Session, lane: string): number | null =>
  sql.get<{ run_at: number }>('due_next', { ns, lane })?.run_at ?? null

/** Moves what is due into the ready order; returns how many. */
export function promoteDue(session: Session, { lane, now, limit }: LaneTime): number {
  const { sql, ns } = session
  const dueAt = nextDueAt(session, lane)
  return dueAt === null || dueAt > now ? 0 : sql.run('due_promote', { ns, lane, now, limit })
}

/** Dead-letters what waited past its deadline. The token stays: a settlement sent again is still recognised. */
export function buryDeadlined(session: Session, { lane, now, limit }: LaneTime, keepMs: number | null): JobId[] {
  const { sql, ns } = session
  const rows = sql.all<{ id: string; state: string; token: string | null }>('deadline_passed', { ns, lane, now, limit })
  return rows.map(({ id, state, token }) => {
    const failureIfNone = { code: 'DEADLINE_EXCEEDED', message: 'the deadline passed before the job could start' }
    const dlqCode = 'DEADLINE_EXCEEDED'
    endJob(session, { ...ENDING, id, from: state, token, to: 'dlq', keepMs, failureIfNone, dlqCode }, now)
    return id
  })
}

interface LaneClaim extends LaneTime {
  readonly claim: Claim
}

/** Adds to `jobs` until `limit`. A damaged row is put aside, so that it cannot hold up its lane for ever. */
function claimReady(session: Session, { claim, lane, now, limit }: LaneClaim, jobs: ClaimedJob[]): void {
  const { sql, ns } = session
  while (jobs.length < limit) {
    const wanted = limit - jobs.length
    const rows = sql.allRaw<ClaimRow>('ready_list', [ns, lane, wanted])
    for (const row of rows) {
      const job = lease(session, row, { claim, now, ordinal: jobs.length })
      if (job !== null) jobs.push(job)
    }
    if (rows.length < wanted) return
  }
}

interface GrantOf {
  readonly claim: Claim
  readonly now: number
  readonly ordinal: number
}

function lease(session: Session, row: ClaimRow, { claim, now, ordinal }: GrantOf): ClaimedJob | null {
  const [seq, , , , , attempts] = row
  const attempt = attempts + 1
  const epoch = nextEpoch(row[16], now)
  const token = leaseToken(epoch, claim.workerId, claim.nonce, ordinal)
  let job: ClaimedJob
  try {
    job = readClaimed(row, { token, attempt, now })
  } catch (error) {
    buryDamaged(session, { row, now, error })
    return null
  }
  session.sql.run('lease_grant', [attempt, epoch, token, claim.workerId, now, now, now + claim.leaseMs, seq])
  return job
}

function buryDamaged(session: Session, { row, now, error }: { row: ClaimRow; now: number; error: unknown }): void {
  if (!isHoldfastError(error)) throw error
  const dlqCode = 'STORE_CORRUPT'
  const failure = { code: dlqCode, message: error.message }
  const ending = {
    ...ENDING,
    id: row[1],
    from: 'queued',
    token: row[17],
    to: 'dlq',
    keepMs: null,
    failure,
    dlqCode,
  } as const
  endJob(session, ending, now)
}

/** What an earlier sending of the same claim was given, in the order in which it was. */
function heldBy({ sql, ns }: Session, { workerId, nonce }: Claim, now: number): ClaimedJob[] {
  const mark = `:${workerId}:${nonce}.`
  const jobs: ClaimedJob[] = []
  for (const row of sql.allRaw<ClaimRow>('lease_held', { ns, worker_id: workerId })) {
    const token = row[17]
    if (token?.includes(mark)) jobs.push(readClaimed(row, { token, attempt: row[5], now }))
  }
  return jobs.sort((a, b) => ordinalOf(a.token) - ordinalOf(b.token))
}

const ordinalOf = (token: string): number => Number(token.slice(token.lastIndexOf('.') + 1))
