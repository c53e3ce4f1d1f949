/** The reasons a handler's signal fires with, each a HoldfastError that says which. */
import type { ClaimedJob } from '../backends/protocol/index.ts'
import { type ErrorCode, HoldfastError } from '../errors.ts'

const deadlineExceeded = ({ id }: ClaimedJob): HoldfastError =>
  new HoldfastError('DEADLINE_EXCEEDED', 'the deadline of the job passed while it ran', { details: { jobId: id } })

export const timedOut = ({ id, timeoutMs }: ClaimedJob): HoldfastError =>
  new HoldfastError('TIMEOUT', `the attempt ran longer than its timeout of ${timeoutMs} ms`, {
    details: { jobId: id, timeoutMs },
  })

/** Which of timeout and deadline comes first, and when; null: the attempt has neither. */
export function limitOf(
  job: ClaimedJob,
  startMs: number,
  sinceClaimMs: () => number,
): { readonly reason: HoldfastError; readonly waitMs: number } | null {
  const { timeoutMs, deadlineInMs } = job
  if (timeoutMs === null && deadlineInMs === null) return null
  const timeoutLeftMs = timeoutMs === null ? Number.POSITIVE_INFINITY : timeoutMs === 0 ? 0 : timeoutMs + startMs
  const deadlineLeftMs = deadlineInMs === null ? Number.POSITIVE_INFINITY : deadlineInMs - sinceClaimMs()
  const reason = deadlineLeftMs < timeoutLeftMs ? deadlineExceeded(job) : timedOut(job)
  return { reason, waitMs: Math.min(deadlineLeftMs, timeoutLeftMs) }
}

/** For a job that runs here and that somebody has cancelled. */
export const cancellationOf = (jobId: string): HoldfastError =>
  abortReason('JOB_CANCELLED', 'cancellation of the job was requested', jobId)

/** The reason a signal fires with. */
export function abortReason(
  code: Extract<ErrorCode, 'JOB_CANCELLED' | 'SHUTTING_DOWN' | 'LEASE_LOST'>,
  message: string,
  jobId: string,
): HoldfastError {
  return new HoldfastError(code, message, { details: { jobId } })
}
