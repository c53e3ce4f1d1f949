/**
 * The plain enqueue of PostgreSQL: jobs without keys that were never sent before have nobody in their way, so nothing is looked for and
 * nothing is asked back. To be careful with each row costs the server a third more. One that is known after all fails the statement as a
 * whole, and the careful way follows.
 */
import type { Reply, Request } from '../protocol/index.ts'
import { createdAs, enqueueRow } from '../sql/enqueue.ts'
import { type Plan, read } from '../sql/plan.ts'
import { sqlStateOf } from './errors.ts'

export const isPlain = ({ jobs, resend }: Request<'job.enqueue'>): boolean =>
  resend === false && jobs.every(({ idempotencyKey }) => idempotencyKey === null)

/** unique_violation: an id is known. */
export const isKnown = (error: unknown): boolean => sqlStateOf(error) === '23505'

export function* add({ jobs }: Request<'job.enqueue'>): Plan<Reply<'job.enqueue'>> {
  const [row] = yield* read<{ now: number }>('job_add', jobs.map(enqueueRow))
  return { results: jobs.map((job) => createdAs(job, row?.now ?? 0)) }
}
