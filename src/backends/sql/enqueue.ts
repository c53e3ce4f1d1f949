/** Accepts jobs. An id or key that is known, live or archived, is answered with the job that has it. */
import type { JobDefinition } from '../../job.ts'
import type { EnqueueResult, Reply, Request } from '../protocol/index.ts'
import { ENDING, endRow } from './ending.ts'
import { byId, missed, type Plan, type Row, read, write } from './plan.ts'
import { corrupt, readState, writeObject } from './row.ts'

/** A key cannot change hands in every try. */
const TRIES_MAX = 10

export function* enqueue({ jobs, resend }: Request<'job.enqueue'>): Plan<Reply<'job.enqueue'>> {
  const isAnySent = resend !== false
  // The same id twice in one call: the second is told what became of the first.
  if (new Set(jobs.map(({ id }) => id)).size === jobs.length) return { results: yield* enqueueAll(jobs, isAnySent) }
  const results: EnqueueResult[] = []
  for (const job of jobs) results.push(...(yield* enqueueAll([job], isAnySent)))
  return { results }
}

function* enqueueAll(
  jobs: readonly JobDefinition[],
  isAnySent: boolean,
  triesLeft = TRIES_MAX,
): Plan<readonly EnqueueResult[]> {
  const results = new Map<JobDefinition, EnqueueResult>()
  if (isAnySent) for (const [job, result] of yield* findEnded(jobs)) results.set(job, result)
  const fresh = jobs.filter((job) => !results.has(job))
  const outcome = yield* write('job_enqueue', fresh.map(enqueueRow))
  const created = fresh.filter((_, index) => outcome.written[index] === true)
  for (const job of created) results.set(job, createdAs(job, outcome.now))
  if (isAnySent) for (const [job, result] of yield* withdrawCopies(created)) results.set(job, result)
  const known = missed(fresh, outcome)
  for (const [job, result] of yield* findKnown(known)) results.set(job, result)
  const vanished = known.filter((job) => !results.has(job))
  for (const [job, result] of yield* afterVanished(vanished, { isAnySent, triesLeft })) results.set(job, result)
  return jobs.map((job) => results.get(job) ?? unanswered(job))
}

/**
 * Whoever was in the way has ended between two steps, and its record has gone with its key. A key is free then; a job of the very id was
 * this enqueue sent before, and has run.
 */
function* afterVanished(
  jobs: readonly JobDefinition[],
  { isAnySent, triesLeft }: { readonly isAnySent: boolean; readonly triesLeft: number },
): Plan<Results> {
  const [keyed, others] = [true, false].map((is) => jobs.filter((job) => (job.idempotencyKey !== null) === is))
  const results = new Map<JobDefinition, EnqueueResult>()
  if (isAnySent) for (const job of others ?? []) results.set(job, { outcome: 'created', id: job.id, state: 'queued' })
  if (keyed === undefined || keyed.length === 0 || triesLeft === 0) return results
  const again = yield* enqueueAll(keyed, isAnySent, triesLeft - 1)
  keyed.forEach((job, index) => {
    const result = again[index]
    if (result !== undefined) results.set(job, result)
  })
  return results
}

/** The answer for one that was written at this time of the store. */
export function createdAs(job: JobDefinition, now: number): EnqueueResult {
  return { outcome: 'created', id: job.id, state: runAtOf(job, now) > now ? 'scheduled' : 'queued' }
}

const runAtOf = ({ runAt, delayMs }: JobDefinition, now: number): number => runAt ?? now + delayMs

/** What `job_enqueue` is given for a job. */
export function enqueueRow(job: JobDefinition): Row {
  return {
    id: job.id,
    lane: job.lane,
    key: job.idempotencyKey,
    type: job.type,
    priority: job.priority,
    run_at: job.runAt,
    delay_ms: job.delayMs,
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
  }
}

type Results = ReadonlyMap<JobDefinition, EnqueueResult>

/** Those that were sent before and have ended since. */
function* findEnded(jobs: readonly JobDefinition[]): Plan<Results> {
  const ended = yield* read<{ id: string; state: string }>('archive_find', byId(jobs.map(({ id }) => id)))
  const states = new Map(ended.map(({ id, state }) => [id, readState(state, id)]))
  return new Map(
    jobs.flatMap((job) => {
      const state = states.get(job.id)
      return state === undefined ? [] : [[job, { outcome: 'created', id: job.id, state } as const] as const]
    }),
  )
}

/**
 * One that ended only while this sending waited for its row has left the hot table by then: what was just written is a copy, which
 * nobody has seen yet since the transaction is open, and is taken back.
 */
function* withdrawCopies(created: readonly JobDefinition[]): Plan<Results> {
  const copies = yield* findEnded(created)
  const withdrawal = { ...ENDING, token: null, to: 'cancelled', keepMs: 0 } as const
  const rows = [...copies.keys()].flatMap(({ id }) =>
    ['queued', 'scheduled'].map((from) => endRow({ ...withdrawal, id, from })),
  )
  yield* write('job_end', rows)
  return copies
}

/** The same id counts before the same key: it is this very enqueue, sent again. */
function* findKnown(jobs: readonly JobDefinition[]): Plan<Results> {
  const results = new Map<JobDefinition, EnqueueResult>()
  const same = yield* read<{ id: string; state: string }>('job_find', byId(jobs.map(({ id }) => id)))
  const states = new Map(same.map(({ id, state }) => [id, readState(state, id)]))
  for (const job of jobs) {
    const state = states.get(job.id)
    if (state !== undefined) results.set(job, { outcome: 'created', id: job.id, state })
  }
  const keyed = jobs.filter((job) => !results.has(job))
  const first = yield* read<{ lane: string; key: string; id: string; state: string }>(
    'job_find_key',
    keyed.map(({ lane, idempotencyKey: key }) => ({ lane, key })),
  )
  const holders = new Map(first.map((row) => [nameOf(row.lane, row.key), row]))
  for (const job of keyed) {
    const holder = holders.get(nameOf(job.lane, job.idempotencyKey))
    if (holder === undefined) continue
    results.set(job, { outcome: 'deduplicated', id: holder.id, state: readState(holder.state, holder.id) })
  }
  return results
}

const nameOf = (lane: string, key: string | null): string => JSON.stringify([lane, key])

function unanswered({ id }: JobDefinition): never {
  throw corrupt('index: a job was refused as known that is not there', { id })
}
