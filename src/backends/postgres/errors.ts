/**
 * Turns what a PostgreSQL server, a pooler, the driver or the network says into HoldfastError. `details.outcome` tells whether anything
 * may have been done, `details.sqlState` the server's code, `details.server` the address; no value, detail line or password is kept.
 */
import { type ErrorCode, HoldfastError, isHoldfastError } from '../../errors.ts'
import type { FailedCallOutcome } from '../backend.ts'

/**
 * Where the error came up. `connect`: nothing was sent. `statement`: it commits by itself. `transaction`: before the COMMIT, so that
 * whatever ends it undoes it. `commit`: the COMMIT itself.
 */
export type Stage = 'connect' | 'statement' | 'transaction' | 'commit'

/** What is to be done about it. */
export interface Verdict {
  readonly error: HoldfastError
  /** The connection is of no further use, or leads to the wrong server. */
  readonly isDiscarded: boolean
  /** Nothing was done, and the same thing may be done at once: a conflict with others that passes. */
  readonly isConflict: boolean
  /** Names of prepared statements do not last here: a pooler gives each transaction another connection. */
  readonly isUnnamedOnly: boolean
  /** The server crashed and came back: commits that it had not flushed may be gone. */
  readonly isCrash: boolean
}

type Kind = 'definite' | 'conflict' | 'cut' | 'elsewhere'

interface StateRule {
  readonly code: ErrorCode
  /** `definite`: rolled back; `conflict`: also worth a repetition; `cut`: the connection ends with it; `elsewhere`: look for another server. */
  readonly kind: Kind
  /** What it means, and what to do. */
  readonly advice: string
}

const rule = (code: ErrorCode, kind: Kind, advice: string): StateRule => ({ code, kind, advice })

const NOT_MIGRATED = rule(
  'UNSUPPORTED',
  'definite',
  "does not have the tables of this release in the schema of this store; run 'holdfast migrate' as a role that may create them",
)
const DENIED =
  "lets no connection in; check user, password and pg_hba.conf, and whether it wants TLS ('sslmode=verify-full')"
const CONFLICT = 'could not do it because of what others are doing at the same time'

/** By SQLSTATE, else by its first two characters. https://www.postgresql.org/docs/current/errcodes-appendix.html */
const STATES: Readonly<Record<string, StateRule>> = {
  '08': rule('STORE_UNAVAILABLE', 'cut', 'ended the connection'),
  '25006': rule(
    'STORE_UNAVAILABLE',
    'elsewhere',
    'takes no writes: it is a standby, or default_transaction_read_only is on',
  ),
  '25P03': rule('STORE_UNAVAILABLE', 'cut', 'ended a transaction that stood still for too long'),
  '26000': rule('STORE_BUSY', 'conflict', 'does not know a prepared statement that it was given'),
  '28': rule('STORE_DENIED', 'definite', DENIED),
  '3D000': rule('INVALID_URL', 'definite', 'has no such database'),
  '3F000': NOT_MIGRATED,
  '40001': rule('STORE_BUSY', 'conflict', CONFLICT),
  '40P01': rule('STORE_BUSY', 'conflict', CONFLICT),
  '40003': rule('STORE_UNAVAILABLE', 'cut', 'does not know whether the statement was done'),
  '42501': rule(
    'STORE_DENIED',
    'definite',
    "does not permit this to the role; 'holdfast migrate --dry-run --role NAME' shows the grants",
  ),
  '42703': NOT_MIGRATED,
  '42P01': NOT_MIGRATED,
  '42P05': rule('STORE_BUSY', 'conflict', 'was given a prepared statement under a name that is taken'),
  '53100': rule('STORE_FULL', 'definite', 'has no disk space left; make room'),
  '53200': rule('STORE_UNAVAILABLE', 'definite', 'ran out of memory'),
  '53300': rule('STORE_UNAVAILABLE', 'elsewhere', 'has no connection left; raise max_connections or take a pooler'),
  '53': rule('STORE_UNAVAILABLE', 'definite', 'ran out of something that its settings limit'),
  '55P03': rule('STORE_BUSY', 'conflict', 'did not get a lock in time'),
  '55006': rule('STORE_BUSY', 'conflict', CONFLICT),
  '57014': rule('STORE_BUSY', 'conflict', 'took too long and was stopped by statement_timeout, or was cancelled'),
  '57P03': rule('STORE_UNAVAILABLE', 'elsewhere', 'is starting up or shutting down; it answers when that is done'),
  '57': rule('STORE_UNAVAILABLE', 'cut', 'ended the connection: it was stopped, restarted, or an operator ended it'),
  '58': rule('STORE_UNAVAILABLE', 'definite', 'cannot read or write its files; check its disk and its log'),
  XX001: rule('STORE_CORRUPT', 'definite', 'holds damaged data; check its disk and its log'),
  XX002: rule('STORE_CORRUPT', 'definite', 'has a damaged index; REINDEX it, and check its disk and its log'),
}

