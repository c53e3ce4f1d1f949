/** What operators and clients do to jobs from outside: cancel, promote, pause; and the upkeep of the store. */
import type { JobId } from '../../job.ts'
import { isTerminal } from '../../job.ts'
import type { CancelOutcome, PromoteOutcome, Reply, Request } from '../protocol/index.ts'
import { buryDeadlined, promoteDue } from './claim.ts'
import { ENDING, endJob } from './ending.ts'
import { readState } from './row.ts'
import type { FoundRow } from './settle.ts'
import type { Session } from './statement.ts'

export function cancel(session: Session, { ids, force, keepMs }: Request<'job.cancel'>): Reply<'job.cancel'> {
  const now = session.now()
  return { outcomes: ids.map((id) => cancelOne(session, id, { force, keepMs, now })) }
}

interface CancelHow {
  readonly force: boolean
  readonly keepMs: number | null
  readonly now: number
}

function cancelOne(session: Session, id: JobId, { force, keepMs, now }: CancelHow): CancelOutcome {
  const { sql, ns } = session
  const row = sql.get<FoundRow>('job_find', { ns, id })
  if (row === undefined) return 'not_found'
  const state = readState(row.state, id)
  if (isTerminal(state)) return 'already_terminal'
  const isRunning = state === 'running'
  if (isRunning && !force) {
    sql.run('cancel_request', { ns, id })
    return 'requested'
  }
  const failure = { code: 'CANCELLED', message: 'cancelled by force while it ran' }
  const attempt = isRunning ? ({ outcome: 'cancelled', failure } as const) : null
  endJob(
    session,
    { ...ENDING, id, from: state, token: row.token, to: 'cancelled', keepMs, attempt, keepsToken: false },
    now,
  )
  return 'cancelled'
}

export function promote(session: Session, { ids }: Request<'job.promote'>): Reply<'job.promote'> {
  const { sql, ns } = session
  const now = session.now()
  const outcomes = ids.map((id): PromoteOutcome => {
    if (sql.run('job_promote', { ns, id, now }) === 1) return 'promoted'
    return sql.get('job_find', { ns, id }) === undefined ? 'not_found' : 'invalid_state'
  })
  return { outcomes }
}

export function policy({ sql, ns }: Session, { changes }: Request<'queue.policy'>): Reply<'queue.policy'> {
  for (const { lane, paused } of changes) sql.run(paused ? 'lane_pause' : 'lane_resume', { ns, lane })
  const rows = sql.all<{ lane: string; paused: number }>('lane_list', { ns })
  return { policies: rows.map(({ lane, paused }) => ({ lane, paused: paused === 1 })) }
}

/** Each of the four kinds of work is done up to `limit`, so one call never holds the file for long. */
export function maintain(session: Session, { limit, keepDeadMs }: Request<'store.maintain'>): Reply<'store.maintain'> {
  const { sql, ns } = session
  const now = session.now()
  const rows = sql.all<{ seq: number; recorded: number }>('archive_prune', { ns, now, limit })
  for (const { seq, recorded } of rows) if (recorded === 1) sql.run('attempt_delete', { seq })
  const pruned = rows.length
  const outputsDropped = pruned < limit ? sql.run('output_drop', { ns, now, limit: limit - pruned }) : 0
  const promoted = forLanes(session, 'due_lanes', limit, (lane, left) =>
    promoteDue(session, { lane, now, limit: left }),
  )
  const deadlined = forLanes(
    session,
    'deadline_lanes',
    limit,
    (lane, left) => buryDeadlined(session, { lane, now, limit: left }, keepDeadMs).length,
  )
  const more = pruned + outputsDropped >= limit || promoted >= limit || deadlined >= limit
  return { pruned, outputsDropped, promoted, deadlined, more }
}

/** Does up to `limit` in all over the lanes that a statement names. */
function forLanes(
  { sql, ns }: Session,
  lanes: 'due_lanes' | 'deadline_lanes',
  limit: number,
  move: (lane: string, left: number) => number,
): number {
  let done = 0
  for (const { lane } of sql.all<{ lane: string }>(lanes, { ns })) {
    if (done >= limit) break
    done += move(lane, limit - done)
  }
  return done
}
