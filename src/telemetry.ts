/**
 * What the engine says of itself: a structured logger and the one line written for each job that ends.
 * No payload, result, URL or token is ever logged; text is bounded and stays on one line because pino encodes it.
 */
import { type Logger, pino } from 'pino'
import type { Clock } from './clock.ts'
import { invalidArgument } from './errors.ts'
import type { Failure, JobState } from './job.ts'

export type { Logger } from 'pino'

/** Of lines, the lowest first. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
/** Of `HOLDFAST_LOG`. */
const LOGGER_LEVELS: readonly string[] = [...LOG_LEVELS, 'silent']

/**
 * Logs to standard error, at `HOLDFAST_LOG` (default `warn`, also when it is empty), so that standard output stays the program's own.
 * Throws INVALID_ARGUMENT for an unknown level.
 */
export function createLogger(level: string = process.env.HOLDFAST_LOG || 'warn'): Logger {
  if (!LOGGER_LEVELS.includes(level))
    throw invalidArgument('HOLDFAST_LOG', `expected one of ${LOGGER_LEVELS.join(', ')}`)
  return pino({ name: 'holdfast', level }, pino.destination({ dest: 2, sync: true }))
}

/**
 * A caller's logger, made harmless: a log line that cannot be written must not stop the work it tells of.
 * Throws INVALID_ARGUMENT when it is not made like one of pino's.
 */
export function guardLogger(logger: Logger): Logger {
  for (const name of [...LOG_LEVELS, 'child', 'isLevelEnabled'] as const) {
    if (typeof logger?.[name] !== 'function')
      throw invalidArgument('logger', `expected a pino logger; ${name} is no function`)
  }
  return guard(logger)
}

function guard(logger: Logger): Logger {
  const safely =
    <A extends unknown[], R>(call: (...args: A) => R, fallback: (...args: A) => R) =>
    (...args: A): R => {
      try {
        return call(...args)
      } catch {
        return fallback(...args)
      }
    }
  const levels = LOG_LEVELS.map((level) => {
    const write = (...args: [object, string?]): void => logger[level](...args)
    return [level, safely(write, () => undefined)] as const
  })
  return {
    ...Object.fromEntries(levels),
    isLevelEnabled: safely(
      (level: string) => logger.isLevelEnabled(level),
      () => true,
    ),
    child: safely(
      (bindings: object) => guard(logger.child(bindings)),
      () => guard(logger),
    ),
  } as unknown as Logger
}

/** Writes one warning. */
export type Warn = (fields: Readonly<Record<string, unknown>>, message: string) => void

/** Least time between two warnings of one code. */
const WARNING_EVERY_MS = 1_000

/**
 * Lets through one warning of each `code` a second; the next one says in `left_out` how many were held back. A store that is away
 * fails everybody who asks, again and again, and one line says as much as a thousand. What has no code always goes through.
 */
export function limitWarnings(warn: Warn, clock: Pick<Clock, 'monotonic'>): Warn {
  const lastOf = new Map<unknown, { readonly at: number; leftOut: number }>()
  return (fields, message) => {
    if (fields.code === undefined) {
      warn(fields, message)
      return
    }
    const now = clock.monotonic()
    const last = lastOf.get(fields.code)
    if (last !== undefined && now - last.at < WARNING_EVERY_MS) {
      last.leftOut += 1
      return
    }
    lastOf.set(fields.code, { at: now, leftOut: 0 })
    warn(last === undefined || last.leftOut === 0 ? fields : { ...fields, left_out: last.leftOut }, message)
  }
}

/** The fields of a job's log line and of worker events. */
export interface JobEventFields {
  readonly jobId: string
  readonly type: string
  readonly lane: string
  readonly attempt: number
  readonly workerId: string
  readonly durationMs: number
  readonly state: JobState
  readonly traceId: string | null
  readonly failure: Failure | null
  /** When it runs again, in milliseconds from now; null: it does not. */
  readonly retryInMs: number | null
  /** Why it was dead-lettered. */
  readonly dlqCode: string | null
}

/** Writes the line of one ended attempt: failures as warnings, the rest at debug level. */
export function logAttempt(logger: Logger, fields: JobEventFields): void {
  const isBad = fields.failure !== null && fields.state !== 'cancelled'
  if (!logger.isLevelEnabled(isBad ? 'warn' : 'debug')) return
  const line = {
    job_id: fields.jobId,
    type: fields.type,
    lane: fields.lane,
    attempt: fields.attempt,
    worker_id: fields.workerId,
    duration_ms: Math.round(fields.durationMs),
    state: fields.state,
    retry_count: fields.attempt - 1,
    error: fields.failure === null ? null : { code: fields.failure.code, message: fields.failure.message },
    dlq_code: fields.dlqCode,
    trace_id: fields.traceId,
  }
  if (isBad) logger.warn(line, 'attempt failed')
  else logger.debug(line, 'attempt ended')
}