const STALE_PLAN = rule('STORE_BUSY', 'conflict', 'had planned a statement for tables that have changed since')
const FAILED = rule('INTERNAL', 'definite', 'could not run the statement')

const CRASHES: ReadonlySet<string> = new Set(['57P02', '57P03'])
/** A statement is not known by its name, or the name has been taken by somebody else's. */
const NAME_LOST: ReadonlySet<string> = new Set(['26000', '42P05'])
/** Codes with which a server may also PANIC or end the connection in the middle of a commit. */
const MAY_END = /^(?:53|58|XX)/
/** These quote what was sent: it may be a payload. */
const QUOTES_VALUES = /^22/

/** What is read of a driver's error; told apart by shape, since a caller's pool may come from another copy of the driver. */
interface ServerError extends Error {
  readonly code: string
  readonly severity: string
  readonly routine?: string
}

/** Node's codes, such as EPIPE, can look like an SQLSTATE; a severity has only what the server said. */
function isServerError(error: unknown): error is ServerError {
  if (!(error instanceof Error) || !('code' in error) || !('severity' in error)) return false
  return typeof error.code === 'string' && /^[0-9A-Z]{5}$/.test(error.code)
}

const known = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))

/** SQLSTATE of an error of the server, also of one that was made into a HoldfastError. */
export function sqlStateOf(error: unknown): string | undefined {
  if (isServerError(error)) return error.code
  if (!isHoldfastError(error)) return undefined
  return typeof error.details.sqlState === 'string' ? error.details.sqlState : undefined
}

/** The driver's error carries rows, parameters and the connection; none of them must reach a log. */
function bare(error: Error): Error {
  const cause = new Error(saidBy(error))
  cause.name = error.name
  return cause
}

/** Node gives no message when several addresses of one name failed, only a code. */
function saidBy(error: Error): string {
  const code = 'code' in error ? String(error.code) : ''
  if (isServerError(error) && QUOTES_VALUES.test(code)) return `${error.routine ?? 'a value was refused'}`
  return error.message || code || error.name
}

function outcomeOf({ kind, code }: StateRule, error: ServerError, stage: Stage): FailedCallOutcome {
  const isCut = kind === 'cut' || (MAY_END.test(error.code) && error.severity !== 'ERROR')
  if (isCut && (stage === 'statement' || stage === 'commit')) return 'unknown'
  return isCut || kind !== 'definite' || code === 'STORE_FULL' || code === 'STORE_UNAVAILABLE' ? 'notDone' : 'refused'
}

function fromServer(error: ServerError, server: string, stage: Stage): Verdict {
  // A plan that was kept from before a migration; a new connection makes a new one.
  const isStalePlan = error.code === '0A000' && error.routine === 'RevalidateCachedQuery'
  const found = isStalePlan ? STALE_PLAN : (STATES[error.code] ?? STATES[error.code.slice(0, 2)] ?? FAILED)
  const isConflict = found.kind === 'conflict'
  const outcome = isConflict ? 'notDone' : outcomeOf(found, error, stage)
  return {
    error: new HoldfastError(found.code, `PostgreSQL at ${server} ${found.advice} (${saidBy(error)}, ${error.code})`, {
      details: {
        outcome,
        server,
        sqlState: error.code,
        ...(found === NOT_MIGRATED ? { code: 'NOT_MIGRATED' } : {}),
      },
      cause: bare(error),
    }),
    isDiscarded: found.kind === 'cut' || found.kind === 'elsewhere' || isStalePlan || error.severity !== 'ERROR',
    isConflict,
    isUnnamedOnly: NAME_LOST.has(error.code),
    isCrash: CRASHES.has(error.code),
  }
}

/** What the driver says without having sent anything. */
const NOT_SENT = /not queryable|Cannot use a pool after|timeout exceeded when trying to connect/

/** Whatever a try to connect, a statement or a COMMIT rejects with. */
export function verdictOf(thrown: unknown, server: string, stage: Stage): Verdict {
  const plain = { isDiscarded: true, isConflict: false, isUnnamedOnly: false, isCrash: false }
  if (isHoldfastError(thrown)) return { ...plain, error: thrown }
  if (isServerError(thrown)) return fromServer(thrown, server, stage)
  const error = known(thrown)
  if (stage === 'connect') return { ...plain, error: cannotConnect(server, error) }
  const isUndone = stage === 'transaction' || NOT_SENT.test(error.message)
  return { ...plain, error: connectionLost(server, error, isUndone ? 'notDone' : 'unknown') }
}

