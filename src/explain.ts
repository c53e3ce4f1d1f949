/**
 * Explains a job from its record and attempts: what happened, why, who owned it, what comes next. Pure, and so worded alike
 * on every store.
 */
import { type Blocker, blockersOf, type ExplainContext, span } from './blockers.ts'
import { type AttemptRecord, type Failure, isTerminal, type JobId, type JobRecord, type JobState } from './job.ts'

/** What will happen, or can be done, next. */
export type NextAction =
  | { readonly kind: 'wait_for_worker' }
  | { readonly kind: 'run_at'; readonly at: number }
  | { readonly kind: 'retry_at'; readonly at: number }
  | {
      readonly kind: 'running'
      readonly workerId: string
      readonly startedAt: number | null
      readonly leaseExpiresAt: number | null
      /** Whether its worker is heard of; `unknown`: it is not among the workers that the store knows. */
      readonly owner: 'alive' | 'silent' | 'unknown'
    }
  | { readonly kind: 'wait_for_parent' }
  | { readonly kind: 'replayable' }
  | { readonly kind: 'none' }

export interface ExplainEvent {
  /** Epoch milliseconds on the store's clock. */
  readonly at: number
  readonly kind: 'enqueued' | 'attempt_started' | 'attempt_ended' | 'ended'
  readonly state: JobState | AttemptRecord['outcome']
  readonly attempt: number | null
  readonly workerId: string | null
  readonly durationMs: number | null
  readonly error: Failure | null
}

export interface Explanation {
  readonly jobId: JobId
  readonly type: string
  readonly lane: string
  readonly state: JobState
  readonly attempts: number
  readonly maxAttempts: number
  /** Attempts after the first. */
  readonly retryCount: number
  /** Every worker that held the job, in order of first lease. */
  readonly workers: readonly string[]
  readonly lastWorkerId: string | null
  readonly lastError: Failure | null
  readonly dlqCode: string | null
  readonly replayOf: JobId | null
  /** Somebody asked for its cancellation while it ran. */
  readonly cancelRequested: boolean
  readonly traceId: string | null
  /** `processingMs` leaves out attempts whose worker was lost: nobody knows how long they ran. */
  readonly durations: { readonly totalMs: number; readonly processingMs: number; readonly waitingMs: number }
  readonly nextAction: NextAction
  /** Why it does not run now, the reason to look at first in front; empty when nothing is known to hold it up. */
  readonly blockers: readonly Blocker[]
  /** What a person may do about it; null when nothing is wrong. */
  readonly suggestedAction: string | null
  readonly events: readonly ExplainEvent[]
  /** One line that says it all. */
  readonly summary: string
}

const SUGGESTIONS: Readonly<Record<string, string>> = {
  MAX_ATTEMPTS_EXCEEDED: 'Look at the last error; when its cause is mended, replay the job.',
  PERMANENT_ERROR: 'The handler said that no retry can help; mend the input or the handler, then replay.',
  PERMANENT: 'The handler said that no retry can help; mend the input or the handler, then replay.',
  PANIC: 'The handler ends its thread; look at its memory use and native modules before replaying.',
  CRASH_LOOP: 'Its workers die or stop renewing while they run it; look at their logs and memory before replaying.',
  DEADLINE_EXCEEDED: 'It came too late; add workers or lengthen the deadline, then replay.',
  UNKNOWN_JOB_TYPE: 'No handler for this type in the worker that took it; deploy one, then replay.',
  BAD_PAYLOAD: 'The input does not satisfy the contract; replay with a corrected input.',
  BAD_OUTPUT:
    'The handler returned what its contract does not allow; mend the handler, and mind that its effects have happened.',
  TIMEOUT: 'The handler ran longer than its timeout; make it faster or lengthen the timeout.',
  LEASE_EXPIRED: 'Its worker died or stopped renewing; it runs again by itself.',
}

export function explainJob(job: JobRecord, attempts: readonly AttemptRecord[], context: ExplainContext): Explanation {
  const { nowMs } = context
  const blockers = blockersOf(job, context)
  const processingMs = attempts.reduce((sum, attempt) => sum + inHandlerMs(attempt, nowMs), 0)
  const totalMs = Math.max(0, (job.finishedAt ?? nowMs) - job.createdAt)
  const code = job.dlqCode ?? (job.state === 'retry_wait' || job.state === 'queued' ? job.lastFailure?.code : undefined)
  return {
    jobId: job.id,
    type: job.type,
    lane: job.lane,
    state: job.state,
    attempts: job.attempts,
    maxAttempts: job.maxAttempts,
    retryCount: Math.max(0, job.attempts - 1),
    workers: [...new Set(attempts.map(({ workerId }) => workerId).filter((id) => id !== ''))],
    lastWorkerId: job.workerId,
    lastError: job.lastFailure,
    dlqCode: job.dlqCode,
    replayOf: job.replayOf,
    cancelRequested: job.cancelRequested,
    traceId: job.traceId,
    durations: { totalMs, processingMs, waitingMs: Math.max(0, totalMs - processingMs) },
    nextAction: nextActionOf(job, context),
    blockers,
    suggestedAction:
      adviceOn(blockers) ?? (code === undefined ? null : (SUGGESTIONS[code] ?? 'Look at the last error.')),
    events: eventsOf(job, attempts),
    summary: summaryOf(job, context, blockers),
  }
}

