/** How an attempt ended, in the words of events and the log. */
import type { JobActor } from './actors/job-actor.ts'
import type { Settlement } from './backends/protocol/index.ts'
import type { JobState } from './job.ts'
import type { JobEventFields } from './telemetry.ts'

export function attemptFields({ job, env }: JobActor, settlement: Settlement, state: JobState): JobEventFields {
  return {
    jobId: job.id,
    type: job.type,
    lane: job.lane,
    attempt: job.attempt,
    workerId: env.workerId,
    durationMs: settlement.durationMs,
    state,
    traceId: job.traceId,
    failure: 'failure' in settlement ? settlement.failure : null,
    retryInMs: settlement.kind === 'retry' && state === 'retry_wait' ? settlement.delayMs : null,
    dlqCode: settlement.kind === 'dead' ? settlement.code : null,
  }
}
