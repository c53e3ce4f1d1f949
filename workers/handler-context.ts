/**
 * The `ctx` of a handler in a thread: the same members as inline, answered by the main thread over the thread's port.
 * Everything is made on first use, so that a handler that touches nothing pays for nothing. Once its attempt has ended a
 * context is dead: calls reject with LEASE_LOST, logs are dropped. Made by `handler-worker.ts`, once an attempt.
 */
import type { EnqueueOptions, JobContext, JobContract, JobLogger } from '../src/contract.ts'
import { HoldfastError } from '../src/errors.ts'
import { toFailure } from '../src/failure.ts'
import type { RetryPolicy } from '../src/job.ts'
import { cloneProblem } from './clonable.ts'
import type { LogLevel, RunMessage, ThreadContract, ThreadEnqueue } from './handler-protocol.ts'
import type { MainLink, TaskScope } from './main-link.ts'

type Enqueued = Awaited<ReturnType<JobContext['enqueue']>>

/** A rejection that nobody has to await: a handler may drop the promise without ending its thread. */
function rejected(error: HoldfastError): Promise<never> {
  const promise = Promise.reject(error)
  promise.catch(() => undefined)
  return promise
}

function unsendable(problem: string): HoldfastError {
  return new HoldfastError('INVALID_PAYLOAD', problem, { details: { path: problem.slice(0, problem.indexOf(':')) } })
}

/** A log line must never fail its handler. An Error goes as a failure, which keeps the code and causes that a clone drops. */
function loggable(value: unknown): unknown {
  if (value instanceof Error) return toFailure(value)
  if (cloneProblem(value, 'fields') === null) return value
  try {
    return JSON.parse(JSON.stringify(value))
  } catch {
    return '[cannot leave the thread]'
  }
}

function createLogger(scope: TaskScope, link: MainLink): JobLogger {
  const at =
    (level: LogLevel) =>
    (fields: object | string, message?: string): void => {
      if (typeof fields === 'string') link.log(scope, level, { fields: {}, message: fields })
      else if (fields instanceof Error)
        link.log(scope, level, { fields: { err: toFailure(fields) }, message: message ?? fields.message })
      else {
        const sendable = Object.entries(fields).map(([key, value]) => [key, loggable(value)])
        link.log(scope, level, { fields: Object.fromEntries(sendable), message })
      }
    }
  return {
    trace: at('trace'),
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    fatal: at('fatal'),
  }
}

function plainContract(contract: JobContract): ThreadContract {
  const { queue, timeoutMs, maxCrashes, keepResultMs } = contract
  const retry: RetryPolicy | null = typeof contract.retry === 'function' ? null : contract.retry
  return { queue, timeoutMs, maxCrashes, keepResultMs, retry }
}

async function validate(contract: JobContract, input: unknown): Promise<void> {
  const result = await contract.input?.['~standard'].validate(input)
  if (result?.issues === undefined) return
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
  if (contract !== null) await validate(contract, call.input)
  const options: ThreadEnqueue = {
    contract: contract === null ? null : plainContract(contract),
    options: call.options ?? null,
  }
  const problem = cloneProblem(call.input, 'input') ?? cloneProblem(options.options, 'options')
  if (problem !== null) throw unsendable(problem)
  const { task } = scope
  const reply = link.call(scope, (id) => ({ type: 'enqueue', task, call: id, jobType, input: call.input, options }))
  return (await reply) as Enqueued
}

interface EnqueueCall {
  readonly job: JobContract | string
  readonly input: unknown
  readonly options: EnqueueOptions | undefined
}

/** `moduleContext` is what the module's `setup()` returned. Every member works destructured and spread. */
export function createContext(
  scope: TaskScope,
  link: MainLink,
  setup: { message: RunMessage; context: unknown },
): JobContext<unknown> {
  const { message, context } = setup
  let log: JobLogger | undefined
  return {
    jobId: message[4],
    type: message[5],
    lane: message[6],
    attempt: message[7],
    maxAttempts: message[8],
    isLastAttempt: message[9],
    leaseEpoch: message[10],
    workerId: message[11],
    deadlineAt: message[12] === null ? null : new Date(message[12]),
    metadata: message[13],
    traceId: message[14],
    context,
    get signal() {
      return scope.signal
    },
    get log() {
      log ??= createLogger(scope, link)
      return log
    },
    progress(value: unknown): Promise<void> {
      const problem = cloneProblem(value, 'progress')
      if (problem !== null) return rejected(unsendable(problem))
      return link.call(scope, (call) => ({ type: 'progress', task: scope.task, call, value })) as Promise<void>
    },
    enqueue(job: unknown, input: unknown, options?: EnqueueOptions): Promise<Enqueued> {
      const promise = enqueue(scope, link, { job: job as JobContract | string, input, options })
      promise.catch(() => undefined)
      return promise
    },
  }
}
