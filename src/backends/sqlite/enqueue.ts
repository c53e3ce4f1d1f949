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
  const { id, lane, idempotencyKey: key } = job
  const written = sql.run('job_enqueue', [
    ns,
    id,
    lane,
    key,
    state,
    job.type,
    job.priority,
    now,
    now,
    runAt,
    job.deadlineAt,
    job.timeoutMs,
    job.maxAttempts,
    job.maxAttemptsFixed ? 1 : 0,
    job.maxCrashes,
    writeObject(job.retry),
    writeObject(job.metadata),
    job.traceId,
    job.replayOf,
    job.keepResultMs,
    job.payload,
    ns,
    id,
    ns,
    lane,
    key,
  ])
  return written === 1 ? { outcome: 'created', id, state } : findKnown(session, job)
}

/** The same id counts before the same key: it is this very enqueue, sent again. */
function findKnown({ sql, ns }: Session, { id, lane, idempotencyKey }: JobDefinition): EnqueueResult {
  const same = sql.get<{ state: string }>('job_find', { ns, id })
  if (same !== undefined) return { outcome: 'created', id, state: readState(same.state, id) }
  const first = sql.get<{ id: string; state: string }>('job_find_key', { ns, lane, key: idempotencyKey })
  if (first === undefined) throw corrupt('index: a job was refused as known that is not there', { id })
  return { outcome: 'deduplicated', id: first.id, state: readState(first.state, first.id) }
}
