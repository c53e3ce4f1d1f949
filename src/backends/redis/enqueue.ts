/** Stores new jobs, lane by lane. Sending the same ids again creates nothing twice, so a call that fails in part is simply repeated. */
import { HoldfastError, isHoldfastError } from '../../errors.ts'
import type { JobDefinition, JobState } from '../../job.ts'
import type { EnqueueResult, Reply, Request } from '../protocol/index.ts'
import { packDefinition, packSpec } from './definition.ts'
import type { LaneListener } from './lane-listener.ts'
import type { LaneRegistry } from './lane-registry.ts'
import { listOf, numberOf, textOf } from './reply.ts'
import type { RedisArgument } from './servers.ts'
import { BATCH, chunksOf, groupByLane, localId, type RedisSession } from './session.ts'

export interface EnqueueContext {
  readonly session: RedisSession
  readonly registry: LaneRegistry
  /** States of jobs by id, for answers about jobs that were there before. */
  readonly statesOf: (ids: readonly string[]) => Promise<readonly (JobState | null)[]>
  readonly lanes: LaneListener
}

interface Packed {
  readonly index: number
  readonly local: string
  readonly spec: string
  readonly body: RedisArgument
}

const bytesOf = ({ body }: Packed): number => (typeof body === 'number' ? 8 : body.length)

export function enqueue(context: EnqueueContext, request: Request<'job.enqueue'>): Promise<Reply<'job.enqueue'>> {
  const [job] = request.jobs
  return job !== undefined && request.jobs.length === 1 ? enqueueOne(context, job) : enqueueMany(context, request)
}

/** A plain job by itself takes a script of half the work: one awaited enqueue is mostly what it costs while both sides sleep between. */
async function enqueueOne(context: EnqueueContext, job: JobDefinition): Promise<Reply<'job.enqueue'>> {
  const { id, lane } = job
  const slash = lane.length
  if (packSpec(job) !== '' || id[slash] !== '/' || !id.startsWith(lane)) return enqueueMany(context, { jobs: [job] })
  const noted = context.registry.note(lane)
  if (noted !== null) await noted
  const list = context.lanes.listFor(lane)
  const answer = textOf(await context.session.run('job_add', lane, [id.slice(slash + 1), packDefinition(job)], list))
  if (!answer.startsWith('q')) return enqueueMany(context, { jobs: [job] })
  if (list === null && answer.includes('w')) context.lanes.ready(lane)
  if (answer.includes('n')) await context.registry.isFirst(lane)
  return { results: [{ outcome: 'created', id, state: 'queued' }] }
}

async function enqueueMany(context: EnqueueContext, { jobs }: Request<'job.enqueue'>): Promise<Reply<'job.enqueue'>> {
  for (const { id, lane } of jobs) {
    if (localId(id)?.lane !== lane)
      throw new HoldfastError('INTERNAL', `the id ${id} does not belong to lane ${lane}`, {
        details: { outcome: 'refused' },
      })
  }
  const results: (EnqueueResult | null)[] = jobs.map(() => null)
  const calls = groupByLane(jobs, ({ id }) => id).flatMap(({ lane, items }) => {
    const packed = items.map(({ item, local, index }) => ({
      index,
      local,
      spec: packSpec(item),
      body: packDefinition(item),
    }))
    return chunksOf(packed, BATCH.enqueueJobs, bytesOf).map((chunk) => ({ lane, chunk }))
  })
  await all(calls.map(({ lane, chunk }) => store(context, lane, { chunk, jobs, results })))
  return { results: await answered(context, results, jobs) }
}

interface Storing {
  readonly chunk: readonly Packed[]
  readonly jobs: readonly JobDefinition[]
  readonly results: (EnqueueResult | null)[]
}

/** One script. What was there before is answered later, since its state must be read. */
async function store(context: EnqueueContext, lane: string, { chunk, jobs, results }: Storing): Promise<void> {
  const noted = context.registry.note(lane)
  if (noted !== null) await noted
  const args = chunk.flatMap(({ local, spec, body }) => [local, spec, body])
  const list = context.lanes.listFor(lane)
  const reply = listOf(await context.session.run('job_enqueue', lane, args, list))
  const letters = textOf(reply[0])
  const owners = listOf(reply[1])
  let owner = 0
  chunk.forEach(({ index }, place) => {
    const id = jobs[index]?.id ?? ''
    const letter = letters[place]
    if (letter === 'q' || letter === 's')
      results[index] = { outcome: 'created', id, state: letter === 'q' ? 'queued' : 'scheduled' }
    else if (letter === 'd') {
      results[index] = { outcome: 'deduplicated', id: `${lane}/${textOf(owners[owner])}`, state: 'queued' }
      owner += 1
    } else if (letter === 'r') results[index] = { outcome: 'refused', id, retryAfterMs: numberOf(reply[3]) }
  })
  const flags = textOf(reply[2])
  if (list === null && flags.includes('w')) context.lanes.ready(lane)
  if (flags.includes('n')) await context.registry.isFirst(lane)
}

/** Fills in the jobs that were there before. One that is gone by now has ended. */
async function answered(
  { statesOf }: EnqueueContext,
  results: readonly (EnqueueResult | null)[],
  jobs: readonly JobDefinition[],
): Promise<readonly EnqueueResult[]> {
  const asked = results.map((result, index) => {
    if (result === null) return { outcome: 'created' as const, id: jobs[index]?.id ?? '' }
    return result.outcome === 'deduplicated' ? { outcome: result.outcome, id: result.id } : null
  })
  const wanted = asked.flatMap((each) => each?.id ?? [])
  if (wanted.length === 0) return results.flatMap((result) => result ?? [])
  const states = await statesOf(wanted)
  let next = 0
  return results.flatMap((result, index) => {
    const each = asked[index]
    if (each === null || each === undefined) return result ?? []
    next += 1
    return { ...each, state: states[next - 1] ?? 'completed' }
  })
}

/** Waits for all; if some were done and one was not, the call as a whole may have been done. */
async function all(calls: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(calls)
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed === undefined) return
  const { reason } = failed as { readonly reason: unknown }
  const isInPart = outcomes.some((outcome) => outcome.status === 'fulfilled')
  if (!isInPart || !isHoldfastError(reason) || reason.details.outcome !== 'notDone') throw reason
  throw new HoldfastError(reason.code, reason.message, {
    details: { ...reason.details, outcome: 'unknown' },
    cause: reason,
  })
}
