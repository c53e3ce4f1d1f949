/**
 * The vocabulary of jobs: states, failures, attempts and the record of a job.
 * These words are the same in the stores, the metrics, the machine and the docs; nothing here has behaviour but
 * small pure look-ups.
 */

/** The eight states of a job. The legal moves between them are in `actors/job-machine.ts`. */
export const JOB_STATES = [
  'waiting',
  'scheduled',
  'queued',
  'running',
  'retry_wait',
  'completed',
  'cancelled',
  'dlq',
] as const

export type JobState = (typeof JOB_STATES)[number]

export const TERMINAL_STATES = ['completed', 'cancelled', 'dlq'] as const satisfies readonly JobState[]
export type TerminalState = (typeof TERMINAL_STATES)[number]

/** True when no move leaves the state. */
export function isTerminal(state: JobState): state is TerminalState {
  return state === 'completed' || state === 'cancelled' || state === 'dlq'
}

const STATE_ALIASES: Readonly<Record<string, JobState>> = { succeeded: 'completed', canceled: 'cancelled' }

/** The state that a text names, the spellings `succeeded` and `canceled` included; null for anything else. */
export function parseJobState(text: string): JobState | null {
  const alias = Object.hasOwn(STATE_ALIASES, text) ? STATE_ALIASES[text] : undefined
  return alias ?? JOB_STATES.find((state) => state === text) ?? null
}

/** `<lane>/<ulid>`: opaque to users, self-routing for the stores. */
export type JobId = string

/** `epoch:worker:nonce`, compared whole. See `docs/semantics.md`, lease tokens. */
export type LeaseToken = string

/**
 * An encoded value: JSON text when the value is pure JSON, MessagePack bytes when it is not, empty text for
 * `undefined`. Stores keep it unread. See `backends/codec.ts`.
 */
export type Payload = string | Uint8Array

/** Why an attempt ended badly, in the classes that decide what happens next. */
export type FailureClass = 'retryable' | 'permanent' | 'timeout' | 'system' | 'panic' | 'cancelled' | 'deadline'

/** Codes of attempts with a class of their own; any other code is `retryable`. Spelling is folded to upper case. */
export const FAILURE_CLASSES = {
  HANDLER_ERROR: 'retryable',
  TIMEOUT: 'timeout',
  DEPENDENCY_DOWN: 'system',
  DB_DEADLOCK: 'system',
  SERIALIZATION: 'system',
  RATE_LIMIT: 'system',
  DB_DISCONNECT: 'system',
  SYSTEM_FAILURE: 'system',
  LEASE_EXPIRED: 'system',
  BAD_PAYLOAD: 'permanent',
  BAD_OUTPUT: 'permanent',
  UNKNOWN_JOB_TYPE: 'permanent',
  PERMANENT: 'permanent',
  PERMANENT_ERROR: 'permanent',
  PANIC: 'panic',
  CANCELLED: 'cancelled',
  DEADLINE_EXCEEDED: 'deadline',
  MAX_ATTEMPTS_EXCEEDED: 'permanent',
  CRASH_LOOP: 'permanent',
} as const satisfies Record<string, FailureClass>

/** The class of a failure code, in any letter case. */
export function failureClass(code: string): FailureClass {
  const folded = code.toUpperCase()
  return Object.hasOwn(FAILURE_CLASSES, folded) ? FAILURE_CLASSES[folded as keyof typeof FAILURE_CLASSES] : 'retryable'
}

/** How an attempt failed, as plain data. `message` is at most 2,000 characters, `stack` at most 8,000. */
export interface Failure {
  readonly code: string
  readonly message: string
  readonly name?: string
  readonly stack?: string
  readonly cause?: Failure
  /** The handler said that no retry can help, whatever the class of the code. */
  readonly permanent?: true
  /** The delay that the handler or a provider asked for, in milliseconds. */
  readonly retryAfterMs?: number
  /** Set when the retry policy itself failed and the worker's default was used. */
  readonly policyError?: string
}

export type AttemptOutcome = 'running' | 'succeeded' | 'failed' | 'crashed' | 'cancelled' | 'released'

/** One grant of a job to a worker. `attempt` counts from 1; times are the store's, in epoch milliseconds. */
export interface AttemptRecord {
  readonly attempt: number
  readonly outcome: AttemptOutcome
  readonly workerId: string
  readonly leaseEpoch: number
  readonly startedAt: number
  readonly finishedAt: number | null
  readonly durationMs: number | null
  readonly failure: Failure | null
}

/** A retry policy as data. `attempts` counts all runs, the first too; delays in milliseconds; jitter is a share. */
export interface RetryPolicy {
  readonly kind: 'exponential' | 'fixed' | 'immediate' | 'none'
  readonly attempts: number
  readonly baseMs: number
  readonly capMs: number
  readonly jitter: number
}

/** What a producer asked for, immutable from then on. All times in epoch milliseconds, spans in milliseconds. */
export interface JobDefinition {
  readonly id: JobId
  readonly type: string
  readonly lane: string
  readonly payload: Payload
  readonly priority: number
  /** Absolute time of eligibility; null: `delayMs` after the store accepts the job. */
  readonly runAt: number | null
  readonly delayMs: number
  readonly deadlineAt: number | null
  readonly timeoutMs: number | null
  /** The budget in all runs, the first too: the job's own, else its contract's, else the default. */
  readonly maxAttempts: number
  /** True when the job itself fixes `maxAttempts`, so that no policy resolved later may change it. */
  readonly maxAttemptsFixed: boolean
  /** The job's own policy; null: resolved by the worker at the first failure and stored then. */
  readonly retry: RetryPolicy | null
  /** Crashes in a row (dead thread, expired lease) after which the job is dead-lettered whatever its budget. */
  readonly maxCrashes: number
  readonly idempotencyKey: string | null
  /** Jobs of a lane with the same key share its `maxPerKey`; null: the job counts for none. */
  readonly concurrencyKey: string | null
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly traceId: string | null
  /** How long the output is kept after completion; null: as long as the job itself. */
  readonly keepResultMs: number | null
  readonly replayOf: JobId | null
}

/** A job as read back. Times are the store's, in epoch milliseconds. */
export interface JobRecord {
  readonly id: JobId
  readonly type: string
  readonly lane: string
  readonly state: JobState
  readonly priority: number
  readonly createdAt: number
  readonly updatedAt: number
  readonly runAt: number
  readonly deadlineAt: number | null
  readonly timeoutMs: number | null
  /** Attempts charged so far, the running one included. */
  readonly attempts: number
  readonly maxAttempts: number
  readonly crashes: number
  readonly maxCrashes: number
  readonly retry: RetryPolicy | null
  readonly idempotencyKey: string | null
  readonly concurrencyKey: string | null
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly traceId: string | null
  readonly replayOf: JobId | null
  /** The worker that holds the lease, or held it last. */
  readonly workerId: string | null
  readonly leaseEpoch: number | null
  readonly leaseExpiresAt: number | null
  readonly startedAt: number | null
  readonly finishedAt: number | null
  readonly cancelRequested: boolean
  readonly lastFailure: Failure | null
  /** Why the job is in the dead letters. */
  readonly dlqCode: string | null
  readonly progress: unknown
}

/** A job with its decoded input and, once completed and kept, output. */
export interface JobDetail extends JobRecord {
  readonly input: unknown
  readonly output: unknown
  /** False when the job has not completed, or its output was not kept. */
  readonly hasOutput: boolean
}
