/**
 * Reading what users write: durations, instants, names and numbers, each checked once with one clear error that names
 * the field and the limit. Pure; defaults and limits of the whole system are here.
 */
import { HoldfastError, invalidArgument } from './errors.ts'

/** A number of milliseconds, or text: `250ms`, `30s`, `5m`, `2h`, `1d`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** A Date, an ISO 8601 string with a zone, or epoch milliseconds. */
export type Instant = Date | string | number

export const LIMITS = {
  payloadBytes: 1024 * 1024,
  nameChars: 128,
  idempotencyKeyChars: 512,
  concurrencyKeyBytes: 256,
  metadataBytes: 16 * 1024,
  priority: 2 ** 31 - 1,
  attempts: 10_000,
  /** The longest duration and the latest instant: 8.64e15 ms is where `Date` ends. */
  durationMs: 100 * 365 * 86_400_000,
  concurrency: 10_000,
  prefetch: 1_000,
  listLimit: 500,
  keepLogs: 1_000,
  enqueueBatch: 10_000,
  keepCount: 1_000_000,
  /** Of each limit of a lane. */
  lanePolicy: 1_000_000,
  /** The longest period of a rate. */
  ratePeriodMs: 30 * 86_400_000,
} as const

export const DEFAULTS = {
  lane: 'default',
  namespace: 'default',
  concurrency: 6,
  leaseMs: 30_000,
  /** How long a main loop may stand still before its leases are given up. */
  maxBlockedMs: 60_000,
  attempts: 7,
  retryBaseMs: 2_000,
  retryCapMs: 900_000,
  retryJitter: 0.2,
  maxCrashes: 3,
  keepCompletedMs: 7 * 86_400_000,
  keepCancelledMs: 7 * 86_400_000,
  pollMs: 1_000,
  reapMs: 5_000,
  maintainMs: 60_000,
  killGraceMs: 2_000,
  /** What a thread or process gets to end when it is ended by force, before its slot counts as lost. */
  lostAfterMs: 1_000,
  /** What a process that was heard of before gets to take its next job. It does at once, unless a handler has left it busy or deaf. */
  takeDeadlineMs: 5_000,
  /** A worker says this often that it is there; */
  workerBeatMs: 5_000,
  /** … counts as gone when it has not for so long, by the store's clock; */
  workerLiveMs: 15_000,
  /** … and is forgotten after this. */
  workerForgetMs: 300_000,
  workerListMax: 1_000,
  callDeadlineMs: 10_000,
  /** Longest that `health()` waits for the store. */
  healthDeadlineMs: 2_000,
  prefetch: 200,
  stopDeadlineMs: 30_000,
  /** Silence of the store after which a worker past its deadline stops without it. */
  stopSilenceMs: 400,
  closeDeadlineMs: 5_000,
  listLimit: 100,
  keepLogs: 100,
} as const

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/

/** Milliseconds of a duration, at least 0 and at most 100 years. Throws INVALID_DURATION naming `field`, and `word` where that may be given too. */
export function parseDuration(value: unknown, field: string, word?: string): number {
  const match = typeof value === 'string' ? DURATION.exec(value) : null
  const ms = match ? Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS] : value
  if (typeof ms !== 'number' || !(ms >= 0 && ms <= LIMITS.durationMs)) {
    throw new HoldfastError(
      'INVALID_DURATION',
      `${field}: expected milliseconds from 0 to 100 years, or text such as '250ms', '30s', '5m', '2h', '1d'${word === undefined ? '' : `, or '${word}'`}; got ${show(value)}`,
      { details: { field, limitMs: LIMITS.durationMs } },
    )
  }
  return Math.round(ms)
}

const LEASE_MS_MIN = 100

/** Milliseconds of a lease, at least 100. Throws INVALID_DURATION or INVALID_ARGUMENT naming `field`. */
export function parseLease(value: unknown, field: string): number {
  const leaseMs = parseDuration(value, field)
  if (leaseMs >= LEASE_MS_MIN) return leaseMs
  throw invalidArgument(field, `expected at least ${LEASE_MS_MIN} ms`, { min: LEASE_MS_MIN })
}

const ZONED_ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})$/
const INSTANT_MAX_MS = 8.64e15

/** The platform reads 31 February as 3 March; that is somebody's mistake, not an instant. */
function isOnCalendar(isoText: string): boolean {
  const day = isoText.slice(0, 10)
  const ms = Date.parse(`${day}T00:00:00Z`)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day)
}

