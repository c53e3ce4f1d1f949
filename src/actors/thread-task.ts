/** What an attempt is to its pool: the job as its thread or process is told of it. Made by the job actor, once an attempt. */
import type { ClaimedJob } from '../backends/protocol/index.ts'
import { sharedMonotonic } from '../clock.ts'
import type { ThreadHandler } from '../contract.ts'
import { type AttemptEnvironment, storedFrom } from './attempt.ts'
import { lowestWanted } from './job-log.ts'
import type { ThreadTask } from './thread-run.ts'
import { threadJob } from './thread-services.ts'

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
