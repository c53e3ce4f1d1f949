/**
 * What an application declares: contracts of jobs, handlers for them, and retry policies.
 * A contract drags in no handler, so producers and workers import the same one.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import {
  DEFAULTS,
  type Duration,
  type Instant,
  LIMITS,
  parseDuration,
  parseInteger,
  parseJobType,
  parseLease,
  parseName,
  parseNumber,
  refuseUnknown,
} from './config.ts'
import { HoldfastError, invalidArgument } from './errors.ts'
import { type Isolation, type IsolationOptions, parseIsolation } from './isolation.ts'
import type { Failure, JobId, RetryPolicy } from './job.ts'

/** Merge your own application context into this interface to type `ctx.context` everywhere. */
// biome-ignore lint/suspicious/noEmptyInterface: users extend it by declaration merging
export interface AppContext {}

/** What a policy function sees of the job that failed for the first time. */
export interface RetryPolicyContext<Context = AppContext> {
  readonly jobId: JobId
  readonly type: string
  readonly lane: string
  readonly attempt: number
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly context: Context
}

/** A policy, or a function that chooses one at the first failure; what it chooses is stored with the job. */
export type RetryOption =
  | RetryPolicy
  | ((error: Failure, context: RetryPolicyContext) => RetryPolicy | Promise<RetryPolicy>)

/** Options of a contract. All but the schemas and `lease` can be overridden per job at `enqueue`. */
export interface ContractOptions<
  InputSchema extends StandardSchemaV1 = StandardSchemaV1,
  OutputSchema extends StandardSchemaV1 = StandardSchemaV1,
> {
  /** Any Standard Schema v1 (https://standardschema.dev); checked at enqueue and again before the handler. */
  readonly input?: InputSchema
  /** Checked on what the handler returns; a mismatch fails the attempt for good with BAD_OUTPUT. */
  readonly output?: OutputSchema
  /** The lane the jobs wait in. Default `default`. */
  readonly queue?: string
  /** Default: that of the queue or worker, else 7 attempts, 2 s doubling up to 15 min, ± 20 %. */
  readonly retry?: RetryOption
  /** How long one attempt may run. Default: no limit. */
  readonly timeout?: Duration
  /** Crashes in a row that dead-letter a job whatever its budget. Default 3. */
  readonly maxCrashes?: number
  /** How long outputs are kept. Default: as long as the job; 0 keeps none. */
  readonly keepResult?: Duration
  /**
   * How long a job of this type stays with a worker that says nothing of it, whatever its other types have. At least 100 ms. Default: the
   * worker's `lease`, which also counts from the claim to the first renewal, sent at once, and in workers whose contract says nothing.
   */
  readonly lease?: Duration
}

/**
 * A declared job type. `Input` is what producers give, `Parsed` what the handler gets after validation, `Output` what
 * `result()` gives, `Returned` what the handler returns before the output schema has looked at it.
 */
export interface JobContract<Input = unknown, Parsed = Input, Output = unknown, Returned = Output> {
  readonly type: string
  readonly queue: string
  readonly retry: RetryOption | null
  readonly timeoutMs: number | null
  readonly maxCrashes: number
  readonly keepResultMs: number | null
  readonly leaseMs: number | null
  readonly input: StandardSchemaV1 | null
  readonly output: StandardSchemaV1 | null
  /** Carries the types; never present at run time. */
  readonly types?: {
    readonly input: Input
    readonly parsed: Parsed
    readonly output: Output
    readonly returned: Returned
  }
}

const CONTRACT_OPTIONS = new Set(['input', 'output', 'queue', 'retry', 'timeout', 'maxCrashes', 'keepResult', 'lease'])

/**
 * Declares a job type. With schemas the types follow from them; without, give type parameters.
 * Throws INVALID_NAME, INVALID_DURATION or INVALID_ARGUMENT naming the option.
 */
