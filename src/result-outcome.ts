/** What `result()` makes of a job that has ended, or did not in time. */
import { decodeValue } from './backends/codec.ts'
import type { StoredJob } from './backends/protocol/index.ts'
import { HoldfastError } from './errors.ts'
import type { JobId, JobState } from './job.ts'

/** The output. Throws JOB_CANCELLED, JOB_DEAD with the failure, or RESULT_NOT_KEPT. */
export function outcomeOf(job: StoredJob): unknown {
  const { id: jobId, state, lastFailure: failure } = job
  switch (state) {
    case 'completed':
      if (job.output === null) throw resultLost(jobId)
      return decodeValue(job.output)
    case 'cancelled':
      throw new HoldfastError('JOB_CANCELLED', 'the job was cancelled', { details: { jobId, failure } })
    default: {
      const { dlqCode } = job
      const message = `the job is in the dead letters with ${dlqCode ?? 'no code'}: ${failure?.message ?? ''}`
      throw new HoldfastError('JOB_DEAD', message, { details: { jobId, dlqCode, failure } })
    }
  }
}

export const resultLost = (jobId: JobId): HoldfastError =>
  new HoldfastError(
    'RESULT_NOT_KEPT',
    'the job has ended, but its result was not kept; see keepResult, and for how long ended jobs are kept',
    {
      details: { jobId },
    },
  )

/** `state`: when it was last looked at; null: it was not there, or nobody knows. */
export function resultTimedOut(
  { id: jobId, timeoutMs, mayAppear }: { readonly id: JobId; readonly timeoutMs: number; readonly mayAppear: boolean },
  state: JobState | null,
): HoldfastError {
  const problem =
    state !== null
      ? `the job is ${state}; it did not end within ${timeoutMs} ms`
      : mayAppear
        ? `the transaction of the job was not committed within ${timeoutMs} ms`
        : `the store did not say within ${timeoutMs} ms what became of the job`
  return new HoldfastError('RESULT_TIMEOUT', problem, { details: { jobId, state } })
}
