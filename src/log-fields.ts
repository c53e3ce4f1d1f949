/**
 * What a handler logs as plain, bounded data: what a logger is given, and what leaves a thread or a process. No getter, `toJSON`
 * or `toString` of what was logged is called for it, so a line cannot fail its handler. Used by `ctx.log` inline and in the threads;
 * the stored line is bounded further in `actors/log-line.ts`.
 */
import { toFailure } from './failure.ts'
import { measuredPlain, type PlainLimits } from './plain-data.ts'

/** Far more than a line should have, and little enough that a few hundred of them hold up nobody. */
const LOGGED: PlainLimits = { depth: 8, parts: 1_000, chars: 16_384, allChars: 32_768 }

export interface LoggedLine {
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string | undefined
  /** About as many bytes. */
  readonly size: number
}

/** `instanceof` alone would throw for a proxy that was revoked. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error
  } catch {
    return false
  }
}

/** The two arguments of `ctx.log.info` and the like. A text may come first; an error first gives the message as well. */
export function loggedLine(first: unknown, second: unknown): LoggedLine {
  const isText = typeof first !== 'object'
  const own = isError(first) ? { err: first } : isText ? undefined : first
  const { plain, size } = measuredPlain(own, LOGGED, shownError)
  const fields = asRecord(plain)
  const said = second ?? (isText ? first : isError(first) ? messageOf(fields.err) : undefined)
  const message = said === undefined ? undefined : loggedText(said)
  return { fields, message, size: size + (message?.length ?? 0) }
}

/** A message of any type as text. */
export function loggedText(value: unknown): string {
  const plain = loggedValue(value)
  return typeof plain === 'object' ? JSON.stringify(plain) : String(plain ?? '')
}

export function loggedValue(value: unknown): unknown {
  return measuredPlain(value, LOGGED, shownError).plain
}

export function loggedFields(value: unknown): Readonly<Record<string, unknown>> {
  return loggedLine(value, undefined).fields
}

/** What is an object for the handler and nothing with names as data, such as a date, is given one. */
export function asRecord(plain: unknown): Readonly<Record<string, unknown>> {
  if (plain === null || plain === undefined) return {}
  return typeof plain === 'object' && !Array.isArray(plain) ? { ...plain } : { value: plain }
}

const messageOf = (shown: unknown): unknown =>
  typeof shown === 'object' && shown !== null && 'message' in shown ? shown.message : undefined

/** As loggers show an error: what it is, then what else it carries. Without a prototype, from which pino would take its type. */
function shownError(error: Error): object {
  const { name, message, code, stack, cause } = toFailure(error)
  const shown: Record<string, unknown> = Object.assign(Object.create(null), { name, message, stack, cause })
  for (const [key, property] of Object.entries(Object.getOwnPropertyDescriptors(error))) {
    if (property.enumerable !== true || key in shown) continue
    shown[key] = 'value' in property ? property.value : '[getter]'
  }
  shown.code ??= code
  return shown
}
