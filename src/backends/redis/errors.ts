/**
 * Turns what a Redis server, the driver or the network says into HoldfastError. `details.outcome` tells whether anything may
 * have been done, `details.reply` the server's own error word, `details.server` the address; no argument or password is kept.
 */
import { type ErrorCode, HoldfastError } from '../../errors.ts'
import type { FailedCallOutcome } from '../backend.ts'

interface ReplyRule {
  readonly code: ErrorCode
  readonly outcome: FailedCallOutcome
  /** What it means, and what to do. */
  readonly advice: string
}

const rule = (code: ErrorCode, outcome: FailedCallOutcome, advice: string): ReplyRule => ({ code, outcome, advice })

const away = (advice: string): ReplyRule => rule('STORE_UNAVAILABLE', 'notDone', advice)

/** By the first word of an error reply. The server, or a script of ours, refuses all of these before it does anything. */
const REPLIES: Readonly<Record<string, ReplyRule>> = {
  READONLY: away('is a replica, not a primary; the connection was dropped to look for the primary again'),
  MASTERDOWN: away('is a replica that lost its primary; wait for the failover'),
  LOADING: away('is loading its data; it answers when that is done'),
  NOREPLICAS: away('has fewer good replicas than min-replicas-to-write; check the replicas'),
  CLUSTERDOWN: away('says that the Cluster is down; check its nodes and slots'),
  TRYAGAIN: away('is moving these keys to another node; try again'),
  BUSY: away('is running a long script; wait, or end it with SCRIPT KILL'),
  MISCONF: away('cannot save to disk and refuses writes; check its disk and its log'),
  UNBLOCKED: away('ended the wait because its role changed'),
  MOVED: away('gave the key to another node of its Cluster; use a redis+cluster:// URL'),
  ASK: away('is giving the key to another node of its Cluster; use a redis+cluster:// URL'),
  NOSCRIPT: away('does not know the script'),
  OOM: rule('STORE_FULL', 'notDone', 'is at maxmemory; raise maxmemory or remove data'),
  NOAUTH: rule('STORE_DENIED', 'refused', 'wants credentials; give user and password in the URL'),
  DENIED: rule('STORE_DENIED', 'refused', 'is in protected mode; set a password or bind it to this network'),
  WRONGPASS: rule('STORE_DENIED', 'refused', 'refused the user or password; check the URL'),
  NOPERM: rule('STORE_DENIED', 'refused', 'does not permit the command or key to this user; check ACL GETUSER'),
  WRONGTYPE: rule(
    'STORE_CORRUPT',
    'refused',
    'holds a key of another type than Holdfast writes; check who else writes it',
  ),
  HOLDFAST_DAMAGED: rule('STORE_CORRUPT', 'refused', 'holds a key that Holdfast cannot read; check who else writes it'),
  HOLDFAST_ARGUMENTS: rule('INTERNAL', 'refused', 'was given arguments that the script does not take'),
  CROSSSLOT: rule('INTERNAL', 'refused', 'was given keys of several slots'),
}

const TOO_MANY_CLIENTS = away('has no connection left; raise maxclients or close clients')
const FAILED = rule('INTERNAL', 'unknown', 'could not run the command')
/** Unlike NOPERM this may come from the middle of a script. */
const DENIED_IN_SCRIPT = rule(
  'STORE_DENIED',
  'unknown',
  'does not permit this user a command that a script needs; see the list in docs/keyspace.md',
)

/** The first word of an error reply, `ERR` where it has none of its own. */
function wordOf(message: string): string {
  return /^([A-Z_]+)\b/.exec(message)?.[1] ?? 'ERR'
}

function ruleOf(message: string): ReplyRule {
  if (message.includes('max number of clients')) return TOO_MANY_CLIENTS
  if (/The user executing the script can't|ACL failure in script/.test(message)) return DENIED_IN_SCRIPT
  return REPLIES[wordOf(message)] ?? FAILED
}

/** The driver's error carries all arguments of its command; they must not reach a log. */
function bare(error: Error): Error {
  const cause = new Error(error.message)
  cause.name = error.name
  return cause
}

/** An error reply of the server. */
export function replyError(error: Error, server: string): HoldfastError {
  const { code, outcome, advice } = ruleOf(error.message)
  return new HoldfastError(code, `Redis at ${server} ${advice} (${error.message})`, {
    details: { outcome, server, reply: wordOf(error.message), said: error.message },
    cause: bare(error),
  })
}

/** Whatever a command rejects with: an error reply, or the loss of its connection. */
export function commandError(error: unknown, server: string): HoldfastError {
  const known = error instanceof Error ? error : new Error(String(error))
  if (known.name === 'ReplyError' || known.message.includes('max number of clients')) return replyError(known, server)
  if (known.message.includes("isn't writeable")) return notConnected(server, known)
  return new HoldfastError(
    'STORE_UNAVAILABLE',
    `Redis at ${server}: the connection was lost while a command was under way (${known.message})`,
    { details: { outcome: 'unknown', server }, cause: bare(known) },
  )
}

export function notConnected(server: string, cause?: unknown): HoldfastError {
  const why = cause instanceof Error ? ` (${cause.message})` : ''
  return new HoldfastError('STORE_UNAVAILABLE', `Redis at ${server} is not connected${why}`, {
    details: { outcome: 'notDone', server },
    cause,
  })
}

/** The server's own word is often lost when it closes a connection that it does not want. */
export const REJECTED_HINT = '; it may have no connection left (maxclients), or expect TLS'

const REJECTIONS: ReadonlySet<string> = new Set(['EPIPE', 'ECONNRESET'])

/** Why a try to connect failed. Whatever was to be sent was not sent, so it may be repeated. */
export function cannotConnect(server: string, cause: unknown): HoldfastError {
  const known = cause instanceof Error ? cause : new Error(String(cause))
  const error = known.message.includes('max number of clients') ? replyError(known, server) : known
  if (isFinal(error)) return error
  // Node gives no message when several addresses of one name failed, only a code.
  const driverCode = 'code' in error ? String(error.code) : ''
  const why = `${error.message || driverCode || error.name}${REJECTIONS.has(driverCode) ? REJECTED_HINT : ''}`
  const message = error instanceof HoldfastError ? why : `Redis at ${server} cannot be reached: ${why}`
  return new HoldfastError('STORE_UNAVAILABLE', message, {
    details: { ...(error instanceof HoldfastError ? error.details : {}), outcome: 'notDone', server },
    cause: bare(error),
  })
}

export function timedOut(server: string, timeoutMs: number): HoldfastError {
  return new HoldfastError(
    'STORE_TIMEOUT',
    `Redis at ${server} did not answer within ${Math.round(timeoutMs)} ms; the connection was dropped`,
    { details: { outcome: 'unknown', server, timeoutMs } },
  )
}

export function closed(server: string): HoldfastError {
  return new HoldfastError('CLOSED', `the connection to ${server} was closed`, {
    details: { outcome: 'notDone', server },
  })
}

/** The server is reachable but can never serve as it is. */
export function unsupported(code: string, message: string, server: string): HoldfastError {
  return new HoldfastError('UNSUPPORTED', message, { details: { outcome: 'refused', code, server } })
}

/** The server's own error word in an error made here, such as `NOSCRIPT`. */
export function replyWordOf(error: unknown): string | undefined {
  if (!(error instanceof HoldfastError)) return undefined
  return typeof error.details.reply === 'string' ? error.details.reply : undefined
}

/** True when waiting cannot help: the credentials, the version or the settings are wrong. */
export function isFinal(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError && !error.retryable
}