export function defineJob<
  InputSchema extends StandardSchemaV1,
  OutputSchema extends StandardSchemaV1 = StandardSchemaV1,
>(
  type: string,
  options: ContractOptions<InputSchema, OutputSchema> & { readonly input: InputSchema },
): JobContract<
  StandardSchemaV1.InferInput<InputSchema>,
  StandardSchemaV1.InferOutput<InputSchema>,
  StandardSchemaV1.InferOutput<OutputSchema>,
  StandardSchemaV1.InferInput<OutputSchema>
>
export function defineJob<OutputSchema extends StandardSchemaV1>(
  type: string,
  options: Omit<ContractOptions<StandardSchemaV1, OutputSchema>, 'input'> & { readonly output: OutputSchema },
): JobContract<unknown, unknown, StandardSchemaV1.InferOutput<OutputSchema>, StandardSchemaV1.InferInput<OutputSchema>>
export function defineJob<Input = unknown, Output = unknown>(
  type: string,
  options?: Omit<ContractOptions, 'input'>,
): JobContract<Input, Input, Output>
export function defineJob(type: string, options: ContractOptions = {}): JobContract {
  parseJobType(type)
  refuseUnknown(options, CONTRACT_OPTIONS, `defineJob('${type}')`)
  return Object.freeze({
    type,
    queue: options.queue === undefined ? DEFAULTS.lane : parseName(options.queue, 'queue'),
    retry:
      options.retry === undefined
        ? null
        : typeof options.retry === 'function'
          ? options.retry
          : parseRetryPolicy(options.retry, 'retry'),
    timeoutMs: options.timeout === undefined ? null : parseDuration(options.timeout, 'timeout'),
    maxCrashes:
      options.maxCrashes === undefined
        ? DEFAULTS.maxCrashes
        : parseInteger(options.maxCrashes, 'maxCrashes', 1, LIMITS.attempts),
    keepResultMs: options.keepResult === undefined ? null : parseDuration(options.keepResult, 'keepResult'),
    leaseMs: options.lease === undefined ? null : parseLease(options.lease, 'lease'),
    input: options.input === undefined ? null : parseSchema(options.input, 'input'),
    output: options.output === undefined ? null : parseSchema(options.output, 'output'),
  })
}

function parseSchema(schema: StandardSchemaV1, field: string): StandardSchemaV1 {
  if (typeof schema?.['~standard']?.validate === 'function') return schema
  throw invalidArgument(field, 'expected a Standard Schema v1 (zod, valibot, arktype and others are)')
}

/**
 * The logger a handler gets: a pino child inline, the same methods in a thread. Lines from `info` on are stored with the job too, see
 * `keepLogs` of the worker and `logs` of the client.
 */
export interface JobLogger {
  trace(fields: object | string, message?: string): void
  debug(fields: object | string, message?: string): void
  info(fields: object | string, message?: string): void
  warn(fields: object | string, message?: string): void
  error(fields: object | string, message?: string): void
  fatal(fields: object | string, message?: string): void
}

