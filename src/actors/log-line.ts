/**
 * One line of a job's log as it is stored: at most 2 kB of JSON, whatever the handler gave. Code of the handler's objects is not
 * run for it; what is too much is left out, and the line says so.
 */
import { toFailure } from '../failure.ts'
import { asRecord, isError as isErrorValue } from '../log-fields.ts'
import { boundedBytes, toPlain } from '../plain-data.ts'
import type { LogLevel } from '../telemetry.ts'

const LINE_BYTES_MAX = 2_048
const MESSAGE_BYTES_MAX = 1_024
const FIELDS = { depth: 4, parts: 100, chars: 512 }
const STACK_LINES_MAX = 6

export interface LineSource {
  readonly at: number
  readonly level: LogLevel
  readonly attempt: number
  /** As the handler gave them. */
  readonly fields: unknown
  readonly message: unknown
}

/** The text that a store is given. */
export function lineText({ at, level, attempt, fields, message }: LineSource): string {
  const head = { at, level, attempt }
  const isError = isErrorValue(fields)
  const own = isError ? { err: fields } : typeof fields === 'object' ? fields : {}
  const said = message ?? (isError ? toFailure(fields).message : typeof fields === 'object' ? '' : fields)
  const whole = typeof said === 'string' ? said : shownValue(said)
  const msg = boundedBytes(whole, MESSAGE_BYTES_MAX)
  const kept = asRecord(toPlain(own, FIELDS, shownError))
  const text = JSON.stringify({ ...head, msg, fields: kept })
  // A long one is not looked through.
  const isCut = whole.length > MESSAGE_BYTES_MAX || msg !== whole.toWellFormed()
  return fits(text) && !isCut ? text : shortened({ ...head, msg }, Object.entries(kept))
}

/** A message that is no text. */
function shownValue(value: unknown): string {
  const plain = toPlain(value, FIELDS, shownError)
  return typeof plain === 'object' ? JSON.stringify(plain) : String(plain ?? '')
}

const fits = (text: string): boolean => text.length * 3 <= LINE_BYTES_MAX || Buffer.byteLength(text) <= LINE_BYTES_MAX

/** As many fields as there is room for, the first ones first. */
function shortened(head: object, entries: readonly (readonly [string, unknown])[]): string {
  const kept: (readonly [string, unknown])[] = []
  const textOf = (): string => JSON.stringify({ ...head, fields: Object.fromEntries(kept), truncated: true })
  for (const entry of entries) {
    kept.push(entry)
    if (!fits(textOf())) kept.pop()
  }
  const text = textOf()
  // Control characters take six bytes each in JSON.
  return fits(text) ? text : JSON.stringify({ ...head, msg: '[too long]', fields: {}, truncated: true })
}

function shownError(error: Error): unknown {
  const { name, code, message, stack } = toFailure(error)
  const short = stack?.split('\n', STACK_LINES_MAX + 1).join('\n')
  return { name, code, message, ...(short === undefined ? {} : { stack: short }) }
}
