/**
 * The events of a worker. A listener is the caller's code and runs in the middle of ours: what it throws, or rejects with,
 * is told to `onThrow` and goes no further, and the listeners after it are called all the same.
 */
import { EventEmitter } from 'node:events'
import { show } from './config.ts'
import { type HoldfastError, invalidArgument } from './errors.ts'
import type { JobEventFields } from './telemetry.ts'

/** What an event of a worker tells. `error` carries a HoldfastError instead. */
export interface WorkerEvents {
  /** An attempt succeeded, and the store has its output. */
  completed: [JobEventFields]
  /** Every attempt that failed; `retrying` or `dead` follows. */
  failed: [JobEventFields]
  /** The job waits for its next attempt. */
  retrying: [JobEventFields]
  /** The job is in the dead letters. */
  dead: [JobEventFields]
  /** The job was cancelled while it ran. */
  cancelled: [JobEventFields]
  /** The lease was lost: the outcome of the handler, if any, was not stored. */
  lost: [{ readonly jobId: string; readonly type: string; readonly attempt: number; readonly workerId: string }]
  /** The main loop stood still for about this long; noticed at the next renewal of the leases. */
  blocked: [{ readonly blockedMs: number; readonly workerId: string }]
  /** A handler could not be stopped: its slot counts in `lostSlots` until it ends by itself. */
  slotLost: [SlotEventFields]
  /** Such a handler has ended after all. */
  slotRecovered: [SlotEventFields]
  /** The store did not answer, or the worker has given up; it goes on by itself unless `hf.health()` says otherwise. */
  error: [HoldfastError]
}

/** A slot that was given up with its handler still in it, and how many there are now. */
export interface SlotEventFields {
  readonly jobId: string
  readonly type: string
  readonly attempt: number
  /** What cannot be stopped: a function on the main thread, a thread inside a native call, a process the system does not end. */
  readonly where: 'inline' | 'thread' | 'process'
  readonly workerId: string
  readonly lostSlots: number
}

const EVENTS = new Set<string>([
  'completed',
  'failed',
  'retrying',
  'dead',
  'cancelled',
  'lost',
  'blocked',
  'slotLost',
  'slotRecovered',
  'error',
] satisfies (keyof WorkerEvents)[])

type Listener = (...args: never[]) => void

/** One for an event that there is not would wait in silence for ever. */
function requireListener(event: string, listener: unknown): void {
  if (!EVENTS.has(event))
    throw invalidArgument('event', `expected one of ${[...EVENTS].join(', ')}; got ${show(event)}`)
  if (typeof listener !== 'function') throw invalidArgument('listener', 'expected a function')
}

export class WorkerListeners {
  private readonly emitter = new EventEmitter()
  private readonly onThrow: (event: string, error: unknown) => void

  constructor(onThrow: (event: string, error: unknown) => void) {
    this.onThrow = onThrow
  }

  has(event: keyof WorkerEvents): boolean {
    return this.emitter.listenerCount(event) > 0
  }

  /** Throws INVALID_ARGUMENT for an unknown event. */
  on(event: keyof WorkerEvents, listener: Listener): void {
    requireListener(event, listener)
    this.emitter.on(event, listener as () => void)
  }

  /** Throws INVALID_ARGUMENT for an unknown event. */
  once(event: keyof WorkerEvents, listener: Listener): void {
    requireListener(event, listener)
    this.emitter.once(event, listener as () => void)
  }

  off(event: keyof WorkerEvents, listener: Listener): void {
    this.emitter.off(event, listener as () => void)
  }

  /** Never throws. */
  emit<E extends keyof WorkerEvents>(event: E, ...args: WorkerEvents[E]): void {
    for (const listener of this.emitter.rawListeners(event)) {
      try {
        const answer: unknown = Reflect.apply(listener, this.emitter, args)
        if (answer instanceof Promise) answer.catch((error: unknown) => this.onThrow(event, error))
      } catch (error) {
        this.onThrow(event, error)
      }
    }
  }
}
