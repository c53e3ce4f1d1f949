/**
 * What crosses between the main thread and a handler thread or process; types only, all of it plain data.
 * Tasks and replies travel through piscina. Services (progress, enqueue, log, abort) travel through one port a thread, made
 * by the thread and handed over once when it loads, so that a task that uses no service costs no message. To a process all of it goes through its one channel, in order.
 * `src/actors/thread-host.ts` and `handler-process.ts` speak one side, the files beside this one the other.
 */
import type { MessagePort } from 'node:worker_threads'
import type { EnqueueOptions } from '../src/contract.ts'
import type { ErrorCode } from '../src/errors.ts'
import type { Failure, JobId, RetryPolicy } from '../src/job.ts'

/** Handed to a thread at its start: the modules it may load. Tasks name them by position. */
export interface ThreadData {
  readonly modules: readonly string[]
}

/** The job as a thread is told of it. Times in epoch milliseconds. */
export interface ThreadJob {
  readonly jobId: JobId
  readonly type: string
  readonly lane: string
  readonly attempt: number
  readonly maxAttempts: number
  readonly isLastAttempt: boolean
  readonly leaseEpoch: number
  readonly workerId: string
  readonly deadlineAt: number | null
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly traceId: string | null
}

/** Why the signal of a task fires; the thread makes a HoldfastError of it. */
export interface AbortReason {
  readonly code: ErrorCode
  readonly message: string
}

/** One attempt. A tuple, not an object: cloning names costs as much as cloning values. */
export type RunMessage = readonly [
  task: number,
  module: number,
  input: unknown,
  abort: AbortReason | null,
  jobId: JobId,
  type: string,
  lane: string,
  attempt: number,
  maxAttempts: number,
  isLastAttempt: boolean,
  leaseEpoch: number,
  workerId: string,
  deadlineAt: number | null,
  metadata: Readonly<Record<string, unknown>> | null,
  traceId: string | null,
  /** The thread says when the handler begins: a timeout must not count the start of a thread or the load of a module. */
  reportsStart: boolean,
  /** The place in `LOG_LEVELS` of the lowest level that anybody wants: lines below it stay where they are. */
  logFrom: number,
  /** By the clock that all threads and processes of a machine share: from then on the handler is not called. */
  startBefore: number | null,
]

/** A task that was given up before it could be sent. */
export type VoidMessage = readonly []

/** Import the module of this position and run its `setup()`, nothing more. */
export type LoadMessage = number

/** What is wrong with a module, or null when it is loaded. */
export type LoadReply = string | null

/** How many service messages the attempt sent, so that none is overtaken by its outcome; then the outcome. */
export type RunReply =
  | readonly [sent: number, output: unknown]
  | readonly [sent: number, output: undefined, failure: Failure]

/** The first message of a thread, through its `parentPort`. */
export interface PortMessage {
  readonly type: 'holdfast.port'
  readonly port: MessagePort
  /** One number in shared memory: the main thread adds the log lines it took. */
  readonly taken: Int32Array
}

/** Main to a handler process, before and beside `MainMessage`: its modules first, then one run at a time. */
export type ProcessMessage =
  | { readonly type: 'modules'; readonly modules: readonly string[] }
  | { readonly type: 'load'; readonly position: LoadMessage }
  | { readonly type: 'run'; readonly message: RunMessage }
  | MainMessage

/**
 * A handler process to main, beside `ThreadMessage`. `taken` is sent for each run before anything of it begins: without it, it has not
 * begun. `dying` tells of an exception that nobody caught, before it ends the process.
 */
export type FromProcess =
  | { readonly type: 'loaded'; readonly problem: LoadReply }
  | { readonly type: 'taken'; readonly task: number }
  | { readonly type: 'reply'; readonly task: number; readonly reply: RunReply }
  | { readonly type: 'dying'; readonly failure: Failure }

/** What a contract sets for jobs enqueued in a thread. Its schemas and a retry function stay in the thread. */
export interface ThreadContract {
  readonly queue: string
  readonly retry: RetryPolicy | null
  readonly timeoutMs: number | null
  readonly maxCrashes: number
  readonly keepResultMs: number | null
}

/**
 * The `options` that `ThreadServices.enqueue` is given. `contract` is null when the handler named the job by its type;
 * else the input has passed the contract's schema in the thread. `options` is what the handler wrote, unchecked.
 */
export interface ThreadEnqueue {
  readonly contract: ThreadContract | null
  readonly options: EnqueueOptions | null
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'

/**
 * Thread to main. `task` says for which attempt, `call` which answer belongs to it. `unbegun`: it was aborted while its module
 * loads, so the handler will not be called; its outcome comes when the module is there.
 */
export type ThreadMessage =
  | { readonly type: 'started'; readonly task: number }
  | { readonly type: 'unbegun'; readonly task: number }
  | { readonly type: 'progress'; readonly task: number; readonly call: number; readonly value: unknown }
  | {
      readonly type: 'enqueue'
      readonly task: number
      readonly call: number
      readonly jobType: string
      readonly input: unknown
      readonly options: ThreadEnqueue
    }
  | {
      readonly type: 'log'
      readonly task: number
      readonly level: LogLevel
      readonly fields: object
      readonly message: string | undefined
    }

/** A HoldfastError as data. */
export interface ErrorMessage {
  readonly code: ErrorCode
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** Main to thread. `forget` ends an `abort` that was sent to every thread because its own was not known. */
export type MainMessage =
  | { readonly type: 'abort'; readonly task: number; readonly reason: AbortReason }
  | { readonly type: 'forget'; readonly task: number }
  | { readonly type: 'resolve'; readonly call: number; readonly value: unknown }
  | { readonly type: 'reject'; readonly call: number; readonly error: ErrorMessage }
