/** Reads: single jobs, lists, attempts and counts. Nothing here writes, so none of it needs the write lock. */

import type { AttemptRecord } from '../../job.ts'
import { isTerminal, JOB_STATES, type JobState, TERMINAL_STATES } from '../../job.ts'
import { sequenceBefore } from '../cursor.ts'
import type { LaneStats, ListQuery, Reply, Request, StoredJob } from '../protocol/index.ts'
import { byId, type Plan, type Row, read } from './plan.ts'
import { type AttemptRow, type JobRow, readAttempt, readJob, readState, writeObject } from './row.ts'
import type { FoundRow } from './settle.ts'

export function* get({ ids }: Request<'job.get'>): Plan<Reply<'job.get'>> {
  const rows = yield* read<JobRow>('job_get', byId([...new Set(ids)]))
  const jobs = new Map(rows.map((row) => [row.id, row]))
  return { jobs: ids.map((id) => readFound(jobs.get(id))) }
}

/** Only the head of the lane is looked at: what is not in it has `limit` jobs or more ahead. */
export function* ahead({ ids, limit }: Request<'job.ahead'>): Plan<Reply<'job.ahead'>> {
  const rows = yield* read<{ id: string; ahead: number }>(
    'job_ahead',
    [...new Set(ids)].map((id) => ({ id, limit })),
  )
  const found = new Map(rows.map((row) => [row.id, row.ahead]))
  return { ahead: ids.map((id) => found.get(id) ?? null) }
}

export function* states({ ids }: Request<'job.states'>): Plan<Reply<'job.states'>> {
  const rows = yield* read<FoundRow>('job_find', byId([...new Set(ids)]))
  const found = new Map(rows.map(({ id, state }) => [id, readState(state, id)]))
  return { states: ids.map((id) => found.get(id) ?? null) }
}

const readFound = (row: JobRow | undefined): StoredJob | null => (row === undefined ? null : readJob(row))

export function* list(query: Request<'job.list'>): Plan<Reply<'job.list'>> {
  const before = sequenceBefore(query.cursor)
  if (!Number.isSafeInteger(before)) return { jobs: [], cursor: null }
  // One more than asked for tells whether there is a next page.
  const bounds = { type: query.type, before, limit: query.limit + 1 }
  // What is live is read first: a job that ends in between is then seen twice, not missed.
  const live = yield* liveRows(query, bounds)
  const archived = yield* archivedRows(query, bounds)
  const rows = [...new Map([...live, ...archived].map((row) => [row.seq, row])).values()].sort((a, b) => b.seq - a.seq)
  const page = rows.slice(0, query.limit)
  const last = page.at(-1)
  return {
    jobs: page.map(readListed),
    cursor: last === undefined || rows.length <= query.limit ? null : String(last.seq),
  }
}

/** One damaged record must not hide all others: it is listed by what can be read of it, with the damage as its failure. */
function readListed(row: JobRow): StoredJob {
  try {
    return readJob(row)
  } catch (error) {
    const failure = writeObject({
      code: 'STORE_CORRUPT',
      message: error instanceof Error ? error.message : String(error),
    })
    return readJob({ ...row, payload: '', metadata: null, retry: null, progress: null, last_failure: failure })
  }
}

type Bounds = Readonly<Record<'type' | 'before' | 'limit', string | number | null>>

function* liveRows({ lane, states }: ListQuery, bounds: Bounds): Plan<readonly JobRow[]> {
  const live = states?.filter((state) => !isTerminal(state)) ?? null
  if (live?.length === 0) return []
  return yield* read<JobRow>('job_list', [{ ...bounds, lane, states: live === null ? null : JSON.stringify(live) }])
}

