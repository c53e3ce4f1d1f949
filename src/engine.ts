/** What a worker is made from: its own settings, and what it shares with the client that made it. Plain data and functions. */
import type { BackendActor } from './actors/backend-actor.ts'
import type { Inspect } from './actors/lifecycle.ts'
import type { Clock, Timers } from './clock.ts'
import type { EnqueueOptions, Handler, JobContract, RetryOption } from './contract.ts'
import type { JobId } from './job.ts'
import type { Random } from './random.ts'
import type { Retention } from './retention.ts'
import type { Logger, LogLevel, Warn } from './telemetry.ts'

export interface WorkerSettings {
  readonly id: string
  readonly lanes: readonly string[]
  readonly concurrency: number
  readonly leaseMs: number
  /** Of the types whose contract says another one than the worker's. */
  readonly typeLeases: ReadonlyMap<string, number>
  readonly maxBlockedMs: number
  readonly prefetch: number
  readonly pollMs: number
  readonly reapMs: number
  readonly killGraceMs: number
  readonly handlers: ReadonlyMap<string, Handler<unknown>>
  readonly context: unknown
  readonly retry: RetryOption | null
  readonly queueRetry: ReadonlyMap<string, RetryOption>
  readonly keepLogs: KeepLogs
}

/** Which lines of `ctx.log` are stored with the job. */
export interface KeepLogs {
  /** The newest of a job; 0: none. */
  readonly lines: number
  readonly level: LogLevel
}

/** What a worker shares with the client that made it. */
export interface Engine {
  readonly backend: BackendActor
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly logger: Logger
  /** For what the store fails in: a store that is away does not fill the log. */
  readonly warn: Warn
  readonly retention: Retention
  readonly payloadBytesMax: number
  readonly inspect: Inspect | null
  readonly enqueue: (
    job: JobContract | string,
    input: unknown,
    options: EnqueueOptions,
  ) => Promise<{ readonly id: JobId; readonly deduplicated: boolean }>
  /** Told when a job has ended, after the store has said so. */
  readonly onEnded: (id: JobId) => void
}
