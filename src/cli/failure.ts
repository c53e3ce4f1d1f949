/** From any error to one line on standard error and an exit code: 2 when the caller can mend it, else 1. Never a stack. */
import { type HoldfastError, isHoldfastError } from '../index.ts'
import { UsageError } from './arguments.ts'
import { type ExitCode, OpenError } from './command.ts'
import { maskStoreUrl, plain, shorten } from './text.ts'

const LINE_CHARS_MAX = 500
/** What a busy or full store says while it is opened passes by itself; it is no mistake of the caller. */
const PASSING = new Set(['STORE_BUSY', 'STORE_TIMEOUT', 'STORE_FULL', 'INTERNAL', 'OVERLOADED'])

export interface Failed {
  readonly line: string
  readonly code: ExitCode
}

export function describeError(error: unknown): Failed {
  if (error instanceof OpenError) {
    const { cause } = error
    return { line: lineOf(cause), code: isHoldfastError(cause) && isNamedWrong(cause) ? 2 : 1 }
  }
  if (error instanceof UsageError) return { line: lineOf(error), code: 2 }
  return { line: lineOf(error), code: isHoldfastError(error) && isCallers(error) ? 2 : 1 }
}

/** A server that cannot be reached may be there again tomorrow; a path that names no file was named so by the caller. */
const isNamedWrong = ({ code, details }: HoldfastError): boolean =>
  !PASSING.has(code) && (code !== 'STORE_UNAVAILABLE' || 'path' in details)

/** The store that may not be written was named by the caller, and so was a field such as an unknown state. */
const isCallers = ({ category, code, details }: HoldfastError): boolean =>
  category === 'caller' || code === 'STORE_READONLY' || (code === 'INVALID_STATE' && 'field' in details)

function lineOf(error: unknown): string {
  const message = error instanceof Error && error.message !== '' ? error.message : String(error)
  const text = isHoldfastError(error) ? `${message} (${error.code})` : message
  return shorten(maskStoreUrl(plain(text)), LINE_CHARS_MAX)
}