/** Takes the index that fits the question; ended jobs may be millions. */
function* archivedRows({ lane, states }: ListQuery, bounds: Bounds): Plan<readonly JobRow[]> {
  const ended = TERMINAL_STATES.filter((state) => states === null || states.includes(state))
  if (lane !== null)
    return yield* read<JobRow>(
      'archive_list_lane',
      ended.map((state) => ({ ...bounds, lane, state })),
    )
  if (ended.length === TERMINAL_STATES.length) return yield* read<JobRow>('archive_list', [{ ...bounds, state: null }])
  // Most of the archive has completed, so from the newest on; the others have an index of their own.
  const rowsOf = (isCompleted: boolean): readonly Row[] =>
    ended.filter((state) => (state === 'completed') === isCompleted).map((state) => ({ ...bounds, state }))
  return [
    ...(yield* read<JobRow>('archive_list', rowsOf(true))),
    ...(yield* read<JobRow>('archive_list_state', rowsOf(false))),
  ]
}

interface LastAttemptRow extends Omit<AttemptRow, 'outcome' | 'failure' | 'started_at' | 'finished_at' | 'worker_id'> {
  readonly id: string
  readonly state: string
  readonly worker_id: string | null
  readonly started_at: number | null
  readonly updated_at: number
  readonly finished_at: number | null
}

export function* history({ ids }: Request<'job.history'>): Plan<Reply<'job.history'>> {
  const last = yield* read<LastAttemptRow>('attempt_last', byId([...new Set(ids)]))
  const past = yield* read<AttemptRow & { readonly id: string }>('attempt_list', byId(last.map(({ id }) => id)))
  return {
    attempts: ids.map((id) =>
      attemptsOf(
        last.find((row) => row.id === id),
        past,
      ),
    ),
  }
}

function attemptsOf(
  row: LastAttemptRow | undefined,
  all: readonly (AttemptRow & { readonly id: string })[],
): readonly AttemptRecord[] {
  if (row === undefined) return []
  const past = all.filter(({ id }) => id === row.id).map((attempt) => readAttempt(attempt, row.id))
  if (row.state !== 'running' && row.state !== 'completed') return past
  const last: AttemptRecord = {
    attempt: row.attempt,
    outcome: row.state === 'running' ? 'running' : 'succeeded',
    workerId: row.worker_id ?? '',
    leaseEpoch: row.lease_epoch,
    startedAt: row.started_at ?? row.updated_at,
    finishedAt: row.finished_at,
    durationMs: row.duration_ms,
    failure: null,
  }
  return [...past, last]
}

const noJobs = (): Record<JobState, number> =>
  Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>

export function* stats({ lanes }: Request<'queue.stats'>): Plan<Reply<'queue.stats'>> {
  const policies = yield* read<{ lane: string; paused: number }>('lane_list', [{}])
  const paused = new Set(policies.filter((policy) => policy.paused === 1).map(({ lane }) => lane))
  const counts = new Map((lanes ?? policies.map(({ lane }) => lane)).map((lane) => [lane, noJobs()]))
  const oldestFor = new Map<string, number>()
  for (const { lane, state, jobs, oldest_ms } of yield* countRows(lanes)) {
    const count = counts.get(lane) ?? noJobs()
    counts.set(lane, count)
    count[readState(state, lane)] += jobs
    if (oldest_ms !== null) oldestFor.set(lane, Math.max(oldest_ms, oldestFor.get(lane) ?? oldest_ms))
  }
  const all = [...counts].map(([lane, count]): LaneStats => {
    return { lane, paused: paused.has(lane), counts: count, oldestReadyMs: oldestFor.get(lane) ?? null }
  })
  return { lanes: all.sort((a, b) => (a.lane < b.lane ? -1 : 1)) }
}

interface CountRow {
  readonly lane: string
  readonly state: string
  readonly jobs: number
  readonly oldest_ms: number | null
}

function countRows(lanes: readonly string[] | null): Plan<readonly CountRow[]> {
  if (lanes === null) return read<CountRow>('stats_count', [{}])
  return read<CountRow>(
    'stats_count_lane',
    [...new Set(lanes)].map((lane) => ({ lane })),
  )
}
