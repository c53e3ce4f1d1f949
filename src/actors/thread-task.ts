/** What an attempt is to its pool: the job as its thread or process is told of it. Made by the job actor, once an attempt. */
import type { ThreadJob } from '../../workers/handler-protocol.ts'
import type { ClaimedJob } from '../backends/protocol/index.ts'
import { sharedMonotonic } from '../clock.ts'
import type { ThreadHandler } from '../contract.ts'
import { type AttemptEnvironment, expectedAttempts, storedFrom } from './attempt.ts'
import { leaseEpochOf } from './handler-context.ts'
import { lowestWanted } from './job-log.ts'
import type { ThreadTask } from './thread-run.ts'

export interface TaskParts {
  readonly job: ClaimedJob
  readonly env: AttemptEnvironment
  /** Monotonic time before the claim was sent: what the deadline is counted from. */
  readonly claimedAt: number
  readonly calls: { readonly onStart: (() => void) | null; readonly onUnbegun: () => void }
}

export function threadTask(
  handler: ThreadHandler,
  input: unknown,
  { job, env, claimedAt, calls }: TaskParts,
): ThreadTask {
  const sinceClaimMs = env.clock.monotonic() - claimedAt
  return {
    module: handler.module,
    isolation: handler.isolation,
    input,
    logFrom: lowestWanted(env.logger, storedFrom(env)),
    startBefore: job.deadlineInMs === null ? null : sharedMonotonic() + job.deadlineInMs - sinceClaimMs,
    ...calls,
    job: threadJob(env, job),
  }
}

/** The job as a thread is told of it. */
function threadJob(env: AttemptEnvironment, job: ClaimedJob): ThreadJob {
  const maxAttempts = expectedAttempts(env, job)
  return {
    jobId: job.id,
    type: job.type,
    lane: job.lane,
    attempt: job.attempt,
    maxAttempts,
    isLastAttempt: job.attempt >= maxAttempts,
    leaseEpoch: leaseEpochOf(job),
    workerId: env.workerId,
    deadlineAt: job.deadlineAt,
    metadata: job.metadata,
    traceId: job.traceId,
  }
}
