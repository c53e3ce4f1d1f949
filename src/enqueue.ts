/**
 * From what a caller writes to a `JobDefinition`: validates input against the contract's schema, checks every option, encodes
 * values. Everything wrong is one typed error before anything is sent to a store.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { encodeValue } from './backends/codec.ts'
import {
  DEFAULTS,
  LIMITS,
  parseDuration,
  parseInstant,
  parseInteger,
  parseJobType,
  parseName,
  parseRunAt,
  parseShortText,
  parseText,
  refuseUnknown,
} from './config.ts'
import { type EnqueueOptions, type JobContract, parseRetryPolicy } from './contract.ts'
import { HoldfastError, invalidArgument } from './errors.ts'
import { toFailure } from './failure.ts'
import type { JobDefinition, RetryPolicy } from './job.ts'

export interface DefinitionContext {
  readonly ulid: () => string
  /** Epoch milliseconds. */
  readonly now: () => number
  readonly payloadBytesMax: number
}

const OPTIONS = new Set([
  'queue',
  'priority',
  'delay',
  'runAt',
  'deadline',
  'timeout',
  'retry',
  'maxAttempts',
  'maxCrashes',
  'idempotencyKey',
  'concurrencyKey',
  'metadata',
  'traceId',
  'keepResult',
])

/** The part of a contract that an enqueue needs; a bare type name stands for one without options. */
export type EnqueueTarget = Pick<
  JobContract,
  'type' | 'queue' | 'retry' | 'timeoutMs' | 'maxCrashes' | 'keepResultMs' | 'input'
>

export function toTarget(job: JobContract | string): EnqueueTarget {
  if (typeof job !== 'string') {
    if (typeof job?.type === 'string' && typeof job.queue === 'string' && 'input' in job) return job
    throw invalidArgument('job', 'expected a contract made by defineJob, or the name of a job type')
  }
  return {
    type: parseJobType(job),
    queue: DEFAULTS.lane,
    retry: null,
    timeoutMs: null,
    maxCrashes: DEFAULTS.maxCrashes,
    keepResultMs: null,
    input: null,
  }
}

/**
 * Checks `input` against the schema; the original is what is stored, since the handler's side parses it again. Throws
 * VALIDATION_FAILED at once when the schema answers at once; a promise is given only by a schema that gave one.
 */
export function checkInput({ type, input: schema }: Pick<JobContract, 'type' | 'input'>, input: unknown): Check {
  if (schema === null) return
  let result: unknown
  try {
    result = schema['~standard'].validate(input)
  } catch (cause) {
    throw schemaFailed(type, cause)
  }
  if (!isThenable(result)) return judge(type, result)
  return Promise.resolve(result).then(
    (later) => judge(type, later),
    (cause) => {
      throw schemaFailed(type, cause)
    },
  )
}

type Check = void | Promise<void>

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof Reflect.get(value, 'then') === 'function'

interface Issue {
  readonly path: string
  readonly message: string
}

function judge(type: string, result: unknown): void {
  const issues = issuesOf(type, result)
  if (issues === null) return
  const [first] = issues
  throw new HoldfastError(
    'VALIDATION_FAILED',
    `input of '${type}' is not valid: ${first === undefined ? 'the schema refused it' : `${first.path}: ${first.message}`}`,
    { details: { field: 'input', issues } },
  )
}

/** What the schema found wrong; null: nothing. One that gives an answer that is none has not found the input valid. */
function issuesOf(type: string, result: unknown): readonly Issue[] | null {
  try {
    if (typeof result !== 'object' || result === null) throw new TypeError('it gave no result')
    const issues: unknown = Reflect.get(result, 'issues')
    if (issues === undefined) return null
    return Array.isArray(issues) ? issues.slice(0, 10).map(readIssue) : []
  } catch (cause) {
    throw schemaFailed(type, cause)
  }
}

function schemaFailed(type: string, cause: unknown): HoldfastError {
  const problem = `the schema of '${type}' failed: ${toFailure(cause).message}`
  return new HoldfastError('VALIDATION_FAILED', problem, { details: { field: 'input', issues: [] }, cause })
}

const readIssue = (issue: StandardSchemaV1.Issue): Issue => ({ path: pathOf(issue.path), message: issue.message })

function pathOf(path: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined): string {
  const keys = (path ?? []).map((part) => String(typeof part === 'object' ? part.key : part))
  return ['input', ...keys].join('.')
}

