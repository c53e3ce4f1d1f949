/** The worker as users see it: options checked once, events, slots, an orderly stop. The work is done by `Runtime`. */
import { hostname } from 'node:os'
import {
  DEFAULTS,
  type Duration,
  LIMITS,
  parseDuration,
  parseInteger,
  parseLease,
  parseName,
  refuseUnknown,
} from './config.ts'
import { type AppContext, type Handler, parseRetryPolicy, type RetryOption } from './contract.ts'
import type { KeepLogs, WorkerSettings } from './engine.ts'
import { HoldfastError, invalidArgument } from './errors.ts'
import type { Random } from './random.ts'
import { nonce } from './random.ts'
import type { Runtime } from './runtime.ts'
import { LOG_LEVELS, type LogLevel } from './telemetry.ts'
import type { WorkerEvents } from './worker-events.ts'

/** Options of a worker. */
export interface WorkerOptions<Context = AppContext> {
  /** One per job type. */
  readonly handlers: readonly Handler<Context>[]
  /** The lanes to take jobs from. Default: those of the handlers' contracts. */
  readonly lanes?: readonly string[]
  /** How many handlers run at once. Default 6. */
  readonly concurrency?: number
  /** Becomes `ctx.context` of inline handlers; a worker whose handlers are annotated with one must be given it. */
  readonly context?: Context
  /** How long a job stays this worker's without a renewal; renewed at a third. Default 30 s, at least 100 ms. A type may say another one. */
  readonly lease?: Duration
  /**
   * How long the main loop may be blocked before its jobs are given up and run elsewhere; until then a thread renews their leases
   * (where `capabilities.leaseKeeper` is `thread`). A job is never held beyond its own timeout. Default 60 s; 0: no thread renews.
   */
  readonly maxBlocked?: Duration
  /** Default: host name, process id and a random part. Two workers must not share one: leave it out where a process has replicas. */
  readonly id?: string
  /** The policy for jobs that have no other: neither their own nor their contract's nor their queue's. */
  readonly retry?: RetryOption
  /** What counts for the jobs of single lanes. */
  readonly queues?: Readonly<Record<string, { readonly retry?: RetryOption }>>
  /** Only `fifo`: by priority, then time, then order of arrival. */
  readonly ordering?: 'fifo'
  /** Longest wait between looks at the store when no hint comes; twice that while the store's wake-ups surely arrive. Default 1 s. */
  readonly poll?: Duration
  /** Pause between looks for leases that ran out. Default 5 s, or half of the shortest `lease` that a type of the handlers says. */
  readonly reap?: Duration
  /**
   * Most jobs to hold beyond the free slots while handlers take a few milliseconds at most; what is held longer than 50 ms goes
   * back. Default 200; 0 turns it off.
   */
  readonly prefetch?: number
  /**
   * How many lines of `ctx.log` are stored with a job, the newest; from `level` on, whatever the level of the logger. Default 100 from
   * `info`; at most 1,000; 0 stores none.
   */
  readonly keepLogs?: number | { readonly lines?: number; readonly level?: LogLevel }
  /** What a handler gets between its signal and being given up or terminated. Default 2 s. */
  readonly killGrace?: Duration
}

/** What a handler asks for in `ctx.context` must be given to its worker; handlers that ask for nothing leave `context` out. */
export type NeedsContext<Context> = object extends Context ? unknown : { readonly context: Context }

/** The options whatever their handlers ask for. */
export type AnyWorkerOptions = Omit<WorkerOptions<never>, 'context'> & { readonly context?: unknown }

const OPTIONS = new Set([
  'handlers',
  'lanes',
  'concurrency',
  'context',
  'lease',
  'maxBlocked',
  'id',
  'retry',
  'queues',
  'ordering',
  'poll',
  'reap',
  'killGrace',
  'prefetch',
  'keepLogs',
])

const QUEUE_OPTIONS = new Set(['retry'])
const STOP_OPTIONS = new Set(['deadline'])

/** How a worker is stopped, or a client closed. */
export interface StopOptions {
  /** How long handlers may go on until they are aborted. Default 30 s. */
  readonly deadline?: Duration
}

/** Throws INVALID_ARGUMENT or INVALID_DURATION. */
export function parseStopDeadline(options: StopOptions): number {
  refuseUnknown(options, STOP_OPTIONS, 'options')
  const { deadline } = options
  return deadline === undefined ? DEFAULTS.stopDeadlineMs : parseDuration(deadline, 'deadline')
}