/** What a handler is told beside its input; the same inline and in a thread. */
export interface JobContext<Context = AppContext> {
  readonly jobId: JobId
  readonly type: string
  readonly lane: string
  /** 1 for the first run. */
  readonly attempt: number
  /** How many there may be, as far as is known before the first failure has chosen a policy. */
  readonly maxAttempts: number
  /** True when a failure of this one is the last. */
  readonly isLastAttempt: boolean
  /** Grows with every grant of this job: a fencing number for outside resources, while the store's clock is monotone. */
  readonly leaseEpoch: number
  readonly workerId: string
  /** Fires on timeout, deadline, cancellation, lost lease or shutdown; `signal.reason` is a HoldfastError saying which. */
  readonly signal: AbortSignal
  /** The `deadline` of the job. */
  readonly deadlineAt: Date | null
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly traceId: string | null
  /** The worker's `context` inline; in a thread what the module's `setup()` returned. */
  readonly context: Context
  /** Writes to the worker's log and, from `info` on, to the lines that are stored with the job (`keepLogs`). */
  readonly log: JobLogger
  /**
   * Stores how far the job is, any value a payload may be; the latest value counts. Resolves when it is stored, or at once within 250 ms
   * of the last write: then it is stored within that time, or with the end of the attempt. Rejects with LEASE_LOST once the lease is gone,
   * and with STORE_UNAVAILABLE or STORE_TIMEOUT when the store stays away for longer than `callDeadline`.
   */
  progress(value: unknown): Promise<void>
  /** Enqueues another job from inside the handler; it stands whatever becomes of this attempt. */
  enqueue<Input>(
    job: JobContract<Input, never, unknown, never> | JobContract<Input, unknown, unknown, unknown> | string,
    input: Input,
    options?: EnqueueOptions,
  ): Promise<{ readonly id: JobId; readonly deduplicated: boolean }>
}

/** Options of one job. Precedence: job, then contract, then queue, then worker default. */
export interface EnqueueOptions {
  /** The lane to wait in. */
  readonly queue?: string
  /** Higher runs first; any whole number of 32 bits. Default 0. */
  readonly priority?: number
  /** Not before this span has passed on the store's clock. */
  readonly delay?: Duration
  /** Not before this instant; one in the past means now. */
  readonly runAt?: Instant
  /** Never started, and stopped if running, after this instant: the job goes to the dead letters with DEADLINE_EXCEEDED. */
  readonly deadline?: Instant
  /** How long one attempt may run. Default: that of the contract. */
  readonly timeout?: Duration
  /** A policy as data; functions belong to contracts and workers. */
  readonly retry?: RetryPolicy
  /** All runs, the first too. */
  readonly maxAttempts?: number
  /** Crashes in a row that dead-letter it whatever its budget. Default: that of the contract, 3. */
  readonly maxCrashes?: number
  /** While a job with this key is kept in the lane, enqueue answers with it instead of creating another. */
  readonly idempotencyKey?: string | null
  /** Such as a tenant: of the jobs of a lane with one key at most `maxPerKey` run at once, see `setPolicy`. At most 256 bytes. */
  readonly concurrencyKey?: string | null
  /** A small JSON object for your own use, shown in lists; at most 16 KiB. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Carried to `ctx`, records and log lines. Default: the `traceId` of `metadata` or of the input, if there is one. */
  readonly traceId?: string
  /** How long the output is kept; 0 keeps none. Default: as long as the job. */
  readonly keepResult?: Duration
}

export interface InlineHandler<Context = AppContext> {
  readonly kind: 'inline'
  readonly contract: JobContract
  readonly run: (input: unknown, context: JobContext<Context>) => unknown
}

export interface ThreadHandler {
  readonly kind: 'thread'
  readonly contract: JobContract
  readonly module: URL
  readonly isolation: Isolation
}

export type Handler<Context = AppContext> = InlineHandler<Context> | ThreadHandler

/** Binds a function to a contract; it runs on the main thread, so it should await rather than compute. */
export function handle<Input, Parsed, Output, Context = AppContext, Returned = Output>(
  contract: JobContract<Input, Parsed, Output, Returned>,
  handler: (input: Parsed, context: JobContext<Context>) => Returned | Promise<Returned>,
): InlineHandler<Context> {
  requireContract(contract, 'handle')
  if (typeof handler !== 'function') throw invalidArgument(`handle('${contract.type}')`, 'expected a function')
  return { kind: 'inline', contract: contract as JobContract, run: handler as InlineHandler<Context>['run'] }
}

/** The name alone says neither the lane nor anything else: a handler of it would wait for ever. */
function requireContract(contract: unknown, by: string): void {
  const isContract =
    typeof contract === 'object' && contract !== null && typeof Reflect.get(contract, 'type') === 'string'
  if (!isContract) throw invalidArgument(`${by}(contract)`, 'expected what defineJob gives, not the name of a job')
}

