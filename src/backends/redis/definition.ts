/**
 * The immutable definition of a job as the column `defs` holds it, in lines: what Lua reads (times, sequence, priority), the type,
 * options that differ from the usual as JSON, then one letter for the kind of payload and the payload itself.
 */
import { HoldfastError } from '../../errors.ts'
import type { JobDefinition, JobId, Payload, RetryPolicy } from '../../job.ts'
import type { RedisArgument } from './servers.ts'

/** What is not written when it is this. Part of the format: a change needs a new keyspace version. */
const USUAL = { maxAttempts: 7, maxCrashes: 3 } as const

interface Options {
  readonly timeoutMs?: number
  readonly maxAttempts?: number
  readonly maxAttemptsFixed?: true
  readonly maxCrashes?: number
  readonly retry?: RetryPolicy
  readonly idempotencyKey?: string
  readonly concurrencyKey?: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly traceId?: string
  readonly keepResultMs?: number
  readonly replayOf?: JobId
}

const JSON_PAYLOAD = 'j'
const BYTES_PAYLOAD = 'b'
const NO_PAYLOAD = 'u'

/** True for a job of which nothing but type and payload is said. */
function isUsual(job: JobDefinition): boolean {
  return (
    job.retry === null &&
    job.metadata === null &&
    job.timeoutMs === null &&
    job.idempotencyKey === null &&
    job.concurrencyKey === null &&
    job.traceId === null &&
    job.keepResultMs === null &&
    job.replayOf === null &&
    !job.maxAttemptsFixed &&
    job.maxAttempts === USUAL.maxAttempts &&
    job.maxCrashes === USUAL.maxCrashes
  )
}

function optionsOf(job: JobDefinition): Options {
  return {
    ...(job.timeoutMs === null ? {} : { timeoutMs: job.timeoutMs }),
    ...(job.maxAttempts === USUAL.maxAttempts ? {} : { maxAttempts: job.maxAttempts }),
    ...(job.maxAttemptsFixed ? { maxAttemptsFixed: true } : {}),
    ...(job.maxCrashes === USUAL.maxCrashes ? {} : { maxCrashes: job.maxCrashes }),
    ...(job.retry === null ? {} : { retry: job.retry }),
    ...(job.idempotencyKey === null ? {} : { idempotencyKey: job.idempotencyKey }),
    ...(job.concurrencyKey === null ? {} : { concurrencyKey: job.concurrencyKey }),
    ...(job.metadata === null ? {} : { metadata: job.metadata }),
    ...(job.traceId === null ? {} : { traceId: job.traceId }),
    ...(job.keepResultMs === null ? {} : { keepResultMs: job.keepResultMs }),
    ...(job.replayOf === null ? {} : { replayOf: job.replayOf }),
  }
}

/** The lines below the first one, which the script writes. */
export function packDefinition(job: JobDefinition): RedisArgument {
  const { type, payload } = job
  const lines = isUsual(job) ? `${type}\n\n` : `${type}\n${JSON.stringify(optionsOf(job))}\n`
  if (typeof payload === 'string') return payload === '' ? lines + NO_PAYLOAD : lines + JSON_PAYLOAD + payload
  return Buffer.concat([Buffer.from(lines + BYTES_PAYLOAD, 'utf8'), payload])
}

/** What the enqueue script must know of a job beside its definition; empty for one that is queued now at priority 0. */
export function packSpec(job: JobDefinition): string {
  const { concurrencyKey } = job
  if (concurrencyKey === null) return packPlaces(job)
  return `@${Buffer.byteLength(concurrencyKey)} ${concurrencyKey} ${packPlaces(job)}`
}

function packPlaces(job: JobDefinition): string {
  const { priority, runAt, delayMs, deadlineAt, idempotencyKey } = job
  if (priority === 0 && runAt === null && delayMs === 0 && deadlineAt === null && idempotencyKey === null) return ''
  return `${priority} ${runAt ?? ''} ${runAt === null && delayMs > 0 ? delayMs : ''} ${deadlineAt ?? ''} ${idempotencyKey ?? ''}`
}

/** A definition as a claim reads it. */
export interface ClaimedDefinition {
  readonly deadlineAt: number | null
  readonly type: string
  readonly maxAttempts: number
  readonly maxCrashes: number
  readonly options: Options
  readonly payload: Payload
}

/** A definition as read back. */
interface StoredDefinition extends ClaimedDefinition {
  readonly createdAt: number
  readonly sequence: number
  readonly priority: number
  /** When a job that has not run yet was to run. */
  readonly runAt: number
}

const NO_OPTIONS: Options = Object.freeze({})
const NEWLINE = 10

function damaged(cause?: unknown): HoldfastError {
  return new HoldfastError('STORE_CORRUPT', 'the Redis store holds a damaged definition of a job', {
    details: { outcome: 'refused' },
    cause,
  })
}

function payloadOf(bytes: Buffer, from: number): Payload {
  const kind = bytes[from]
  if (kind === JSON_PAYLOAD.charCodeAt(0)) return bytes.toString('utf8', from + 1)
  if (kind === BYTES_PAYLOAD.charCodeAt(0)) return Uint8Array.from(bytes.subarray(from + 1))
  // Lists leave the payload out.
  if (kind === NO_PAYLOAD.charCodeAt(0) || kind === undefined) return ''
  throw damaged()
}

const optional = (text: string | undefined): number | null => (text === undefined || text === '' ? null : Number(text))

/** What a claim needs of a definition. Throws STORE_CORRUPT. */
export function unpackClaimed(bytes: Buffer): ClaimedDefinition {
  const first = bytes.indexOf(NEWLINE)
  const second = bytes.indexOf(NEWLINE, first + 1)
  const third = bytes.indexOf(NEWLINE, second + 1)
  if (first === -1 || second === -1 || third === -1) throw damaged()
  const places = bytes.toString('latin1', 0, first)
  if (Number.isNaN(Number.parseInt(places, 10))) throw damaged()
  const json = third - second > 1 ? bytes.toString('utf8', second + 1, third) : ''
  const options = json === '' ? NO_OPTIONS : readOptions(json)
  return {
    // Nearly always the last two are empty, and nothing is to be cut.
    deadlineAt: places.endsWith('  ') ? null : optional(places.split(' ')[3]),
    type: bytes.toString('utf8', first + 1, second),
    maxAttempts: options.maxAttempts ?? USUAL.maxAttempts,
    maxCrashes: options.maxCrashes ?? USUAL.maxCrashes,
    options,
    payload: payloadOf(bytes, third + 1),
  }
}

/** Throws STORE_CORRUPT. */
export function unpackDefinition(bytes: Buffer): StoredDefinition {
  const claimed = unpackClaimed(bytes)
  const places = bytes.toString('latin1', 0, bytes.indexOf(NEWLINE))
  const [created = '', sequence = '', priority = '', , runAt] = places.split(' ')
  const createdAt = Number(created)
  if (Number.isNaN(createdAt)) throw damaged()
  return {
    ...claimed,
    createdAt,
    sequence: Number(sequence),
    priority: Number(priority),
    runAt: optional(runAt) ?? createdAt,
  }
}

function readOptions(json: string): Options {
  try {
    return JSON.parse(json) as Options
  } catch (cause) {
    throw damaged(cause)
  }
}