/** Checks the options of a worker; every error names its field. */
export function toSettings(options: AnyWorkerOptions, random: Random): WorkerSettings {
  if (typeof options !== 'object' || options === null)
    throw invalidArgument('options', 'expected an object with handlers')
  refuseUnknown(options, OPTIONS, 'options')
  const ordering: unknown = options.ordering
  if (ordering !== undefined && ordering !== 'fifo') {
    throw new HoldfastError('UNSUPPORTED', `ordering: this store offers only 'fifo'`, {
      details: { field: 'ordering', capability: 'ordering' },
    })
  }
  const handlers = toHandlerMap(options.handlers)
  const leaseMs = options.lease === undefined ? DEFAULTS.leaseMs : parseLease(options.lease, 'lease')
  const typeLeases = toTypeLeases(handlers, leaseMs)
  return {
    id: options.id === undefined ? defaultId(random) : parseName(options.id, 'id'),
    lanes: toLanes(options.lanes, handlers),
    concurrency:
      options.concurrency === undefined
        ? DEFAULTS.concurrency
        : parseInteger(options.concurrency, 'concurrency', 1, LIMITS.concurrency),
    leaseMs,
    typeLeases,
    maxBlockedMs:
      options.maxBlocked === undefined ? DEFAULTS.maxBlockedMs : parseDuration(options.maxBlocked, 'maxBlocked'),
    pollMs: options.poll === undefined ? DEFAULTS.pollMs : Math.max(1, parseDuration(options.poll, 'poll')),
    reapMs: options.reap === undefined ? reapMsFor(typeLeases) : Math.max(1, parseDuration(options.reap, 'reap')),
    prefetch:
      options.prefetch === undefined
        ? DEFAULTS.prefetch
        : parseInteger(options.prefetch, 'prefetch', 0, LIMITS.prefetch),
    killGraceMs: options.killGrace === undefined ? DEFAULTS.killGraceMs : parseDuration(options.killGrace, 'killGrace'),
    handlers,
    context: options.context,
    retry: options.retry === undefined ? null : toRetry(options.retry, 'retry'),
    queueRetry: toQueueRetry(options.queues === undefined ? {} : options.queues),
    keepLogs: toKeepLogs(options.keepLogs),
  }
}

/** Contracts may come from another release, or from no `defineJob` at all. */
function toTypeLeases(handlers: ReadonlyMap<string, Handler<unknown>>, leaseMs: number): ReadonlyMap<string, number> {
  const leases = [...handlers].map(([type, { contract }]) => [type, contract.leaseMs ?? leaseMs] as const)
  return new Map(leases.filter(([, own]) => own !== leaseMs))
}

/** Whoever asks for a short lease wants it to be noticed soon that it ran out. */
const reapMsFor = (typeLeases: ReadonlyMap<string, number>): number =>
  Math.min(DEFAULTS.reapMs, ...[...typeLeases.values()].map((leaseMs) => leaseMs / 2))

const KEEP_LOGS_OPTIONS = new Set(['lines', 'level'])

function toKeepLogs(value: WorkerOptions['keepLogs']): KeepLogs {
  const options = typeof value === 'number' ? { lines: value } : (value ?? {})
  refuseUnknown(options, KEEP_LOGS_OPTIONS, 'keepLogs')
  const { lines = DEFAULTS.keepLogs, level = 'info' } = options
  if (!LOG_LEVELS.includes(level)) throw invalidArgument('keepLogs.level', `expected one of ${LOG_LEVELS.join(', ')}`)
  return { lines: parseInteger(lines, 'keepLogs', 0, LIMITS.keepLogs), level }
}

function toRetry(value: RetryOption, field: string): RetryOption {
  return typeof value === 'function' ? value : parseRetryPolicy(value, field)
}

function toQueueRetry(
  queues: Readonly<Record<string, { readonly retry?: RetryOption }>>,
): ReadonlyMap<string, RetryOption> {
  const map = new Map<string, RetryOption>()
  if (typeof queues !== 'object' || queues === null) throw invalidArgument('queues', 'expected an object')
  for (const [lane, options] of Object.entries(queues)) {
    parseName(lane, 'queues')
    refuseUnknown(options, QUEUE_OPTIONS, `queues.${lane}`)
    const { retry } = options
    if (retry !== undefined) map.set(lane, toRetry(retry, `queues.${lane}.retry`))
  }
  return map
}

