/** Accepts jobs. An id or key that is known, live or archived, is answered with the job that has it. */
import type { JobDefinition } from '../../job.ts'
import type { EnqueueResult, Reply, Request } from '../protocol/index.ts'
import { corrupt } from './errors.ts'
import { readState, writeObject } from './row.ts'
import type { Session } from './statement.ts'

export function enqueue(session: Session, { jobs }: Request<'job.enqueue'>): Reply<'job.enqueue'> {
  const now = session.now()
  return { results: jobs.map((job) => enqueueOne(session, job, now)) }
}

function enqueueOne(session: Session, job: JobDefinition, now: number): EnqueueResult {
  const { sql, ns } = session
  const runAt = job.runAt ?? now + job.delayMs
  const state = runAt > now ? 'scheduled' : 'queued'
  const written = sql.run('job_enqueue', {
    ns,
    id: job.id,
    lane: job.lane,
    key: job.idempotencyKey,
    state,
    type: job.type,
    priority: job.priority,
    now,
    run_at: runAt,
    deadline_at: job.deadlineAt,
    timeout_ms: job.timeoutMs,
    max_attempts: job.maxAttempts,
    max_attempts_fixed: job.maxAttemptsFixed ? 1 : 0,
    max_crashes: job.maxCrashes,
    retry: writeObject(job.retry),
    metadata: writeObject(job.metadata),
    trace_id: job.traceId,
    replay_of: job.replayOf,
    keep_result_ms: job.keepResultMs,
    payload: job.payload,
  })
  return written === 1 ? { outcome: 'created', id: job.id, state } : findKnown(session, job)
}

/** The same id counts before the same key: it is this very enqueue, sent again. */
function findKnown({ sql, ns }: Session, { id, lane, idempotencyKey }: JobDefinition): EnqueueResult {
  const same = sql.get<{ state: string }>('job_find', { ns, id })
  if (same !== undefined) return { outcome: 'created', id, state: readState(same.state, id) }
  const first = sql.get<{ id: string; state: string }>('job_find_key', { ns, lane, key: idempotencyKey })
  if (first === undefined) throw corrupt('index: a job was refused as known that is not there', { id })
  return { outcome: 'deduplicated', id: first.id, state: readState(first.state, first.id) }
}
