/** The options of `connect`: their types, and the one place where they are checked. */
import type { Inspect } from './actors/lifecycle.ts'
import type { PoolOptions } from './backends/postgres/pool-options.ts'
import { DEFAULTS, type Duration, LIMITS, parseDuration, parseInteger, parseName, refuseUnknown } from './config.ts'
import { invalidArgument } from './errors.ts'
import { toFailure } from './failure.ts'
import { parseRetention, type Retention, type RetentionOptions } from './retention.ts'
import { createLogger, guardLogger, type Logger } from './telemetry.ts'

/** A client of ioredis, `Redis` or `Cluster`: read for where and how it connects, and otherwise left alone. */
export interface StoreClient {
  readonly options: object
  duplicate(...override: readonly never[]): unknown
}

/** A `Pool` of pg: used as it is, one connection at a time for one statement, and never ended. */
export interface StorePool {
  readonly totalCount: number
  readonly idleCount: number
  readonly options: object
  query(...query: readonly never[]): unknown
  connect(...callback: readonly never[]): unknown
}

/** Options of `connect`. */
export interface ConnectOptions {
  /** Keeps the jobs of several applications apart in one store. Default `default`. */
  readonly namespace?: string
  /** A pino logger. Default: warnings to standard error, or the level in `HOLDFAST_LOG`. */
  readonly logger?: Logger
  /** Receives the inspection events of a real XState actor per job in flight, as the Stately inspector takes them. */
  readonly inspect?: Inspect
  /** Largest encoded input or output. Default 1 MiB. */
  readonly payloadBytesMax?: number
  /** How long jobs that completed are kept; 0: not at all. Default 7 days. */
  readonly keepCompleted?: Duration | 'forever'
  /** How long cancelled jobs are kept; 0: not at all. Default 7 days. */
  readonly keepCancelled?: Duration | 'forever'
  /** How long dead letters are kept. Default `forever`. */
  readonly keepDead?: Duration | 'forever'
  /** The same with counts and by lane, such as `{ completed: { age: '7d', count: 10_000 }, lanes: { mail: { completed: '1h' } } }`. */
  readonly retention?: RetentionOptions
  /** How long a call may take, repetitions included, before it fails. Default 10 s. */
  readonly callDeadline?: Duration
  /** With a pool of pg: what a `postgres://` URL says in its parameters. */
  readonly pool?: PoolOptions
}

const OPTIONS = new Set([
  'namespace',
  'logger',
  'inspect',
  'payloadBytesMax',
  'keepCompleted',
  'keepCancelled',
  'keepDead',
  'retention',
  'callDeadline',
  'pool',
])

export interface ParsedOptions {
  readonly namespace: string
  readonly logger: Logger
  readonly inspect: Inspect | null
  readonly payloadBytesMax: number
  readonly retention: Retention
  readonly callDeadlineMs: number
}

const PAYLOAD_BYTES_LIMIT = 256 * 1024 * 1024

/** Throws INVALID_ARGUMENT, INVALID_NAME or INVALID_DURATION naming the option. */
export function parseConnectOptions(options: ConnectOptions): ParsedOptions {
  refuseUnknown(options, OPTIONS, 'options')
  if (options.inspect !== undefined && typeof options.inspect !== 'function')
    throw invalidArgument('inspect', 'expected a function')
  const logger = options.logger === undefined ? createLogger() : guardLogger(options.logger)
  return {
    namespace: options.namespace === undefined ? DEFAULTS.namespace : parseName(options.namespace, 'namespace'),
    logger,
    inspect: options.inspect === undefined ? null : guardInspect(options.inspect, logger),
    payloadBytesMax:
      options.payloadBytesMax === undefined
        ? LIMITS.payloadBytes
        : parseInteger(options.payloadBytesMax, 'payloadBytesMax', 1, PAYLOAD_BYTES_LIMIT),
    retention: parseRetention(options),
    callDeadlineMs:
      options.callDeadline === undefined
        ? DEFAULTS.callDeadlineMs
        : Math.max(1, parseDuration(options.callDeadline, 'callDeadline')),
  }
}

/** Whoever looks on must not be able to stop the work. */
function guardInspect(inspect: Inspect, logger: Logger): Inspect {
  return (event) => {
    try {
      inspect(event)
    } catch (error) {
      logger.error({ err: toFailure(error) }, 'the inspect function failed')
    }
  }
}
