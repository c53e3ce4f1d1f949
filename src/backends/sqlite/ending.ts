/**
 * The end of a job: out of the hot table and into the archive, or nowhere when it is not to be kept, with its attempt on
 * record. Guarded by the state and the whole token that the caller expects; false when the row is not so any more.
 */
import type { AttemptOutcome, Failure, JobId, Payload, TerminalState } from '../../job.ts'
import { writeObject } from './row.ts'
import type { Session } from './statement.ts'

export interface Ending {
  readonly id: JobId
  /** What the row must be for this to happen. */
  readonly from: string
  readonly token: string | null
  readonly to: TerminalState
  readonly keepMs: number | null
  /** The record of the attempt that this ends; null: it succeeded, or none was running. */
  readonly attempt: { readonly outcome: AttemptOutcome; readonly failure: Failure } | null
  readonly durationMs: number | null
  /** Becomes the last failure of the job. */
  readonly failure: Failure | null
  /** Becomes the last failure of the job when it has none. */
  readonly failureIfNone: Failure | null
  readonly crashes: number | null
  readonly dlqCode: string | null
  readonly output: Payload | null
  readonly outputUntil: number | null
  /** False: whoever held the job may not settle it any more. */
  readonly keepsToken: boolean
}

/** What most endings leave out. */
export const ENDING = {
  attempt: null,
  durationMs: null,
  failure: null,
  failureIfNone: null,
  crashes: null,
  dlqCode: null,
  output: null,
  outputUntil: null,
  keepsToken: true,
} as const satisfies Partial<Ending>

export function endJob(session: Session, ending: Ending, now: number): boolean {
  if (ending.keepMs !== null && ending.keepMs <= 0) return forget(session, ending)
  const { sql, ns } = session
  const { id, from, token, attempt } = ending
  if (attempt !== null) {
    addAttempt(session, { ...attempt, id, token, durationMs: ending.durationMs, evenIfCancelled: true }, now)
  }
  const archived = sql.run('job_archive', {
    ns,
    id,
    from,
    token,
    state: ending.to,
    now,
    duration_ms: attempt === null ? ending.durationMs : null,
    keep_until: ending.keepMs === null ? null : now + ending.keepMs,
    failure: writeObject(ending.failure),
    failure_if_none: writeObject(ending.failureIfNone),
    crashes: ending.crashes,
    dlq_code: ending.dlqCode,
    output: ending.output,
    output_until: ending.outputUntil,
    keeps_token: ending.keepsToken ? 1 : 0,
    recorded: attempt === null ? 0 : 1,
  })
  if (archived === 0) return false
  return sql.run('job_delete', [ns, id, from, token, 1]) === 1
}

export interface AttemptEnd {
  readonly id: JobId
  readonly token: string | null
  readonly outcome: AttemptOutcome
  readonly failure: Failure | null
  readonly durationMs: number | null
  /** False: writes nothing when the cancellation of the job was requested. */
  readonly evenIfCancelled: boolean
}

/** Records the attempt that runs as over; false when it is not the one that the token names. */
export function addAttempt({ sql, ns }: Session, attempt: AttemptEnd, now: number): boolean {
  const { id, token, outcome, durationMs, failure, evenIfCancelled } = attempt
  return (
    sql.run('attempt_add', {
      ns,
      id,
      token,
      now,
      outcome,
      duration_ms: durationMs,
      failure: writeObject(failure),
      even_if_cancelled: evenIfCancelled ? 1 : 0,
    }) === 1
  )
}

function forget({ sql, ns }: Session, { id, from, token }: Ending): boolean {
  if (sql.run('job_delete', [ns, id, from, token, 0]) === 1) return true
  const gone = sql.get<{ seq: number }>('job_delete_recorded', { ns, id, from, token })
  if (gone === undefined) return false
  sql.run('attempt_delete', { seq: gone.seq })
  return true
}
