/**
 * Turns whatever a handler threw into a `Failure`: plain, bounded data with a code. Used on both sides of a thread.
 * No getter, `toJSON` or `toString` of user objects is trusted: reading one may throw, and then a plain text stands in.
 */
import type { Failure } from './job.ts'
import { FAILURE_CLASSES } from './job.ts'

const MESSAGE_CHARS_MAX = 2_000
const STACK_CHARS_MAX = 8_000
const CAUSE_DEPTH_MAX = 4
const CODE = /^[A-Za-z][A-Za-z0-9_]{1,63}$/
/** `CODE: message`; codes of the table count in any letter case, others only in capitals. */
const PREFIX = /^([A-Za-z][A-Za-z0-9_]{1,63}):\s/

function read(value: object, key: string): unknown {
  try {
    return Reflect.get(value, key)
  } catch {
    return undefined
  }
}

function text(value: unknown, limit: number): string | undefined {
  if (typeof value !== 'string') return undefined
  const wellFormed = value.toWellFormed()
  return wellFormed.length > limit ? `${wellFormed.slice(0, limit - 1)}…` : wellFormed
}

/** Parts of a thrown object that are looked at; one that refers to the same parts many times over has no end otherwise. */
const DESCRIBED_PARTS_MAX = 10_000

function toJson(value: object): string | undefined {
  let left = DESCRIBED_PARTS_MAX
  return JSON.stringify(value, (_key, part: unknown) => {
    left -= 1
    if (left < 0) throw new RangeError('too many parts')
    return part
  })
}

function describe(value: unknown): string {
  if (typeof value === 'string') return value
  try {
    return typeof value === 'object' && value !== null ? (toJson(value) ?? 'an object') : String(value)
  } catch {
    return 'a value that cannot be described'
  }
}

function codeOf(thrown: object | null, message: string): string {
  const own = thrown === null ? undefined : read(thrown, 'code')
  if (typeof own === 'string' && CODE.test(own)) return own.toUpperCase()
  if (thrown !== null && read(thrown, 'permanent') === true) return 'PERMANENT_ERROR'
  const prefix = PREFIX.exec(message)?.[1]
  if (prefix === undefined) return 'HANDLER_ERROR'
  const folded = prefix.toUpperCase()
  return Object.hasOwn(FAILURE_CLASSES, folded) || folded === prefix ? folded : 'HANDLER_ERROR'
}

/** `durationOf` reads the delay of a `RetryAfter`; it is handed in so that this file needs no parser of its own. */
export function toFailure(thrown: unknown, durationOf?: (value: unknown) => number | undefined, depth = 0): Failure {
  const object = (typeof thrown === 'object' || typeof thrown === 'function') && thrown !== null ? thrown : null
  const ownMessage = object === null ? undefined : read(object, 'message')
  const message = text(
    typeof ownMessage === 'string' && ownMessage !== '' ? ownMessage : describe(thrown),
    MESSAGE_CHARS_MAX,
  )
  const shown = message === undefined || message === '' ? 'the handler threw without a message' : message
  const name = object === null ? undefined : text(read(object, 'name'), 128)
  const stack = object === null ? undefined : text(read(object, 'stack'), STACK_CHARS_MAX)
  const cause = object === null ? undefined : read(object, 'cause')
  const isPermanent = object !== null && read(object, 'permanent') === true
  const retryAfterMs = object !== null && name === 'RetryAfter' ? durationOf?.(read(object, 'delay')) : undefined
  return {
    code: codeOf(object, shown),
    message: shown,
    ...(name === undefined ? {} : { name }),
    ...(stack === undefined ? {} : { stack }),
    ...(cause === undefined || cause === null || depth >= CAUSE_DEPTH_MAX - 1
      ? {}
      : { cause: toFailure(cause, durationOf, depth + 1) }),
    ...(isPermanent ? { permanent: true as const } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }
}