/**
 * Binds a module to a contract; its default export `(input, ctx) => output` runs in a worker thread, so it may compute,
 * crash or loop without harm to others; with `isolation: 'process'` in a process of its own. An optional
 * `export async function setup()` makes `ctx.context` once a thread or process. Throws HANDLER_MODULE_INVALID, INVALID_ARGUMENT or
 * INVALID_DURATION.
 */
export function inThread<Input, Parsed, Output, Returned>(
  contract: JobContract<Input, Parsed, Output, Returned>,
  module: URL,
  options: IsolationOptions = {},
): ThreadHandler {
  requireContract(contract, 'inThread')
  const isolation = parseIsolation(options, `inThread('${contract.type}')`)
  if (!(module instanceof URL) || module.protocol !== 'file:') {
    throw new HoldfastError(
      'HANDLER_MODULE_INVALID',
      `inThread('${contract.type}'): expected a file: URL, such as new URL('./handler.js', import.meta.url)`,
      {
        details: { field: 'module' },
      },
    )
  }
  return { kind: 'thread', contract: contract as JobContract, module, isolation }
}

/** Retry policies. `attempts` counts all runs, the first too; delays are durations; `jitter` is a share from 0 to 1. */
export const retry = {
  /** Delay of the nth failure: `min(cap, base · 2^(n-1))`, then ± `jitter`, never above `cap`. Default 7, 2 s, 15 min, 0.2. */
  exponential(
    options: {
      readonly attempts?: number
      readonly base?: Duration
      readonly cap?: Duration
      readonly jitter?: number
    } = {},
  ): RetryPolicy {
    refuseUnknown(options, new Set(['attempts', 'base', 'cap', 'jitter']), 'retry.exponential')
    return policy(
      'exponential',
      options.attempts ?? DEFAULTS.attempts,
      options.base ?? DEFAULTS.retryBaseMs,
      options.cap ?? DEFAULTS.retryCapMs,
      options.jitter ?? DEFAULTS.retryJitter,
    )
  },
  /** The same delay after every failure. */
  fixed: (attempts: number, delay: Duration): RetryPolicy => policy('fixed', attempts, delay, delay, 0),
  /** No delay. */
  immediate: (attempts: number): RetryPolicy => policy('immediate', attempts, 0, 0, 0),
  /** One run, no retry. */
  none: (): RetryPolicy => policy('none', 1, 0, 0, 0),
} as const

function policy(
  kind: RetryPolicy['kind'],
  attempts: number,
  base: Duration,
  cap: Duration,
  jitter: number,
): RetryPolicy {
  return Object.freeze({
    kind,
    attempts: parseInteger(attempts, 'retry.attempts', 1, LIMITS.attempts),
    baseMs: parseDuration(base, 'retry.base'),
    capMs: parseDuration(cap, 'retry.cap'),
    jitter: parseNumber(jitter, 'retry.jitter', 0, 1),
  })
}

const POLICY_KINDS = new Set<unknown>(['exponential', 'fixed', 'immediate', 'none'])

/** Checks a policy that came from outside, whatever made it. Throws INVALID_ARGUMENT naming `field`. */
export function parseRetryPolicy(value: unknown, field: string): RetryPolicy {
  if (typeof value !== 'object' || value === null || !('kind' in value) || !POLICY_KINDS.has(value.kind)) {
    throw invalidArgument(field, 'expected a policy made by retry.exponential, fixed, immediate or none')
  }
  const { kind, attempts, baseMs, capMs, jitter } = value as RetryPolicy
  return policy(kind, attempts, baseMs, capMs, jitter)
}

/** What applies when neither job, contract, queue nor worker says otherwise. */
export const DEFAULT_RETRY: RetryPolicy = retry.exponential()
