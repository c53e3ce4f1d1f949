/** What operators and clients do to jobs from outside: cancel, promote, pause; and the upkeep of the store. */
import { HoldfastError } from '../../errors.ts'
import { isTerminal, type JobId, TERMINAL_STATES } from '../../job.ts'
import { countsIn } from '../kept.ts'
import type { CancelOutcome, KeepCounts, PromoteOutcome, Reply, Request } from '../protocol/index.ts'
import { buryDeadlined, promoteDue } from './due.ts'
import { ENDING, type Ending, endRow } from './ending.ts'
import { byId, change, missed, type Plan, read, write } from './plan.ts'
import { readState } from './row.ts'
import type { FoundRow } from './settle.ts'

/** A job that changes between the look and the act is looked at again; it cannot change in every round. */
const LOOKS_MAX = 10

export function* cancel({ ids, force, keepMs }: Request<'job.cancel'>): Plan<Reply<'job.cancel'>> {
  const outcomes = new Map<JobId, CancelOutcome>()
  let open: readonly JobId[] = [...new Set(ids)]
  const isRepeated = open.length < ids.length
  for (let look = 0; look < LOOKS_MAX && open.length > 0; look += 1) {
    for (const [id, outcome] of yield* cancelOnce(open, { force, keepMs })) outcomes.set(id, outcome)
    open = open.filter((id) => !outcomes.has(id))
  }
  if (open.length > 0) throw restless(open.length)
  const seen = new Set<JobId>()
  return {
    outcomes: ids.map((id) => {
      const outcome = outcomes.get(id) ?? 'not_found'
      // The second of the same id finds what the first has done.
      if (isRepeated && outcome === 'cancelled' && seen.has(id)) return keepMs === 0 ? 'not_found' : 'already_terminal'
      seen.add(id)
      return outcome
    }),
  }
}

/** Some may have been cancelled, which the same call sent again is told. */
const restless = (count: number): HoldfastError =>
  new HoldfastError('STORE_BUSY', `${count} jobs changed whenever they were to be cancelled`, {
    details: { outcome: 'unknown' },
  })

interface CancelHow {
  readonly force: boolean
  readonly keepMs: number | null
}

/** Answers for those that were as they were seen. */
function* cancelOnce(ids: readonly JobId[], { force, keepMs }: CancelHow): Plan<ReadonlyMap<JobId, CancelOutcome>> {
  const outcomes = new Map<JobId, CancelOutcome>()
  const found = yield* read<FoundRow>('job_find', byId(ids))
  const rows = new Map(found.map((row) => [row.id, row]))
  const requests: JobId[] = []
  const endings: Ending[] = []
  for (const id of ids) {
    const row = rows.get(id)
    if (row === undefined) outcomes.set(id, 'not_found')
    else if (isTerminal(readState(row.state, id))) outcomes.set(id, 'already_terminal')
    else if (row.state === 'running' && !force) requests.push(id)
    else endings.push(cancellationOf(row, keepMs))
  }
  const requested = yield* write('cancel_request', byId(requests))
  requests.forEach((id, index) => {
    if (requested.written[index] === true) outcomes.set(id, 'requested')
  })
  const ended = yield* write('job_end', endings.map(endRow))
  endings.forEach(({ id }, index) => {
    if (ended.written[index] === true) outcomes.set(id, 'cancelled')
  })
  return outcomes
}

function cancellationOf({ id, state, token }: FoundRow, keepMs: number | null): Ending {
  const failure = { code: 'CANCELLED', message: 'cancelled by force while it ran' }
  const attempt = state === 'running' ? ({ outcome: 'cancelled', failure } as const) : null
  return { ...ENDING, id, from: state, token, to: 'cancelled', keepMs, attempt, keepsToken: false }
}

export function* promote({ ids }: Request<'job.promote'>): Plan<Reply<'job.promote'>> {
  const distinct = [...new Set(ids)]
  const outcome = yield* write('job_promote', byId(distinct))
  const left = missed(distinct, outcome)
  const known = new Set((yield* read<FoundRow>('job_find', byId(left))).map(({ id }) => id))
  // The second of the same id finds it promoted.
  const fresh = new Set(distinct.filter((id) => !left.includes(id)))
  const outcomes = ids.map((id): PromoteOutcome => {
    if (fresh.delete(id)) return 'promoted'
    return known.has(id) || !left.includes(id) ? 'invalid_state' : 'not_found'
  })
  return { outcomes }
}

/** Each of the four kinds of work is done up to `limit`, so one call never holds the tables for long. */
export function* maintain(request: Request<'store.maintain'>): Plan<Reply<'store.maintain'>> {
  const { limit, keepCounts } = request
  let pruned = yield* change('archive_prune', [{ limit }])
  const outputsDropped = pruned < limit ? yield* change('output_drop', [{ limit: limit - pruned }]) : 0
  const room = limit - pruned - outputsDropped
  if (keepCounts !== undefined && room > 0) pruned += yield* trim(keepCounts, room)
  let promoted = 0
  for (const { lane } of yield* read<{ lane: string }>('due_lanes', [{}])) {
    if (promoted < limit) promoted += yield* promoteDue([lane], limit - promoted)
  }
  let deadlined = 0
  for (const { lane } of yield* read<{ lane: string }>('deadline_lanes', [{}])) {
    if (deadlined < limit)
      deadlined += (yield* buryDeadlined({ lanes: [lane], limit: limit - deadlined, keepDead: request })).length
  }
  const more = pruned + outputsDropped >= limit || promoted >= limit || deadlined >= limit
  return { pruned, outputsDropped, promoted, deadlined, more }
}

/** Removes what is too many of its lane and state, those that came first; up to `limit` of all. */
function* trim(counts: KeepCounts, limit: number): Plan<number> {
  let trimmed = 0
  for (const { lane } of yield* read<{ lane: string }>('archive_lanes', [{}])) {
    const most = countsIn(counts, lane)
    for (const state of TERMINAL_STATES) {
      const count = most?.[state] ?? null
      if (count !== null && trimmed < limit)
        trimmed += yield* change('archive_trim', [{ lane, state, count, limit: limit - trimmed }])
    }
  }
  return trimmed
}
