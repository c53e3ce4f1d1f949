/** Accepts jobs. An id or key that is known, live or archived, is answered with the job that has it. */
import type { JobDefinition } from '../../job.ts'
import type { EnqueueResult, Reply, Request } from '../protocol/index.ts'
import { admit, type Results, type Stored } from './admit.ts'
import { ENDING, endRow } from './ending.ts'
import { byId, missed, type Plan, type Row, read, write } from './plan.ts'
import { corrupt, readState, writeObject } from './row.ts'

/** A key cannot change hands in every try. */
const TRIES_MAX = 10

/** `isAdmitted`: whatever the lanes count, as in a transaction of the caller's. */
export function* enqueue({ jobs, resend }: Request<'job.enqueue'>, isAdmitted = false): Plan<Reply<'job.enqueue'>> {
  const how = { isAnySent: resend !== false, isAdmitted, triesLeft: TRIES_MAX }
  // The same id twice in one call: the second is told what became of the first.
  if (new Set(jobs.map(({ id }) => id)).size === jobs.length) return { results: yield* enqueueAll(jobs, how) }
  const results: EnqueueResult[] = []
  for (const job of jobs) results.push(...(yield* enqueueAll([job], how)))
  return { results }
}

interface How {
  readonly isAnySent: boolean
  readonly isAdmitted: boolean
  readonly triesLeft: number
}

function* enqueueAll(jobs: readonly JobDefinition[], how: How): Plan<readonly EnqueueResult[]> {
  const { isAnySent, isAdmitted } = how
  const results = new Map<JobDefinition, EnqueueResult>()
  if (isAnySent) for (const [job, result] of yield* findEnded(jobs)) results.set(job, result)
  const fresh = jobs.filter((job) => !results.has(job))
  const { created, left } = yield* store(fresh, isAdmitted)
  for (const [job, result] of created) results.set(job, result)
  if (isAnySent) for (const [job, result] of yield* withdrawCopies([...created.keys()])) results.set(job, result)
  for (const [job, result] of yield* findKnown(left)) results.set(job, result)
  const counted = left.filter((job) => !results.has(job))
  if (counted.length > 0)
    for (const [job, result] of yield* admit(counted, { store, findKnown, isAnySent })) results.set(job, result)
  const vanished = left.filter((job) => !results.has(job))
  for (const [job, result] of yield* afterVanished(vanished, how)) results.set(job, result)
  return jobs.map((job) => results.get(job) ?? unanswered(job))
}

/** Whoever had the key has ended between two steps, and its record has gone with the key, which is free then. */
function* afterVanished(jobs: readonly JobDefinition[], how: How): Plan<Results> {
  const results = new Map<JobDefinition, EnqueueResult>()
  const keyed = jobs.filter(({ idempotencyKey }) => idempotencyKey !== null)
  if (keyed.length === 0 || how.triesLeft === 0) return results
  const again = yield* enqueueAll(keyed, { ...how, triesLeft: how.triesLeft - 1 })
  keyed.forEach((job, index) => {
    const result = again[index]
    if (result !== undefined) results.set(job, result)
  })
  return results
}

/** Writes what is new. `left`: known already, or of a lane that counts what it accepts. */
function* store(jobs: readonly JobDefinition[], isAdmitted: boolean): Plan<Stored> {
  const outcome = yield* write(
    'job_enqueue',
    jobs.map((job) => enqueueRow(job, isAdmitted)),
  )
  const written = jobs.filter((_, index) => outcome.written[index] === true)
  return { created: new Map(written.map((job) => [job, createdAs(job, outcome.now)])), left: missed(jobs, outcome) }
}

/** The answer for one that was written at this time of the store. */
export function createdAs(job: JobDefinition, now: number): EnqueueResult {
  return { outcome: 'created', id: job.id, state: runAtOf(job, now) > now ? 'scheduled' : 'queued' }
}

const runAtOf = ({ runAt, delayMs }: JobDefinition, now: number): number => runAt ?? now + delayMs

/** What `job_enqueue` is given for a job. */
export function enqueueRow(job: JobDefinition, isAdmitted: boolean): Row {
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
    concurrency_key: job.concurrencyKey,
    admitted: isAdmitted ? 1 : 0,
  }
}

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
