/**
 * Rows of the tables, and what the protocol makes of them. A column that does not hold what Holdfast writes there is
 * STORE_CORRUPT naming job and column; never a guess.
 */

import { HoldfastError } from '../../errors.ts'
import type { AttemptOutcome, AttemptRecord, Failure, JobState, Payload, RetryPolicy } from '../../job.ts'
import { JOB_STATES } from '../../job.ts'
import type { ClaimedJob, StoredJob } from '../protocol/index.ts'

/** The columns of `ready_list`, and the first ones of `lease_held`, `job_claim` and `job_turn`, in their order. */
export type ClaimRow = readonly [
  seq: number,
  id: string,
  type: string,
  lane: string,
  payload: unknown,
  attempts: number,
  maxAttempts: number,
  maxAttemptsFixed: number,
  crashes: number,
  maxCrashes: number,
  retry: string | null,
  timeoutMs: number | null,
  deadlineAt: number | null,
  metadata: string | null,
  traceId: string | null,
  keepResultMs: number | null,
  leaseEpoch: number,
  token: string | null,
]

/** The columns of `lease_held`, and of the jobs that `job_claim` and `job_turn` grant: those of a claim, and the store's time. */
export type TimedRow = readonly [...ClaimRow, now: number]

export interface JobRow {
  readonly seq: number
  readonly id: string
  readonly type: string
  readonly lane: string
  readonly payload: unknown
  readonly attempts: number
  readonly max_attempts: number
  readonly max_attempts_fixed: number
  readonly crashes: number
  readonly max_crashes: number
  readonly retry: string | null
  readonly timeout_ms: number | null
  readonly deadline_at: number | null
  readonly metadata: string | null
  readonly trace_id: string | null
  readonly keep_result_ms: number | null
  readonly lease_epoch: number
  readonly state: string
  readonly priority: number
  readonly created_at: number
  readonly updated_at: number
  readonly run_at: number
  readonly idempotency_key: string | null
  readonly concurrency_key: string | null
  readonly replay_of: string | null
  readonly worker_id: string | null
  readonly lease_expires_at: number | null
  readonly started_at: number | null
  readonly finished_at: number | null
  readonly cancel_requested: number
  readonly last_failure: string | null
  readonly dlq_code: string | null
  readonly progress: unknown
  readonly output: unknown
}

export interface AttemptRow {
  readonly attempt: number
  readonly outcome: string
  readonly worker_id: string
  readonly lease_epoch: number
  readonly started_at: number
  readonly finished_at: number
  readonly duration_ms: number | null
  readonly failure: string | null
}

const OUTCOMES: readonly string[] = ['failed', 'crashed', 'cancelled', 'released'] satisfies AttemptOutcome[]
const STATES: readonly string[] = JOB_STATES

/** Reads a column of JSON text that must be an object or null. */
function readObject<T extends object>(text: string | null, id: string, column: string): T | null {
  if (text === null) return null
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw corrupt(`${column} of a job`, { id, column }, cause)
  }
  if (typeof value !== 'object' || value === null) throw corrupt(`${column} of a job`, { id, column })
  return value as T
}

export function readState(text: string, id: string): JobState {
  if (!STATES.includes(text)) throw corrupt('state of a job', { id, column: 'state', found: text })
  return text as JobState
}

/** How a dialect that reads a value as one text marks bytes, in hexadecimal; no JSON begins so. */
export const BYTES_MARK = '\\x'

function readPayload(value: unknown, id: string, column: string): Payload {
  if (typeof value === 'string') return value.startsWith(BYTES_MARK) ? readBytes(value) : value
  if (value instanceof Uint8Array) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  throw corrupt(`${column} of a job`, { id, column })
}

const readBytes = (text: string): Payload =>
  text.length === BYTES_MARK.length ? '' : Uint8Array.from(Buffer.from(text.slice(BYTES_MARK.length), 'hex'))

const readPayloadOrNull = (value: unknown, id: string, column: string): Payload | null =>
  value === null ? null : readPayload(value, id, column)

export const writeObject = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))

/** The lease that a claimed row has, or is about to be given. */
export interface Granted {
  readonly token: string
  readonly attempt: number
  readonly now: number
}

/** Throws when the row is damaged, so decode before the lease is written. */
export function readClaimed(row: ClaimRow | TimedRow, { token, attempt, now }: Granted): ClaimedJob {
  const [, id, type, lane, payload, , maxAttempts, fixed, crashes, maxCrashes, retry, timeoutMs, deadlineAt] = row
  return {
    id,
    type,
    lane,
    payload: readPayload(payload, id, 'payload'),
    token,
    attempt,
    maxAttempts,
    maxAttemptsFixed: fixed === 1,
    crashes,
    maxCrashes,
    retry: readObject<RetryPolicy>(retry, id, 'retry'),
    timeoutMs,
    deadlineAt,
    deadlineInMs: deadlineAt === null ? null : deadlineAt - now,
    metadata: readObject<Record<string, unknown>>(row[13], id, 'metadata'),
    traceId: row[14],
    keepResultMs: row[15],
  }
}

export function readJob(row: JobRow): StoredJob {
  const { id } = row
  return {
    id,
    type: row.type,
    lane: row.lane,
    state: readState(row.state, id),
    priority: row.priority,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    runAt: row.run_at,
    deadlineAt: row.deadline_at,
    timeoutMs: row.timeout_ms,
    attempts: row.attempts,
    maxAttempts: row.max_attempts,
    maxAttemptsFixed: row.max_attempts_fixed === 1,
    crashes: row.crashes,
    maxCrashes: row.max_crashes,
    retry: readObject<RetryPolicy>(row.retry, id, 'retry'),
    idempotencyKey: row.idempotency_key,
    concurrencyKey: row.concurrency_key,
    metadata: readObject<Record<string, unknown>>(row.metadata, id, 'metadata'),
    traceId: row.trace_id,
    replayOf: row.replay_of,
    workerId: row.worker_id,
    leaseEpoch: row.lease_epoch === 0 ? null : row.lease_epoch,
    leaseExpiresAt: row.state === 'running' ? row.lease_expires_at : null,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    cancelRequested: row.cancel_requested === 1,
    lastFailure: readObject<Failure>(row.last_failure, id, 'last_failure'),
    dlqCode: row.dlq_code,
    keepResultMs: row.keep_result_ms,
    payload: readPayload(row.payload, id, 'payload'),
    output: readPayloadOrNull(row.output, id, 'output'),
    progress: readPayloadOrNull(row.progress, id, 'progress'),
  }
}

export function readAttempt(row: AttemptRow, id: string): AttemptRecord {
  if (!OUTCOMES.includes(row.outcome)) throw corrupt('outcome of an attempt', { id, found: row.outcome })
  return {
    attempt: row.attempt,
    outcome: row.outcome as AttemptOutcome,
    workerId: row.worker_id,
    leaseEpoch: row.lease_epoch,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    durationMs: row.duration_ms,
    failure: readObject<Failure>(row.failure, id, 'failure'),
  }
}

/** Something in the tables that Holdfast did not write so. */
export function corrupt(what: string, details: Readonly<Record<string, unknown>>, cause?: unknown): HoldfastError {
  return new HoldfastError('STORE_CORRUPT', `the store holds a damaged ${what}`, {
    details: { ...details, outcome: 'refused' },
    cause,
  })
}