/** Builds the definition. The input must have passed `checkInput`. */
export function toDefinition(
  target: EnqueueTarget,
  input: unknown,
  options: EnqueueOptions,
  context: DefinitionContext,
): JobDefinition {
  refuseUnknown(options, OPTIONS, 'options')
  if (options.delay !== undefined && options.runAt !== undefined) {
    throw invalidArgument('delay', 'give either delay or runAt, not both')
  }
  const {
    queue,
    priority,
    delay,
    runAt,
    deadline,
    timeout,
    maxAttempts,
    maxCrashes,
    idempotencyKey,
    concurrencyKey,
    traceId,
    keepResult,
  } = options
  const lane = queue === undefined ? target.queue : parseName(queue, 'queue')
  const metadata = parseMetadata(options.metadata)
  const retry = options.retry === undefined ? null : parseJobRetry(options.retry)
  const explicit = maxAttempts === undefined ? null : parseInteger(maxAttempts, 'maxAttempts', 1, LIMITS.attempts)
  const fromContract = typeof target.retry === 'object' ? target.retry?.attempts : undefined
  return {
    id: `${lane}/${context.ulid()}`,
    type: target.type,
    lane,
    payload: encodeValue(input, 'input', context.payloadBytesMax),
    priority: priority === undefined ? 0 : parseInteger(priority, 'priority', -LIMITS.priority - 1, LIMITS.priority),
    runAt: runAt === undefined ? null : parseRunAt(runAt, 'runAt', context.now()),
    delayMs: delay === undefined ? 0 : parseDuration(delay, 'delay'),
    deadlineAt: deadline === undefined ? null : parseInstant(deadline, 'deadline'),
    timeoutMs: timeout === undefined ? target.timeoutMs : parseDuration(timeout, 'timeout'),
    maxAttempts: explicit ?? retry?.attempts ?? fromContract ?? DEFAULTS.attempts,
    maxAttemptsFixed: explicit !== null || retry !== null,
    retry,
    maxCrashes:
      maxCrashes === undefined ? target.maxCrashes : parseInteger(maxCrashes, 'maxCrashes', 1, LIMITS.attempts),
    idempotencyKey:
      idempotencyKey === undefined || idempotencyKey === null
        ? null
        : parseText(idempotencyKey, 'idempotencyKey', LIMITS.idempotencyKeyChars),
    concurrencyKey:
      concurrencyKey === undefined || concurrencyKey === null
        ? null
        : parseShortText(concurrencyKey, 'concurrencyKey', LIMITS.concurrencyKeyBytes),
    metadata,
    traceId: traceId === undefined ? findTraceId(metadata, input) : parseText(traceId, 'traceId', LIMITS.nameChars),
    keepResultMs: keepResult === undefined ? target.keepResultMs : parseDuration(keepResult, 'keepResult'),
    replayOf: null,
  }
}

function parseJobRetry(value: unknown): RetryPolicy {
  if (typeof value === 'function') {
    throw invalidArgument('retry', 'a function cannot be stored with a job; give it to the contract or the worker')
  }
  return parseRetryPolicy(value, 'retry')
}

function parseMetadata(value: unknown): Readonly<Record<string, unknown>> | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'object' || Array.isArray(value)) throw invalidArgument('metadata', 'expected a plain object')
  const text = encodeValue(value, 'metadata', LIMITS.metadataBytes)
  if (typeof text !== 'string')
    throw new HoldfastError('INVALID_PAYLOAD', 'metadata: only JSON values can be kept', {
      details: { path: 'metadata' },
    })
  return Object.freeze(JSON.parse(text) as Record<string, unknown>)
}

const TRACE_KEYS = ['traceId', 'trace_id'] as const

/** The trace a job belongs to when none is given: looked up in its metadata, its input and its input's metadata. */
function findTraceId(metadata: Readonly<Record<string, unknown>> | null, input: unknown): string | null {
  const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
    typeof value === 'object' && value !== null
  const places = [metadata, input, isRecord(input) ? input.metadata : null]
  for (const place of places) {
    if (!isRecord(place)) continue
    for (const key of TRACE_KEYS) {
      const value = place[key]
      if (typeof value === 'string' && value.length > 0 && value.length <= LIMITS.nameChars && value.isWellFormed())
        return value
    }
  }
  return null
}
