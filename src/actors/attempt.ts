/**
 * What the attempts of one worker share: its handlers, policies, retention and the ways out of a handler.
 * Plain data and functions, made once by the runtime and read by every job actor.
 */
import { encodeValue } from '../backends/codec.ts'
import type { ClaimedJob, Settlement } from '../backends/protocol/index.ts'
import { type Budget, decideFailure } from '../backends/rules.ts'
import { type Clock, type Timers, withDeadline } from '../clock.ts'
import {
  DEFAULT_RETRY,
  type EnqueueOptions,
  type Handler,
  type JobContract,
  parseRetryPolicy,
  type RetryOption,
} from '../contract.ts'
import { HoldfastError } from '../errors.ts'
import { toFailure } from '../failure.ts'
import { type Failure, failureClass, type JobId, type RetryPolicy } from '../job.ts'
import type { Random } from '../random.ts'
import { type Retention, retentionIn } from '../retention.ts'
import type { Logger, LogLevel } from '../telemetry.ts'
import type { Inspect } from './lifecycle.ts'
import type { LostSlots } from './lost-slots.ts'
import type { NoteWriter } from './note-writer.ts'
import type { PoolActor } from './pool-actor.ts'

export interface AttemptEnvironment {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly logger: Logger
  readonly workerId: string
  readonly handlers: ReadonlyMap<string, Handler<unknown>>
  readonly pool: PoolActor | null
  /** Where a slot goes whose handler cannot be stopped. */
  readonly lost: LostSlots
  readonly killGraceMs: number
  readonly payloadBytesMax: number
  readonly retention: Retention
  readonly defaultRetry: RetryOption | null
  readonly queueRetry: ReadonlyMap<string, RetryOption>
  readonly context: unknown
  readonly inspect: Inspect | null
  /** Stores what handlers say of their jobs: progress, and lines of `logLevel` or above. */
  readonly notes: NoteWriter
  readonly logLevel: LogLevel
  readonly enqueue: (
    job: JobContract | string,
    input: unknown,
    options: EnqueueOptions,
  ) => Promise<{ readonly id: JobId; readonly deduplicated: boolean }>
}

/** The lowest level of the lines that are stored; null: none is. */
export const storedFrom = ({ notes, logLevel }: AttemptEnvironment): LogLevel | null =>
  notes.keepLines === 0 ? null : logLevel

/** The policy that a job without its own has by precedence: contract, queue, worker; null: the built-in default. */
function inheritedRetry(env: AttemptEnvironment, job: ClaimedJob): RetryOption | null {
  return env.handlers.get(job.type)?.contract.retry ?? env.queueRetry.get(job.lane) ?? env.defaultRetry
}

/** The budget as far as it can be known before the first failure. */
export function expectedAttempts(env: AttemptEnvironment, job: ClaimedJob): number {
  if (job.retry !== null || job.maxAttemptsFixed) return job.maxAttempts
  const inherited = inheritedRetry(env, job)
  return inherited === null || typeof inherited === 'function' ? job.maxAttempts : inherited.attempts
}

/** A policy function that takes longer has failed: while it is asked, the attempt keeps its slot and its lease. */
const POLICY_DEADLINE_MS = 5_000

interface ResolvedPolicy {
  readonly policy: RetryPolicy
  readonly policyError?: string
}

/** The policy for the remaining retries: the job's (its own, or frozen at its first failure), else the inherited one. */
export async function resolvePolicy(
  env: AttemptEnvironment,
  job: ClaimedJob,
  failure: Failure,
): Promise<ResolvedPolicy> {
  if (job.retry !== null) return { policy: job.retry }
  const inherited = inheritedRetry(env, job)
  if (inherited === null) return { policy: DEFAULT_RETRY }
  if (typeof inherited !== 'function') return { policy: inherited }
  try {
    const chosen = await withDeadline(
      askPolicy(inherited, env, { job, failure }),
      POLICY_DEADLINE_MS,
      env.timers,
      () => {
        return new HoldfastError('INVALID_ARGUMENT', `the retry policy gave no answer within ${POLICY_DEADLINE_MS} ms`)
      },
    )
    return { policy: parseRetryPolicy(chosen, 'retry') }
  } catch (error) {
    const fallback =
      typeof env.defaultRetry === 'function' || env.defaultRetry === null ? DEFAULT_RETRY : env.defaultRetry
    return { policy: fallback, policyError: toFailure(error).message }
  }
}

async function askPolicy(
  policy: Extract<RetryOption, (...args: never) => unknown>,
  env: AttemptEnvironment,
  { job, failure }: { readonly job: ClaimedJob; readonly failure: Failure },
): Promise<unknown> {
  const { id: jobId, type, lane, attempt, metadata } = job
  return await policy(failure, { jobId, type, lane, attempt, metadata, context: env.context as object })
}

interface Success {
  readonly output: unknown
  readonly durationMs: number
}

/** The settlement of an attempt that succeeded; throws what is wrong with its output. */
export function settleSuccess(env: AttemptEnvironment, job: ClaimedJob, { output, durationMs }: Success): Settlement {
  const { id, token, keepResultMs } = job
  const keepMs = retentionIn(env.retention, job.lane).completedMs
  const isKept = keepMs !== 0 && keepResultMs !== 0
  const encoded = isKept ? encodeValue(output, 'output', env.payloadBytesMax) : null
  return { kind: 'complete', id, token, durationMs, keepMs, output: encoded, keepOutputMs: keepResultMs }
}

/** The settlement of a job that is given back, uncharged; `durationMs` is null when it was never started. */
export function settleRelease(
  { retention }: Pick<AttemptEnvironment, 'retention'>,
  { id, token, lane }: ClaimedJob,
  durationMs: number | null,
): Settlement {
  const keepMs = retentionIn(retention, lane).cancelledMs
  return { kind: 'release', id, token, durationMs: durationMs ?? 0, keepMs, started: durationMs !== null }
}

/** The settlement of a failed attempt, as the rules decide it. */
export async function settleFailure(
  env: AttemptEnvironment,
  job: ClaimedJob,
  attempt: { readonly failure: Failure; readonly durationMs: number },
): Promise<Settlement> {
  const { id, token } = job
  const { durationMs } = attempt
  const isCancelled = failureClass(attempt.failure.code) === 'cancelled'
  const resolved = isCancelled ? { policy: DEFAULT_RETRY } : await resolvePolicy(env, job, attempt.failure)
  const { policy } = resolved
  const failure =
    resolved.policyError === undefined ? attempt.failure : { ...attempt.failure, policyError: resolved.policyError }
  const maxAttempts = job.retry !== null || job.maxAttemptsFixed ? job.maxAttempts : policy.attempts
  const budget: Budget = { attempt: job.attempt, maxAttempts, crashes: job.crashes, maxCrashes: job.maxCrashes }
  const decision = decideFailure(failure, budget, policy, env.random)
  const { cancelledMs, deadMs } = retentionIn(env.retention, job.lane)
  switch (decision.next) {
    case 'cancel':
      return { kind: 'cancel', id, token, durationMs, failure, keepMs: cancelledMs }
    case 'dead':
      return {
        kind: 'dead',
        id,
        token,
        durationMs,
        failure,
        code: decision.code,
        crashes: decision.crashes,
        keepMs: deadMs,
      }
    case 'retry':
      return {
        kind: 'retry',
        id,
        token,
        durationMs,
        failure,
        delayMs: decision.delayMs,
        crashes: decision.crashes,
        retry: policy,
        maxAttempts,
        keepMs: cancelledMs,
      }
    default:
      return decision satisfies never
  }
}
