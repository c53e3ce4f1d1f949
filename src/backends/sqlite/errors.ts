/**
 * Turns what SQLite and the file system say into HoldfastError, with `details.outcome` telling whether anything may have
 * been written. Nothing of a driver leaves this folder but as the `cause`. Also carries errors across the thread.
 */
import { type ErrorCode, HoldfastError, isHoldfastError } from '../../errors.ts'
import type { FailedCallOutcome } from '../backend.ts'

/** Where the error came up: only a failed COMMIT leaves the outcome open. */
export type Stage = 'open' | 'begin' | 'run' | 'commit'

const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : ''

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** True when another connection holds the lock that was asked for. */
export function isBusy(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'STORE_BUSY' || code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')
}

/** SQLite's code or errno, longest prefix first, to ours. https://www.sqlite.org/rescode.html */
const RULES: readonly (readonly [prefix: string, code: ErrorCode, says: string])[] = [
  ['SQLITE_BUSY', 'STORE_BUSY', 'stayed locked by another writer'],
  ['SQLITE_LOCKED', 'STORE_BUSY', 'stayed locked by another writer'],
  ['SQLITE_FULL', 'STORE_FULL', 'has no space left'],
  ['ENOSPC', 'STORE_FULL', 'has no space left'],
  ['SQLITE_READONLY', 'STORE_READONLY', 'cannot be written'],
  ['SQLITE_PERM', 'STORE_READONLY', 'may not be written'],
  ['SQLITE_AUTH', 'STORE_READONLY', 'may not be written'],
  ['EACCES', 'STORE_READONLY', 'may not be opened for writing'],
  ['EPERM', 'STORE_READONLY', 'may not be opened for writing'],
  ['EROFS', 'STORE_READONLY', 'is on a read-only file system'],
  ['SQLITE_NOTADB', 'STORE_CORRUPT', 'is not a SQLite database'],
  ['SQLITE_CORRUPT', 'STORE_CORRUPT', 'is damaged'],
  ['SQLITE_FORMAT', 'STORE_CORRUPT', 'is damaged'],
  ['SQLITE_CANTOPEN', 'STORE_UNAVAILABLE', 'cannot be opened'],
  ['SQLITE_IOERR', 'STORE_UNAVAILABLE', 'cannot be read or written'],
  ['SQLITE_PROTOCOL', 'STORE_UNAVAILABLE', 'cannot be locked'],
  ['SQLITE_NOMEM', 'STORE_UNAVAILABLE', 'ran out of memory'],
  ['SQLITE_TOOBIG', 'PAYLOAD_TOO_LARGE', 'cannot keep a value of this size'],
  ['E', 'STORE_UNAVAILABLE', 'cannot be reached'],
]

function outcomeOf(code: ErrorCode, driverCode: string, stage: Stage): FailedCallOutcome {
  // A commit that ran into an I/O error may or may not be in the log; a full disk or a lock is rolled back.
  if (stage === 'commit' && code !== 'STORE_FULL' && code !== 'STORE_BUSY') return 'unknown'
  if (code === 'STORE_BUSY' || code === 'STORE_FULL') return 'notDone'
  return driverCode.startsWith('SQLITE_IOERR') || code === 'STORE_UNAVAILABLE' ? 'notDone' : 'refused'
}

/** The error for `error`, which came up at `stage` of work on the file at `path`. */
export function storeError(error: unknown, path: string, stage: Stage): HoldfastError {
  if (isHoldfastError(error)) return withOutcome(error, 'refused')
  const driverCode = codeOf(error)
  const rule = RULES.find(([prefix]) => driverCode.startsWith(prefix))
  if (rule === undefined) {
    const outcome = stage === 'commit' ? 'unknown' : 'refused'
    return new HoldfastError('INTERNAL', `the SQLite store failed: ${textOf(error)}`, {
      details: { path, outcome, driverCode },
      cause: error,
    })
  }
  const [, code, says] = rule
  return new HoldfastError(code, `the SQLite store ${path} ${says}: ${textOf(error)}`, {
    details: { path, outcome: outcomeOf(code, driverCode, stage), driverCode },
    cause: error,
  })
}

function withOutcome(error: HoldfastError, outcome: FailedCallOutcome): HoldfastError {
  if ('outcome' in error.details) return error
  return new HoldfastError(error.code, error.message, { details: { ...error.details, outcome }, cause: error.cause })
}

/** An error as plain data, for the way between threads. */
export interface WireError {
  readonly code: ErrorCode
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
  readonly cause: string | null
}

export function toWire(error: HoldfastError): WireError {
  const cause = error.cause === undefined ? null : `${codeOf(error.cause)} ${textOf(error.cause)}`.trim()
  return { code: error.code, message: error.message, details: error.details, cause }
}

export function fromWire({ code, message, details, cause }: WireError): HoldfastError {
  return new HoldfastError(code, message, cause === null ? { details } : { details, cause: new Error(cause) })
}
