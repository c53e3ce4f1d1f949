/**
 * One attempt in a handler thread or process as the main thread sees it, and the vocabulary that the job actor and the pool share.
 * A run is `waiting` for a thread, `sent` to one, perhaps `killed` and `lost` when its thread does not end for all that, and `settled`: once,
 * and nothing reaches its services after.
 * To piscina it is also the signal that ends the task's thread, which spares an AbortController a task.
 */
import type { MessagePort } from 'node:worker_threads'
import type { AbortReason, RunMessage, ThreadJob } from '../../workers/handler-protocol.ts'
import { toFailure } from '../failure.ts'
import type { Isolation } from '../isolation.ts'
import type { Failure } from '../job.ts'

/** An attempt to run. `input` is decoded and validated; only what structured cloning keeps may be in it. */
export interface ThreadTask {
  readonly module: URL
  readonly isolation: Isolation
  readonly input: unknown
  readonly job: ThreadJob
  /** By the clock that all threads share: from then on the handler is not called. */
  readonly startBefore: number | null
  /** Told when the handler begins, which may be long after `run`: a thread has to start and the module to load first. */
  readonly onStart: (() => void) | null
  /** The place in `LOG_LEVELS` of the lowest level of lines that anybody wants. */
  readonly logFrom: number
  /** Told, once it is aborted, that the handler will not be called, when its module still loads: the outcome comes after that. */
  readonly onUnbegun?: () => void
}

/** What a handler's `ctx` does in a thread is answered by these on the main thread. */
export interface ThreadServices {
  progress(value: unknown): Promise<void>
  /** `options` is a `ThreadEnqueue` of `workers/handler-protocol.ts`. */
  enqueue(type: string, input: unknown, options: unknown): Promise<{ id: string; deduplicated: boolean }>
  log(level: string, fields: object, message: string | undefined): void
}

/** `failed`: the handler ended badly, or could not be started. `crashed`: its thread died under it; the code is PANIC. */
export type ThreadOutcome =
  | { readonly kind: 'succeeded'; readonly output: unknown }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'crashed'; readonly failure: Failure }

export interface ThreadRun {
  /** Never rejects. */
  readonly outcome: Promise<ThreadOutcome>
  /** Fires `ctx.signal` with a HoldfastError of this code; the first reason stands. A handler that has not begun never does. */
  abort(reason: AbortReason): void
  /** Ends the thread or process; the outcome becomes `crashed` when it is gone, or when it has not ended in a second. */
  kill(): void
}

/** What a host does for a run: hand on an abort, end its thread or process, drop a run that has none yet. */
export interface RunOwner {
  abort(run: PoolRun): void
  kill(run: PoolRun): void
  drop(run: PoolRun): void
}

export interface RunParts {
  readonly number: number
  readonly module: number
  readonly task: ThreadTask
  readonly services: ThreadServices
  readonly owner: RunOwner
}

export class PoolRun implements ThreadRun {
  readonly outcome: Promise<ThreadOutcome>
  readonly parts: RunParts
  state: 'waiting' | 'sent' | 'killed' | 'lost' | 'settled' = 'waiting'
  abortReason: AbortReason | null = null
  /** The thread it was given to, the port its messages come from, null until the first one, and how many came. */
  readonly thread: { id: number | null; port: MessagePort | null; received: number } = {
    id: null,
    port: null,
    received: 0,
  }
  #settle: (outcome: ThreadOutcome) => void = () => undefined
  #endThread: (() => void) | null = null

  constructor(parts: RunParts) {
    this.parts = parts
    this.outcome = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  abort(reason: AbortReason): void {
    if (this.state === 'settled' || this.abortReason !== null) return
    this.abortReason = { code: reason.code, message: reason.message }
    if (this.state === 'waiting') this.parts.owner.drop(this)
    else if (this.state === 'sent') this.parts.owner.abort(this)
  }

  kill(): void {
    const { state } = this
    if (state !== 'waiting' && state !== 'sent') return
    this.state = 'killed'
    if (state === 'waiting') this.parts.owner.drop(this)
    else this.parts.owner.kill(this)
  }

  /** Makes piscina end the thread, or take the task from its queue. */
  endTask(): void {
    this.#endThread?.()
  }

  settle(outcome: ThreadOutcome): void {
    if (this.state === 'settled') return
    this.state = 'settled'
    this.#settle(outcome)
  }

  /** piscina's side: it listens for the `abort` that ends the thread. */
  once(_name: 'abort', listener: () => void): void {
    this.#endThread = listener
  }

  off(): void {
    this.#endThread = null
  }

  removeListener(): void {
    this.#endThread = null
  }
}

/** What is sent to the thread. */
export function runMessage(run: PoolRun): RunMessage {
  const { number, module, task } = run.parts
  const { job } = task
  return [
    number,
    module,
    task.input,
    run.abortReason,
    job.jobId,
    job.type,
    job.lane,
    job.attempt,
    job.maxAttempts,
    job.isLastAttempt,
    job.leaseEpoch,
    job.workerId,
    job.deadlineAt,
    job.metadata,
    job.traceId,
    task.onStart !== null,
    task.logFrom,
    task.startBefore,
  ]
}

/** The outcome of a run that was taken back before any thread or process had it. */
export function takenBack(run: PoolRun): ThreadOutcome {
  return run.abortReason === null ? crashOf(run, null) : { kind: 'failed', failure: run.abortReason }
}

/** piscina says how a thread ended in words only. */
const EXITED = /^worker exited with code: (-?\d+)$/

function crashMessage(run: PoolRun, error: Failure): string {
  const { kind, maxHeapMb } = run.parts.task.isolation
  if (run.state === 'lost') return `the handler ${kind} could not be ended; its slot is lost`
  if (run.state === 'killed') return `the handler ${kind} was terminated`
  if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') {
    const limit = maxHeapMb === null ? '' : `; maxHeapMb is ${maxHeapMb}`
    return `the handler ${kind} ran out of memory (ERR_WORKER_OUT_OF_MEMORY)${limit}`
  }
  const code = EXITED.exec(error.message)?.[1]
  if (code !== undefined) return `the handler ${kind} exited with code ${code}`
  return `the handler ${kind} died: ${error.message}`
}

/** The outcome of a run whose thread or process is gone, from the error that told so. */
export function crashOf(run: PoolRun, error: unknown): ThreadOutcome {
  const cause = toFailure(error)
  const message = crashMessage(run, cause)
  const failure: Failure = {
    code: 'PANIC',
    message,
    ...(run.state === 'killed' || run.state === 'lost' ? {} : { cause }),
  }
  return { kind: 'crashed', failure }
}
