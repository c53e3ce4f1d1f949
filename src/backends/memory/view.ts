/** What is seen of a row of the memory store: as a claimer gets it, as a reader gets it, and its attempts. Reads change nothing. */
import type { AttemptRecord } from '../../job.ts'
import { sequenceBefore } from '../cursor.ts'
import type { ClaimedJob, ExpiredLease, LogQuery, Reply, Request, StoredJob, StoredLine } from '../protocol/index.ts'
import type { JobRow } from './row.ts'

/** The attempts in order; the one that runs, or that completed the job, is read off the row itself. */
export function attemptsOf(row: JobRow): readonly AttemptRecord[] {
  const { view } = row
  const past = view.history ?? []
  if (row.state !== 'running' && row.state !== 'completed') return past
  const last: AttemptRecord = {
    attempt: view.attempts,
    outcome: row.state === 'running' ? 'running' : 'succeeded',
    workerId: view.workerId ?? '',
    leaseEpoch: view.leaseEpoch,
    startedAt: view.startedAt ?? row.updatedAt,
    finishedAt: view.finishedAt,
    durationMs: view.durationMs,
    failure: null,
  }
  return [...past, last]
}

/** A job as its claimer gets it. */
export function claimedOf(row: JobRow, now: number): ClaimedJob {
  const { definition, run } = row
  return {
    id: definition.id,
    type: definition.type,
    lane: definition.lane,
    payload: definition.payload,
    token: run.token ?? '',
    attempt: run.attempts,
    maxAttempts: run.maxAttempts,
    maxAttemptsFixed: definition.maxAttemptsFixed,
    crashes: run.crashes,
    maxCrashes: definition.maxCrashes,
    retry: run.retry,
    timeoutMs: definition.timeoutMs,
    deadlineAt: definition.deadlineAt,
    deadlineInMs: definition.deadlineAt === null ? null : definition.deadlineAt - now,
    metadata: definition.metadata,
    traceId: definition.traceId,
    keepResultMs: definition.keepResultMs,
  }
}

/** A job as it is read. Without values in lists. */
export function storedOf(row: JobRow, withValues: boolean): StoredJob {
  const { definition, view } = row
  const isRunning = row.state === 'running'
  return {
    id: definition.id,
    type: definition.type,
    lane: definition.lane,
    state: row.state,
    priority: definition.priority,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    runAt: row.runAt,
    deadlineAt: definition.deadlineAt,
    timeoutMs: definition.timeoutMs,
    attempts: view.attempts,
    maxAttempts: view.maxAttempts,
    maxAttemptsFixed: definition.maxAttemptsFixed,
    crashes: view.crashes,
    maxCrashes: definition.maxCrashes,
    retry: view.retry,
    idempotencyKey: definition.idempotencyKey,
    concurrencyKey: definition.concurrencyKey,
    metadata: definition.metadata,
    traceId: definition.traceId,
    replayOf: definition.replayOf,
    workerId: view.workerId,
    leaseEpoch: view.leaseEpoch === 0 ? null : view.leaseEpoch,
    leaseExpiresAt: isRunning ? view.leaseExpiresAt : null,
    startedAt: view.startedAt,
    finishedAt: view.finishedAt,
    cancelRequested: view.cancelRequested,
    lastFailure: view.lastFailure,
    dlqCode: view.dlqCode,
    keepResultMs: definition.keepResultMs,
    payload: withValues ? definition.payload : '',
    output: withValues ? view.output : null,
    progress: view.progress,
  }
}

/** What a query finds in the log of a job. */
export function linesOf(row: JobRow | undefined, { after, limit }: LogQuery): readonly StoredLine[] {
  const log = row?.view.log ?? []
  if (after === null) return log.slice(0, limit)
  const isBehind = ({ leaseEpoch, number }: StoredLine): boolean =>
    leaseEpoch > after.leaseEpoch || (leaseEpoch === after.leaseEpoch && number > after.number)
  return log.filter(isBehind).slice(0, limit)
}

/** A lease that has run out, as a reaper gets it. */
export function expiredOf({ definition, run }: JobRow, now: number): ExpiredLease {
  return {
    id: definition.id,
    token: run.token ?? '',
    workerId: run.workerId ?? '',
    attempt: run.attempts,
    maxAttempts: run.maxAttempts,
    crashes: run.crashes,
    maxCrashes: definition.maxCrashes,
    cancelRequested: run.cancelRequested,
    startedAt: run.startedAt ?? now,
    expiredForMs: now - run.leaseExpiresAt,
  }
}

/** How many ready rows of its lane come first, up to `limit`; null: it is not ready. Looks at every row: for tests and small work. */
export function aheadOf(row: JobRow | undefined, rows: Iterable<JobRow>, limit: number): number | null {
  if (row?.state !== 'queued' || row.definition.concurrencyKey !== null) return null
  let count = 0
  for (const other of rows) {
    if (count >= limit) break
    if (
      other.state !== 'queued' ||
      other.parkedTicket === other.ticket ||
      other.definition.lane !== row.definition.lane
    )
      continue
    if (isBefore(other, row)) count += 1
  }
  return count
}

function isBefore(a: JobRow, b: JobRow): boolean {
  const byPriority = b.definition.priority - a.definition.priority
  return (byPriority || a.runAt - b.runAt || a.sequence - b.sequence) < 0
}

/** A page of those that are wanted, the newest first. */
export function listOf(rows: readonly JobRow[], query: Request<'job.list'>): Reply<'job.list'> {
  const before = sequenceBefore(query.cursor)
  const wanted = rows
    .filter((row) => row.sequence < before)
    .filter((row) => query.lane === null || row.definition.lane === query.lane)
    .filter((row) => query.type === null || row.definition.type === query.type)
    .filter((row) => query.states === null || query.states.includes(row.state))
    .reverse()
  const page = wanted.slice(0, query.limit)
  const last = page.at(-1)
  return {
    jobs: page.map((row) => storedOf(row, false)),
    cursor: last === undefined || wanted.length <= query.limit ? null : String(last.sequence),
  }
}