/** Nobody knows how long an attempt ran whose worker was lost; only that it was not to its end. */
function inHandlerMs({ startedAt, finishedAt, durationMs }: AttemptRecord, nowMs: number): number {
  if (durationMs !== null) return durationMs
  return finishedAt === null ? Math.max(0, nowMs - startedAt) : 0
}

/** What to do about what holds a job up; kinds that pass by themselves have none. */
const ADVICE: Partial<Readonly<Record<Blocker['kind'], string>>> = {
  paused: 'Resume the lane (holdfast resume LANE) when whatever it was paused for is over.',
  no_worker: 'Start a worker for the lane, or look why those that were there have gone (holdfast workers).',
  no_handler: 'Deploy a handler for this type to the workers of the lane, or pause the lane until then.',
  mixed_handlers: 'Give all workers of the lane the same handlers, or the type a lane of its own.',
  owner_silent: 'Look at the process and host of the worker; its lease runs out by itself.',
  deadline_passed: 'It came too late; add workers, or lengthen the deadline, and replay it once it is a dead letter.',
  lease_expired: 'Start a worker, or run holdfast maintain; both take it back.',
  busy: 'Add workers or slots if it must start sooner, or look at what runs (holdfast jobs --state running).',
  key_limit: 'Wait for the jobs that hold the key, or look at why they take so long.',
}

const adviceOn = (blockers: readonly Blocker[]): string | null =>
  blockers.map(({ kind }) => ADVICE[kind]).find((advice) => advice !== undefined) ?? null

function nextActionOf(job: JobRecord, { workers }: ExplainContext): NextAction {
  switch (job.state) {
    case 'waiting':
      return { kind: 'wait_for_parent' }
    case 'scheduled':
      return { kind: 'run_at', at: job.runAt }
    case 'queued':
      return { kind: 'wait_for_worker' }
    case 'running':
      return {
        kind: 'running',
        workerId: job.workerId ?? '',
        startedAt: job.startedAt,
        leaseExpiresAt: job.leaseExpiresAt,
        owner: ownerOf(job, workers),
      }
    case 'retry_wait':
      return { kind: 'retry_at', at: job.runAt }
    case 'dlq':
      return { kind: 'replayable' }
    case 'completed':
    case 'cancelled':
      return { kind: 'none' }
    default:
      return job.state satisfies never
  }
}

function ownerOf({ workerId }: JobRecord, workers: ExplainContext['workers']): 'alive' | 'silent' | 'unknown' {
  const owner = workers?.find(({ id }) => id === workerId)
  if (owner === undefined) return 'unknown'
  return owner.isAlive ? 'alive' : 'silent'
}

function eventsOf(job: JobRecord, attempts: readonly AttemptRecord[]): readonly ExplainEvent[] {
  const blank = { attempt: null, workerId: null, durationMs: null, error: null }
  const first = job.runAt > job.createdAt && job.attempts === 0 ? 'scheduled' : 'queued'
  const events: ExplainEvent[] = [{ ...blank, at: job.createdAt, kind: 'enqueued', state: first }]
  for (const { attempt, workerId, startedAt, finishedAt, durationMs, outcome, failure } of attempts) {
    events.push({ ...blank, at: startedAt, kind: 'attempt_started', state: 'running', attempt, workerId })
    if (finishedAt !== null)
      events.push({
        at: finishedAt,
        kind: 'attempt_ended',
        state: outcome,
        attempt,
        workerId,
        durationMs,
        error: failure,
      })
  }
  if (isTerminal(job.state)) {
    events.push({
      ...blank,
      at: job.finishedAt ?? job.updatedAt,
      kind: 'ended',
      state: job.state,
      error: job.state === 'dlq' ? job.lastFailure : null,
    })
  }
  return events
}

function summaryOf(job: JobRecord, { nowMs }: ExplainContext, blockers: readonly Blocker[]): string {
  const tries = `attempt ${job.attempts} of ${job.maxAttempts}`
  const error = job.lastFailure === null ? '' : `${job.lastFailure.code}: ${firstLine(job.lastFailure.message)}`
  const inTime = span(Math.max(0, job.runAt - nowMs))
  const first = blockers.find(({ kind }) => kind !== 'not_due')
  const why = first === undefined ? '' : `; ${first.text}`
  switch (job.state) {
    case 'waiting':
      return 'waits for its parent to complete'
    case 'scheduled':
      return `not due yet; becomes ready in ${inTime}${why}`
    case 'queued':
      return readySummary(job, error, why)
    case 'running': {
      const cancelled = job.cancelRequested ? '; cancellation was requested' : ''
      return `${tries} runs on ${job.workerId ?? 'a worker'}${cancelled}${why}`
    }
    case 'retry_wait':
      return `${tries} failed with ${error}; runs again in ${inTime}${why}`
    case 'completed':
      return job.attempts <= 1
        ? `completed at the first attempt on ${job.workerId ?? 'a worker'}`
        : `completed at ${tries} on ${job.workerId ?? 'a worker'}`
    case 'cancelled':
      return job.attempts === 0
        ? 'cancelled before it ran'
        : `cancelled after ${job.attempts} attempt${job.attempts === 1 ? '' : 's'}`
    case 'dlq':
      return `dead-lettered with ${job.dlqCode ?? 'no code'} after ${tries}${error === '' ? '' : `; ${error}`}`
    default:
      return job.state satisfies never
  }
}

function readySummary({ lane }: JobRecord, error: string, why: string): string {
  if (error !== '') return `ready to run again after ${error}${why}`
  return why === '' ? `ready; waits for a worker of lane ${lane}` : `ready${why}`
}

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? ''