function toHandlerMap(handlers: readonly Handler<never>[]): ReadonlyMap<string, Handler<unknown>> {
  if (!Array.isArray(handlers) || handlers.length === 0)
    throw invalidArgument('handlers', 'expected at least one handler made by handle or inThread')
  const map = new Map<string, Handler<unknown>>()
  for (const handler of handlers as readonly Handler<unknown>[]) {
    if (handler?.kind !== 'inline' && handler?.kind !== 'thread')
      throw invalidArgument('handlers', 'every handler must be made by handle or inThread')
    const { type } = handler.contract
    if (map.has(type)) {
      throw new HoldfastError('DUPLICATE_HANDLER', `handlers: two handlers for the job type '${type}'`, {
        details: { field: 'handlers', type },
      })
    }
    map.set(type, handler)
  }
  return map
}

function toLanes(
  lanes: readonly string[] | undefined,
  handlers: ReadonlyMap<string, Handler<unknown>>,
): readonly string[] {
  if (lanes === undefined) return [...new Set([...handlers.values()].map(({ contract }) => contract.queue))]
  if (!Array.isArray(lanes) || lanes.length === 0)
    throw invalidArgument('lanes', 'expected an array of at least one lane')
  return [...new Set(lanes.map((lane, index) => parseName(lane, `lanes[${index}]`)))]
}

function defaultId(random: Random): string {
  const host = hostname()
    .replace(/[^A-Za-z0-9_.-]/g, '-')
    .slice(0, 64)
  return `${host === '' ? 'host' : host}-${process.pid}-${nonce(random).slice(0, 8)}`
}

type Listener<E extends keyof WorkerEvents> = (...args: WorkerEvents[E]) => void

/** A running worker. */
export class Worker {
  readonly id: string
  readonly lanes: readonly string[]
  readonly #runtime: Runtime
  readonly #onStopped: () => void

  constructor(runtime: Runtime, settings: WorkerSettings, onStopped: () => void) {
    this.#runtime = runtime
    this.#onStopped = onStopped
    this.id = settings.id
    this.lanes = settings.lanes
  }

  /** How many handlers may run at once. */
  get concurrency(): number {
    return this.#runtime.present.concurrency
  }

  /** How many handlers run now. */
  get activeJobs(): number {
    return this.#runtime.present.running
  }

  /**
   * Handlers that could not be stopped and still run. Each thread or process among them is replaced, up to as many as there are slots
   * (two at least); then the worker claims nothing and `hf.health()` is not ok until one of them ends.
   */
  get lostSlots(): number {
    return this.#runtime.lostSlots
  }

  /** Adds a slot; it takes a job at once. Returns the new number of slots. Throws CLOSED once the worker was stopped. */
  addSlot(): number {
    this.#requireRunning()
    const slots = Math.min(LIMITS.concurrency, this.concurrency + 1)
    void this.#runtime.resize(slots)
    return slots
  }

  /**
   * Takes a slot away, never the last one, and waits until its job has ended. Resolves with the number of slots. Rejects with CLOSED
   * once the worker was stopped.
   */
  async removeSlot(): Promise<number> {
    this.#requireRunning()
    const slots = Math.max(1, this.concurrency - 1)
    await this.#runtime.resize(slots)
    return slots
  }

  #requireRunning(): void {
    if (this.#runtime.present.isStopping) throw new HoldfastError('CLOSED', 'the worker was stopped')
  }

  /**
   * Events are of this process and of the moment: what other processes end, or what ends before the listener is there, is not told.
   * To count what has ended, ask the store: `hf.stats()`, or the pages of `hf.list()`.
   */
  on<E extends keyof WorkerEvents>(event: E, listener: Listener<E>): this {
    this.#runtime.events.on(event, listener as never)
    return this
  }

  /** The same, for the next one only. */
  once<E extends keyof WorkerEvents>(event: E, listener: Listener<E>): this {
    this.#runtime.events.once(event, listener as never)
    return this
  }

  /** Takes a listener away. */
  off<E extends keyof WorkerEvents>(event: E, listener: Listener<E>): this {
    this.#runtime.events.off(event, listener as never)
    return this
  }

  /**
   * Stops claiming, lets handlers end until `deadline` (default 30 s), aborts the rest, gives it back uncharged, closes. Once the
   * handlers have ended, or `killGrace` after their signal, a store that is silent for 400 ms ends the wait as well: what it
   * was not told is recovered when the leases run out.
   */
  async stop(options: StopOptions = {}): Promise<void> {
    await this.#runtime.stop(parseStopDeadline(options))
    this.#onStopped()
  }
}
