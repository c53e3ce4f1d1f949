/**
 * Where the module of a handler runs and within which limits: what `inThread` is told, checked once. Handlers whose answers are
 * all the same share their threads or processes, which is what `key` is for. Pure.
 */
import { type Duration, parseDuration, parseInteger, refuseUnknown } from './config.ts'
import { invalidArgument } from './errors.ts'

/** Where a handler module runs, and what it may use there. Heaps in MiB of 2^20 bytes. */
export interface IsolationOptions {
  /**
   * `thread` (the default): a worker thread, ended by force unless it is inside a native call. `process`: a process of its own, which
   * always can be killed and whose crash or full memory harms nobody; its start and each message cost more.
   */
  readonly isolation?: 'thread' | 'process'
  /** Limit of the JavaScript heap, 8 to 1,048,576. Default: that of Node. Buffers lie outside of it. */
  readonly maxHeapMb?: number
  /** The part of the heap for young objects, 1 to 1,024. Default: that of Node. */
  readonly maxYoungHeapMb?: number
  /** Size of the stack, 1 to 64, in a process at most 4: more than the system gives would end it. Default: that of Node. */
  readonly stackMb?: number
  /**
   * How long a thread or process may idle before it is ended. Default 30 s for those beyond the first few (as many as there are
   * cores), which stay; when it is given, all end. At least 1 ms, at most 24 days.
   */
  readonly idleTimeout?: Duration
  /** A thread or process that ran so many jobs is replaced by a fresh one. Default: never. */
  readonly maxJobsPerThread?: number
}

/** The same, checked, with null for what is left to the platform. */
export interface Isolation {
  readonly kind: 'thread' | 'process'
  readonly maxHeapMb: number | null
  readonly maxYoungHeapMb: number | null
  readonly stackMb: number | null
  readonly idleTimeoutMs: number | null
  readonly maxJobs: number | null
  /** Equal for equal answers. */
  readonly key: string
}

const OPTIONS = new Set(['isolation', 'maxHeapMb', 'maxYoungHeapMb', 'stackMb', 'idleTimeout', 'maxJobsPerThread'])
const HEAP_MB = { min: 8, max: 1_048_576 }
const YOUNG_MB_MAX = 1_024
const STACK_MB_MAX = { thread: 64, process: 4 }
/** Where the platform's timers end. */
const IDLE_MS_MAX = 24 * 86_400_000
const JOBS_MAX = 1_000_000_000

function optional(value: number | undefined, field: string, [min, max]: readonly [number, number]): number | null {
  return value === undefined ? null : parseInteger(value, field, min, max)
}

function parseIdle(value: Duration | undefined): number | null {
  if (value === undefined) return null
  const ms = parseDuration(value, 'idleTimeout')
  if (ms >= 1 && ms <= IDLE_MS_MAX) return ms
  throw invalidArgument('idleTimeout', `expected 1 ms to ${IDLE_MS_MAX} ms`, { min: 1, max: IDLE_MS_MAX })
}

/** Throws INVALID_ARGUMENT or INVALID_DURATION naming the option; `field` names the whole. */
export function parseIsolation(options: IsolationOptions, field: string): Isolation {
  refuseUnknown(options, OPTIONS, field)
  const kind: unknown = options.isolation ?? 'thread'
  if (kind !== 'thread' && kind !== 'process') throw invalidArgument('isolation', `expected 'thread' or 'process'`)
  const limits = {
    kind,
    maxHeapMb: optional(options.maxHeapMb, 'maxHeapMb', [HEAP_MB.min, HEAP_MB.max]),
    maxYoungHeapMb: optional(options.maxYoungHeapMb, 'maxYoungHeapMb', [1, YOUNG_MB_MAX]),
    stackMb: optional(options.stackMb, 'stackMb', [1, STACK_MB_MAX[kind]]),
    idleTimeoutMs: parseIdle(options.idleTimeout),
    maxJobs: optional(options.maxJobsPerThread, 'maxJobsPerThread', [1, JOBS_MAX]),
  } as const
  return Object.freeze({ ...limits, key: Object.values(limits).join() })
}