function connectionLost(server: string, error: Error, outcome: FailedCallOutcome): HoldfastError {
  const what = outcome === 'unknown' ? 'was lost while a statement was under way' : 'was lost before anything was done'
  return new HoldfastError('STORE_UNAVAILABLE', `PostgreSQL at ${server}: the connection ${what} (${saidBy(error)})`, {
    details: { outcome, server },
    cause: bare(error),
  })
}

/** Whatever was to be sent was not sent, so it may be repeated. */
function cannotConnect(server: string, error: Error): HoldfastError {
  if (error.message.includes('after calling end on the pool')) return closed(server)
  if (/client password must be|server requires a password/i.test(error.message))
    return new HoldfastError('STORE_DENIED', `PostgreSQL at ${server} wants a password; give it in the URL`, {
      details: { outcome: 'refused', server },
    })
  const { code, advice } = tlsProblem(error)
  return new HoldfastError(code, `PostgreSQL at ${server} cannot be reached: ${saidBy(error)}${advice}`, {
    details: { outcome: code === 'STORE_DENIED' ? 'refused' : 'notDone', server },
    cause: bare(error),
  })
}

/** A certificate that is not believed stays so; everything else may pass. */
function tlsProblem(error: Error): { readonly code: ErrorCode; readonly advice: string } {
  const code = 'code' in error ? String(error.code) : ''
  if (/^(?:ERR_TLS_CERT|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/.test(code))
    return {
      code: 'STORE_DENIED',
      advice: '; its certificate is not trusted: check sslrootcert and the name of the host',
    }
  if (error.message.includes('does not support SSL'))
    return { code: 'STORE_DENIED', advice: '; it has no TLS: set sslmode=disable, or ssl = on at the server' }
  return { code: 'STORE_UNAVAILABLE', advice: '' }
}

/** Of a statement that was not answered; whether it may have been done follows from where it was. */
export function timedOut(server: string, timeoutMs: number, stage: Stage): HoldfastError {
  const isOpen = stage === 'statement' || stage === 'commit'
  const message = `PostgreSQL at ${server} did not answer within ${Math.round(timeoutMs)} ms; the connection was dropped`
  return new HoldfastError(isOpen ? 'STORE_TIMEOUT' : 'STORE_UNAVAILABLE', message, {
    details: { outcome: isOpen ? 'unknown' : 'notDone', server, timeoutMs },
  })
}

export function noConnection(server: string, waitMs: number): HoldfastError {
  const message = `PostgreSQL at ${server}: no connection was free within ${Math.round(waitMs)} ms`
  return new HoldfastError('STORE_UNAVAILABLE', message, { details: { outcome: 'notDone', server } })
}

/** A standby answers reads alone; a store needs the primary. */
export function isStandby(server: string): HoldfastError {
  const message = `PostgreSQL at ${server} is a standby, not a primary; the connection was dropped to look for the primary again`
  return new HoldfastError('STORE_UNAVAILABLE', message, { details: { outcome: 'notDone', server } })
}

/** COMMIT answered that it rolled back, as it does for a transaction in which something had failed. */
export function rolledBack(server: string): HoldfastError {
  const message = `PostgreSQL at ${server} rolled the transaction back instead of committing it`
  return new HoldfastError('INTERNAL', message, { details: { outcome: 'notDone', server } })
}

export function closed(server: string): HoldfastError {
  return new HoldfastError('CLOSED', `the connections to PostgreSQL at ${server} were closed`, {
    details: { outcome: 'notDone', server },
  })
}

/** The server is reachable but can never serve as it is. */
export function unsupported(code: string, message: string, server: string): HoldfastError {
  return new HoldfastError('UNSUPPORTED', message, { details: { outcome: 'refused', code, server } })
}

/** True when waiting cannot help: the credentials, the version or the settings are wrong. */
export function isFinal(error: unknown): error is HoldfastError {
  return isHoldfastError(error) && !error.retryable
}

/** A pooler, or a server too old for them, refuses settings in the first packet: 08P01, 0A000, 42704, 22023. */
export function isStartupRefused(error: unknown): boolean {
  if (!isServerError(error)) return false
  if (error.code === '08P01') return /startup parameter/i.test(error.message)
  return error.code === '0A000' || error.code === '42704' || error.code === '22023'
}