/** Epoch milliseconds of an instant. Throws INVALID_INSTANT naming `field`. */
export function parseInstant(value: unknown, field: string): number {
  const ms =
    value instanceof Date
      ? value.getTime()
      : typeof value === 'string' && ZONED_ISO.test(value) && isOnCalendar(value)
        ? Date.parse(value)
        : value
  if (typeof ms !== 'number' || !(Math.abs(ms) <= INSTANT_MAX_MS)) {
    throw new HoldfastError(
      'INVALID_INSTANT',
      `${field}: expected a valid Date, an ISO string with a zone such as '2030-01-31T09:00:00Z', or epoch milliseconds; got ${show(value)}`,
      { details: { field } },
    )
  }
  return Math.round(ms)
}

/**
 * When a job may run; null: now, which whatever lies behind `nowMs` means too. A time long ago would put it before what has waited since.
 * Throws INVALID_INSTANT naming `field`.
 */
export function parseRunAt(value: unknown, field: string, nowMs: number): number | null {
  const ms = parseInstant(value, field)
  return ms > nowMs ? ms : null
}

const NAME = /^[A-Za-z0-9_.-]+$/

/** A lane or namespace: 1 to 128 of `A-Z a-z 0-9 _ . -`. Throws INVALID_NAME naming `field`. */
export function parseName(value: unknown, field: string): string {
  if (typeof value === 'string' && value.length <= LIMITS.nameChars && NAME.test(value)) return value
  throw new HoldfastError(
    'INVALID_NAME',
    `${field}: expected 1 to ${LIMITS.nameChars} characters of A-Z a-z 0-9 _ . -; got ${show(value)}`,
    { details: { field, limit: LIMITS.nameChars } },
  )
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused here
const UNSAFE_TEXT = /[\u0000-\u001f\u007f-\u009f\ud800-\udfff]/u

/** A job type: 1 to 128 printable characters without control characters or lone surrogates. */
export function parseJobType(value: unknown, field = 'type'): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= LIMITS.nameChars && !UNSAFE_TEXT.test(value)) {
    return value
  }
  throw new HoldfastError(
    'INVALID_NAME',
    `${field}: expected 1 to ${LIMITS.nameChars} printable characters; got ${show(value)}`,
    {
      details: { field, limit: LIMITS.nameChars },
    },
  )
}

/** A key or trace id: 1 to `limit` printable characters. */
export function parseText(value: unknown, field: string, limit: number): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= limit && !UNSAFE_TEXT.test(value)) return value
  throw invalidArgument(field, `expected 1 to ${limit} printable characters; got ${show(value)}`, { limit })
}

/** Text as `parseText` takes it, and no longer than `limit` bytes of UTF-8. */
export function parseShortText(value: unknown, field: string, limit: number): string {
  const text = parseText(value, field, limit)
  if (new TextEncoder().encode(text).length <= limit) return text
  throw invalidArgument(field, `expected at most ${limit} bytes of UTF-8; got ${show(value)}`, { limit })
}

/** A whole number between `min` and `max`. Throws INVALID_ARGUMENT naming `field`. */
export function parseInteger(value: unknown, field: string, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
  throw invalidArgument(field, `expected a whole number from ${min} to ${max}; got ${show(value)}`, { min, max })
}

/** A number between `min` and `max`. Throws INVALID_ARGUMENT naming `field`. */
export function parseNumber(value: unknown, field: string, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw invalidArgument(field, `expected a number from ${min} to ${max}; got ${show(value)}`, { min, max })
}

const namesOf = (known: ReadonlySet<string>): string => [...known].sort().join(', ')

/** Refuses what is no object, and option names that are not known: a misspelt option is an error and not silence. */
export function refuseUnknown(options: unknown, known: ReadonlySet<string>, field: string): void {
  if (typeof options !== 'object' || options === null)
    throw invalidArgument(field, `expected an object; known are ${namesOf(known)}`)
  for (const key of Object.keys(options)) {
    if (!known.has(key)) throw invalidArgument(`${field}.${key}`, `unknown option; known are ${namesOf(known)}`)
  }
}

/** False when it is not given. Throws INVALID_ARGUMENT naming `field`. */
export function parseFlag(value: unknown, field: string): boolean {
  if (value === undefined || typeof value === 'boolean') return value === true
  throw invalidArgument(field, `expected true or false; got ${show(value)}`)
}

/** A short, safe picture of a value for an error message; never a whole payload. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean')
    return String(value)
  if (typeof value === 'bigint') return `${value}n`
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : value.toISOString()
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'function' ? 'a function' : `a value of type ${typeof value}`
}
