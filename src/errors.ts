/**
 * Every error Holdfast gives to a user: one class, one table of codes.
 * The table is the truth; the types and `docs/errors.md` are derived from it (a test compares them).
 * A driver's or platform's own error never leaves its folder except as the `cause` of one of these.
 */

export type ErrorCategory = 'caller' | 'conflict' | 'lost' | 'unavailable' | 'handler' | 'internal'

interface ErrorRule {
  readonly category: ErrorCategory
  readonly retryable: boolean
  readonly meaning: string
}

const rule = (category: ErrorCategory, retryable: boolean, meaning: string): ErrorRule => ({
  category,
  retryable,
  meaning,
})

/** All codes of errors thrown by the API. Codes of failed attempts are in `FAILURE_CLASSES` (job.ts). */
export const ERROR_CODES = {
  INVALID_ARGUMENT: rule('caller', false, 'An option or argument has the wrong shape; `details.field` names it.'),
  INVALID_URL: rule('caller', false, 'The store URL has an unknown scheme or is malformed.'),
  INVALID_DURATION: rule('caller', false, 'A duration is neither a number of milliseconds nor text such as `30s`.'),
  INVALID_INSTANT: rule(
    'caller',
    false,
    'An instant is neither a Date, an ISO string with a zone nor epoch milliseconds.',
  ),
  INVALID_NAME: rule('caller', false, 'A lane, job type or namespace has characters or a length that are not allowed.'),
  INVALID_PAYLOAD: rule('caller', false, 'A value cannot be kept unchanged; `details.path` names the place.'),
  PAYLOAD_TOO_LARGE: rule('caller', false, 'The encoded value is larger than the limit.'),
  VALIDATION_FAILED: rule('caller', false, 'The input does not satisfy the schema of the contract.'),
  DUPLICATE_HANDLER: rule('caller', false, 'Two handlers were given for one job type.'),
  HANDLER_MODULE_INVALID: rule(
    'caller',
    false,
    'A handler module is missing, does not load or has no default function.',
  ),
  UNSUPPORTED: rule('caller', false, 'The store does not have the capability that the call needs.'),
  CAPABILITY_MISSING: rule('caller', false, '`require` was given a capability that this store does not have.'),
  DEPENDENCY_MISSING: rule(
    'caller',
    false,
    'A package that this store or handler threads need is not installed or does not fit, or a bundle lacks `holdfast/worker`.',
  ),
  ENQUEUE_RATE_EXCEEDED: rule(
    'unavailable',
    true,
    'The lane accepts no more jobs for now; nothing was stored, and `details.retryAfterMs` says when it will.',
  ),
  JOB_NOT_FOUND: rule('caller', false, 'No job has this id.'),
  INVALID_STATE: rule(
    'conflict',
    false,
    'The job is in a state from which this move is not legal; or `list` was asked for a state that does not exist.',
  ),
  JOB_DEAD: rule('handler', false, '`result()`: the job ended in the dead-letter state.'),
  JOB_CANCELLED: rule(
    'handler',
    false,
    '`result()`: the job was cancelled. As the reason of a signal: cancellation was requested.',
  ),
  RESULT_NOT_KEPT: rule('caller', false, '`result()`: the job completed but its result was not kept.'),
  RESULT_TIMEOUT: rule('unavailable', true, '`result()`: the job had not ended when the time was up.'),
  LEASE_LOST: rule('lost', false, 'The lease of this attempt is no longer held; nothing more can be written for it.'),
  TIMEOUT: rule('handler', true, 'Reason of a signal: the attempt ran longer than its timeout.'),
  DEADLINE_EXCEEDED: rule('handler', false, 'Reason of a signal: the deadline of the job has passed.'),
  SHUTTING_DOWN: rule('unavailable', true, 'Reason of a signal: the worker is stopping and gives the job back.'),
  STORE_UNAVAILABLE: rule('unavailable', true, 'The store cannot be reached or cannot be opened.'),
  STORE_TIMEOUT: rule('unavailable', true, 'The store did not answer within the deadline; the outcome is unknown.'),
  STORE_BUSY: rule('unavailable', true, 'The store stayed locked by another writer for longer than the deadline.'),
  STORE_FULL: rule('unavailable', true, 'The store has no space left; nothing of the call was written.'),
  STORE_READONLY: rule('unavailable', false, 'The store cannot be written.'),
  STORE_CORRUPT: rule('internal', false, 'The store holds something that Holdfast did not write or that is damaged.'),
  STORE_SCHEMA_TOO_NEW: rule(
    'caller',
    false,
    'The store was migrated by a later release that this one must not write to.',
  ),
  STORE_DENIED: rule('caller', false, 'The store refused the credentials, or does not permit a command or key.'),
  OVERLOADED: rule('unavailable', true, 'A bounded queue inside this process is full; try again later.'),
  CLOSED: rule('caller', false, 'The client or worker was closed.'),
  INTERNAL: rule('internal', false, 'A broken invariant inside Holdfast; please report it.'),
} as const satisfies Record<string, ErrorRule>

export type ErrorCode = keyof typeof ERROR_CODES

const BRAND = 'holdfast.error/1'

export interface HoldfastErrorOptions {
  readonly details?: Readonly<Record<string, unknown>>
  readonly cause?: unknown
}

/**
 * The one error class of the API. `code` says what happened (see `docs/errors.md`), `category` who can do something
 * about it, `retryable` whether the same call may succeed later, `details` the field, limit or id concerned.
 */
export class HoldfastError extends Error {
  readonly code: ErrorCode
  readonly category: ErrorCategory
  readonly retryable: boolean
  readonly details: Readonly<Record<string, unknown>>
  /** Marks the class across copies of the package; read by `isHoldfastError`. */
  readonly brand = BRAND

  constructor(code: ErrorCode, message: string, options: HoldfastErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'HoldfastError'
    this.code = code
    this.category = ERROR_CODES[code].category
    this.retryable = ERROR_CODES[code].retryable
    this.details = options.details ?? {}
  }
}

/** True for a HoldfastError of this or any other copy of the package in the process. */
export function isHoldfastError(error: unknown): error is HoldfastError {
  return error instanceof Error && 'brand' in error && error.brand === BRAND
}

/** Thrown by a handler: this attempt failed and no retry can help; the job goes to the dead letters at once. */
export class PermanentError extends Error {
  readonly code: string
  readonly permanent = true

  constructor(message: string, options: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'PermanentError'
    this.code = options.code ?? 'PERMANENT_ERROR'
  }
}

/**
 * Thrown by a handler: try again after `delay` (milliseconds or text such as `30s`), in place of the delay that the
 * retry policy would choose. The attempt counts against the budget all the same.
 */
export class RetryAfter extends Error {
  readonly delay: number | string

  constructor(delay: number | string, options: { readonly message?: string; readonly cause?: unknown } = {}) {
    super(
      options.message ?? `retry after ${String(delay)}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    )
    this.name = 'RetryAfter'
    this.delay = delay
  }
}

/** A caller's mistake in one field, as every check of input reports it. */
export function invalidArgument(
  field: string,
  problem: string,
  details: Readonly<Record<string, unknown>> = {},
): HoldfastError {
  return new HoldfastError('INVALID_ARGUMENT', `${field}: ${problem}`, { details: { field, ...details } })
}
