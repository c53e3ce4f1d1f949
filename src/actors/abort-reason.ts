/** The reasons a handler's signal fires with, each a HoldfastError that says which. */
import type { ClaimedJob } from '../backends/protocol/index.ts'
import { type ErrorCode, HoldfastError } from '../errors.ts'

export const deadlineExceeded = ({ id }: ClaimedJob): HoldfastError =>
  new HoldfastError('DEADLINE_EXCEEDED', 'the deadline of the job passed while it ran', { details: { jobId: id } })

export const timedOut = ({ id, timeoutMs }: ClaimedJob): HoldfastError =>
  new HoldfastError('TIMEOUT', `the attempt ran longer than its timeout of ${timeoutMs} ms`, {
    details: { jobId: id, timeoutMs },
  })

/** The reason a signal fires with. */
export function abortReason(
  code: Extract<ErrorCode, 'JOB_CANCELLED' | 'SHUTTING_DOWN' | 'LEASE_LOST'>,
  message: string,
  jobId: string,
): HoldfastError {
  return new HoldfastError(code, message, { details: { jobId } })
}
