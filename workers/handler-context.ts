/**
 * The `ctx` of a handler in a thread: the same members as inline, answered by the main thread over the thread's port.
 * Everything is made on first use, so that a handler that touches nothing pays for nothing. Once its attempt has ended a
 * context is dead: calls reject with LEASE_LOST, logs are dropped. Made by `handler-worker.ts`, once an attempt.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { EnqueueOptions, JobContext, JobContract, JobLogger } from '../src/contract.ts'
import { HoldfastError } from '../src/errors.ts'
import type { RetryPolicy } from '../src/job.ts'
import { loggedLine } from '../src/log-fields.ts'
import { sendable } from './clonable.ts'
import type { LogLevel, RunMessage, ThreadContract, ThreadEnqueue } from './handler-protocol.ts'
import type { MainLink, TaskScope } from './main-link.ts'
import { ThreadProgress } from './thread-progress.ts'

type Enqueued = Awaited<ReturnType<JobContext['enqueue']>>

const SILENT = (): void => undefined

/** A log line must never fail its handler, nor run code of what it says. */
function createLogger(scope: TaskScope, link: MainLink, from: number): JobLogger {
  const at = (level: LogLevel, index: number): JobLogger['info'] => {
    if (index < from) return SILENT
    return (first, second) => {
      if (scope.isEnded) return
      try {
        link.log(scope, { level, ...loggedLine(first, second) })
      } catch {
        // Such as a value too deep for the stack that is left: it costs the line.
      }
    }
  }
  return {
    trace: at('trace', 0),
    debug: at('debug', 1),
    info: at('info', 2),
    warn: at('warn', 3),
    error: at('error', 4),
    fatal: at('fatal', 5),
  }
}

function plainContract(contract: JobContract): ThreadContract {
  const { queue, timeoutMs, maxCrashes, keepResultMs } = contract
  const retry: RetryPolicy | null = typeof contract.retry === 'function' ? null : contract.retry
  return { queue, timeoutMs, maxCrashes, keepResultMs, retry }
}

type Validation = Awaited<ReturnType<StandardSchemaV1['~standard']['validate']>>

function requireValid(contract: JobContract, result: Validation): void {
  if (result.issues === undefined) return
  const issues = result.issues.map(({ message, path }) => ({
    message,
    path: (path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.'),
  }))
  const first = issues[0]
  const place = first === undefined || first.path === '' ? 'input' : `input.${first.path}`
  throw new HoldfastError('VALIDATION_FAILED', `${contract.type}: ${place}: ${first?.message ?? 'refused'}`, {
    details: { type: contract.type, issues },
  })
}

async function enqueue(scope: TaskScope, link: MainLink, call: EnqueueCall): Promise<Enqueued> {
  const contract = typeof call.job === 'string' ? null : call.job
  const jobType = typeof call.job === 'string' ? call.job : call.job.type
  const result = contract?.input?.['~standard'].validate(call.input)
  // Awaited only when it must be: a handler may enqueue with its last statement and return, which ends the context.
  if (contract !== null && result !== undefined) {
    requireValid(contract, result instanceof Promise ? await result : result)
  }
  const options: ThreadEnqueue = {
    contract: contract === null ? null : plainContract(contract),
    options: (sendable(call.options, 'options') as EnqueueOptions | undefined) ?? null,
  }
  const input = sendable(call.input, 'input')
  const { task } = scope
  const reply = link.call(scope, (id) => ({ type: 'enqueue', task, call: id, jobType, input, options }))
  return (await reply) as Enqueued
}

interface EnqueueCall {
  readonly job: JobContract | string
  readonly input: unknown
  readonly options: EnqueueOptions | undefined
}

/**
 * Members are the context's own, so that they work destructured and spread; `signal` alone is a getter of the class, which
 * a spread leaves out: to make one each time costs 4.7 µs, an own accessor 1.4 µs (2 cores, November 2026).
 */
class ThreadContext implements JobContext<unknown> {
  readonly jobId: string
  readonly type: string
  readonly lane: string
  readonly attempt: number
  readonly maxAttempts: number
  readonly isLastAttempt: boolean
  readonly leaseEpoch: number
  readonly workerId: string
  readonly deadlineAt: Date | null
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly traceId: string | null
  readonly context: unknown
  readonly log: JobLogger
  readonly progress: JobContext['progress']
  readonly enqueue: JobContext['enqueue']
  readonly #scope: TaskScope

  constructor(scope: TaskScope, link: MainLink, setup: ContextSetup) {
    const { message } = setup
    this.#scope = scope
    this.jobId = message[4]
    this.type = message[5]
    this.lane = message[6]
    this.attempt = message[7]
    this.maxAttempts = message[8]
    this.isLastAttempt = message[9]
    this.leaseEpoch = message[10]
    this.workerId = message[11]
    this.deadlineAt = message[12] === null ? null : new Date(message[12])
    this.metadata = message[13]
    this.traceId = message[14]
    this.context = setup.context
    this.log = createLogger(scope, link, message[16])
    let progress: ThreadProgress | null = null
    this.progress = (value) => {
      progress ??= new ThreadProgress(scope, link)
      return progress.report(value)
    }
    this.enqueue = (job, input, options) => {
      const promise = enqueue(scope, link, { job: job as JobContract | string, input, options })
      promise.catch(() => undefined)
      return promise
    }
  }

  get signal(): AbortSignal {
    return this.#scope.signal
  }
}

export interface ContextSetup {
  readonly message: RunMessage
  /** What the module's `setup()` returned. */
  readonly context: unknown
}

export function createContext(scope: TaskScope, link: MainLink, setup: ContextSetup): JobContext<unknown> {
  return new ThreadContext(scope, link, setup)
}
