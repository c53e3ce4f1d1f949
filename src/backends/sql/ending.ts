/**
 * The end of a job: out of the hot table and into the archive, or nowhere when it is not to be kept, with its attempt on
 * record. Guarded by the state and the whole token that the caller expects; not written when the row is not so any more.
 */
import type { AttemptOutcome, Failure, JobId, Payload, TerminalState } from '../../job.ts'
import type { Row } from './plan.ts'
import { writeObject } from './row.ts'

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
  readonly keepOutputMs: number | null
  /** False: whoever held the job may not settle it any more. */
  readonly keepsToken: boolean
  /** True: only if its lease has run out. */
  readonly ifExpired: boolean
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
  keepOutputMs: null,
  keepsToken: true,
  ifExpired: false,
} as const satisfies Partial<Ending>

/** What `job_end` is given for an ending. */
export function endRow({ attempt, ...ending }: Ending): Row {
  const isKept = ending.keepMs === null || ending.keepMs > 0
  return {
    id: ending.id,
    from: ending.from,
    token: ending.token,
    to: ending.to,
    keep_ms: ending.keepMs,
    kept: isKept ? 1 : 0,
    dropped: isKept ? 0 : 1,
    outcome: attempt?.outcome ?? null,
    attempt_failure: writeObject(attempt?.failure ?? null),
    duration_ms: ending.durationMs,
    failure: writeObject(ending.failure),
    failure_if_none: writeObject(ending.failureIfNone),
    crashes: ending.crashes,
    dlq_code: ending.dlqCode,
    output: ending.output,
    keep_output_ms: ending.keepOutputMs,
    keeps_token: ending.keepsToken ? 1 : 0,
    if_expired: ending.ifExpired ? 1 : 0,
  }
}
