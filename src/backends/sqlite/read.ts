/** Reads: single jobs, lists, attempts and counts. Nothing here writes, so none of it needs the write lock. */

import type { AttemptRecord } from '../../job.ts'
import { isTerminal, JOB_STATES, type JobId, type JobState, TERMINAL_STATES } from '../../job.ts'
import { sequenceBefore } from '../cursor.ts'
import type { LaneStats, ListQuery, Reply, Request, StoredJob } from '../protocol/index.ts'
import { type AttemptRow, type JobRow, readAttempt, readJob, readState, writeObject } from './row.ts'
import type { Session } from './statement.ts'

export function get({ sql, ns }: Session, { ids }: Request<'job.get'>): Reply<'job.get'> {
  const jobs = ids.map((id): StoredJob | null => {
    const row = sql.get<JobRow>('job_get', { ns, id }) ?? sql.get<JobRow>('archive_get', { ns, id })
    return row === undefined ? null : readJob(row)
  })
  return { jobs }
}

export function list(session: Session, query: Request<'job.list'>): Reply<'job.list'> {
  const before = sequenceBefore(query.cursor)
  if (!Number.isSafeInteger(before)) return { jobs: [], cursor: null }
  // One more than asked for tells whether there is a next page.
  const bounds = { ns: session.ns, type: query.type, before, limit: query.limit + 1 }
  const rows = [...liveRows(session, query, bounds), ...archivedRows(session, query, bounds)]
  rows.sort((a, b) => b.seq - a.seq)
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

type Bounds = Readonly<Record<'ns' | 'type' | 'before' | 'limit', string | number | null>>

function liveRows({ sql }: Session, { lane, states }: ListQuery, bounds: Bounds): readonly JobRow[] {
  const live = states?.filter((state) => !isTerminal(state)) ?? null
  if (live?.length === 0) return []
  return sql.all<JobRow>('job_list', { ...bounds, lane, states: live === null ? null : JSON.stringify(live) })
}

/** Takes the index that fits the question; ended jobs may be millions. */
function archivedRows({ sql }: Session, { lane, states }: ListQuery, bounds: Bounds): readonly JobRow[] {
  const ended = TERMINAL_STATES.filter((state) => states === null || states.includes(state))
  if (lane !== null) return ended.flatMap((state) => sql.all<JobRow>('archive_list_lane', { ...bounds, lane, state }))
  if (ended.length === TERMINAL_STATES.length) return sql.all<JobRow>('archive_list', bounds)
  return ended.flatMap((state) =>
    state === 'completed'
      ? sql.all<JobRow>('archive_list_completed', bounds)
      : sql.all<JobRow>('archive_list_state', { ...bounds, state }),
  )
}

interface LastAttemptRow extends Omit<AttemptRow, 'outcome' | 'failure' | 'started_at' | 'finished_at' | 'worker_id'> {
  readonly seq: number
  readonly state: string
  readonly worker_id: string | null
  readonly started_at: number | null
  readonly updated_at: number
  readonly finished_at: number | null
}

export function history(session: Session, { ids }: Request<'job.history'>): Reply<'job.history'> {
  return { attempts: ids.map((id) => attemptsOf(session, id)) }
}

function attemptsOf({ sql, ns }: Session, id: JobId): readonly AttemptRecord[] {
  const row = sql.get<LastAttemptRow>('attempt_last', { ns, id })
  if (row === undefined) return []
  const past = sql.all<AttemptRow>('attempt_list', { seq: row.seq }).map((attempt) => readAttempt(attempt, id))
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

export function stats(session: Session, { lanes }: Request<'queue.stats'>): Reply<'queue.stats'> {
  const { sql, ns } = session
  const now = session.now()
  const paused = new Set(sql.all<{ lane: string }>('lane_list', { ns }).map(({ lane }) => lane))
  const counts = new Map((lanes ?? [...paused]).map((lane) => [lane, noJobs()]))
  const oldestAt = new Map<string, number>()
  for (const { lane, state, jobs, oldest } of countRows(session, lanes)) {
    const count = counts.get(lane) ?? noJobs()
    counts.set(lane, count)
    count[readState(state, lane)] += jobs
    if (oldest !== null) oldestAt.set(lane, oldest)
  }
  const all = [...counts].map(([lane, count]): LaneStats => {
    const oldest = oldestAt.get(lane)
    const oldestReadyMs = oldest === undefined ? null : now - oldest
    return { lane, paused: paused.has(lane), counts: count, oldestReadyMs }
  })
  return { lanes: all.sort((a, b) => (a.lane < b.lane ? -1 : 1)) }
}

interface CountRow {
  readonly lane: string
  readonly state: string
  readonly jobs: number
  readonly oldest: number | null
}

function countRows({ sql, ns }: Session, lanes: readonly string[] | null): readonly CountRow[] {
  if (lanes === null) return sql.all<CountRow>('stats_count', { ns })
  return [...new Set(lanes)].flatMap((lane) => sql.all<CountRow>('stats_count_lane', { ns, lane }))
}
