/**
 * Turns whatever a handler threw into a `Failure`: plain, bounded data with a code. Used on both sides of a thread.
 * No getter, `toJSON` or `toString` of user objects is called: only plain data of them is read. (The platform itself reads the name
 * and the message of an error when it writes its stack.)
 */
import type { Failure } from './job.ts'
import { FAILURE_CLASSES } from './job.ts'
import { boundedBytes, toPlain } from './plain-data.ts'

const MESSAGE_BYTES_MAX = 2_000
const STACK_BYTES_MAX = 8_000
const NAME_BYTES_MAX = 128
const CAUSE_DEPTH_MAX = 4
const CODE = /^[A-Za-z][A-Za-z0-9_]{1,63}$/
/** `CODE: message`; codes of the table count in any letter case, others only in capitals. */
const PREFIX = /^([A-Za-z][A-Za-z0-9_]{1,63}):\s/

/** Getters of the platform: `name`, `message` and `code` of a DOMException, and `stack` where it is one. */
const TRUSTED_GETTERS: ReadonlySet<unknown> = new Set(
  [
    ...['name', 'message', 'code'].map((key) => Object.getOwnPropertyDescriptor(DOMException.prototype, key)),
    Object.getOwnPropertyDescriptor(new Error('shape'), 'stack'),
    Object.getOwnPropertyDescriptor(Error.prototype, 'stack'),
  ].flatMap((property) => (property?.get === undefined ? [] : [property.get])),
)
const PROTOTYPES_MAX = 32

/** A property as plain data, its own or inherited. A getter of the thrown object is passed over, never called. */
function read(value: object, key: string): unknown {
  try {
    let holder: object | null = value
    for (let depth = 0; holder !== null && depth < PROTOTYPES_MAX; depth += 1) {
      const property = Object.getOwnPropertyDescriptor(holder, key)
      if (property !== undefined && 'value' in property) return property.value
      if (property !== undefined && TRUSTED_GETTERS.has(property.get)) return Reflect.get(holder, key, value)
      holder = Object.getPrototypeOf(holder)
    }
  } catch {
    // A proxy, whose traps may throw.
  }
  return undefined
}

const text = (value: unknown, limit: number): string | undefined =>
  typeof value === 'string' ? boundedBytes(value, limit) : undefined

/** How much is looked at of a thrown object that is no error; its message is cut far below. */
const DESCRIBED = { depth: 8, parts: 1_000, chars: MESSAGE_BYTES_MAX }

function describe(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'object' || value === null) return String(value)
  return JSON.stringify(toPlain(value, DESCRIBED))
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
    MESSAGE_BYTES_MAX,
  )
  const shown = message === undefined || message === '' ? 'the handler threw without a message' : message
  const name = object === null ? undefined : text(read(object, 'name'), NAME_BYTES_MAX)
  const stack = object === null ? undefined : text(read(object, 'stack'), STACK_BYTES_MAX)
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
