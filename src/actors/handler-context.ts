/**
 * The `ctx` of an inline handler. Everything costly (the signal, the logger) is made when it is first touched, so that a
 * handler which needs none of it pays for none of it.
 */
import { encodeValue } from '../backends/codec.ts'
import type { ClaimedJob } from '../backends/protocol/index.ts'
import type { EnqueueOptions, JobContext, JobContract, JobLogger } from '../contract.ts'
import { HoldfastError } from '../errors.ts'
import type { JobId } from '../job.ts'
import { type AttemptEnvironment, expectedAttempts, storedFrom } from './attempt.ts'
import type { AttemptNotes } from './attempt-notes.ts'
import { createJobLog } from './job-log.ts'
import { lineText } from './log-line.ts'

/** What the context asks of the attempt it belongs to. */
export interface AttemptOwner {
  readonly job: ClaimedJob
  readonly env: AttemptEnvironment
  readonly isOver: boolean
  readonly notes: AttemptNotes
  /** Why nothing more can be written for it; null while the lease is held as far as anyone knows. */
  readonly lostLease: HoldfastError | null
  signal(): AbortSignal
}

export class HandlerContext implements JobContext<unknown> {
  readonly #owner: AttemptOwner
  #log: JobLogger | null = null

  constructor(owner: AttemptOwner) {
    this.#owner = owner
  }

  get jobId(): JobId {
    return this.#owner.job.id
  }
  get type(): string {
    return this.#owner.job.type
  }
  get lane(): string {
    return this.#owner.job.lane
  }
  get attempt(): number {
    return this.#owner.job.attempt
  }
  get maxAttempts(): number {
    return expectedAttempts(this.#owner.env, this.#owner.job)
  }
  get isLastAttempt(): boolean {
    return this.attempt >= this.maxAttempts
  }
  get leaseEpoch(): number {
    return leaseEpochOf(this.#owner.job)
  }
  get workerId(): string {
    return this.#owner.env.workerId
  }
  get signal(): AbortSignal {
    return this.#owner.signal()
  }
  get deadlineAt(): Date | null {
    const { deadlineAt } = this.#owner.job
    return deadlineAt === null ? null : new Date(deadlineAt)
  }
  get metadata(): Readonly<Record<string, unknown>> | null {
    return this.#owner.job.metadata
  }
  get traceId(): string | null {
    return this.#owner.job.traceId
  }
  get context(): unknown {
    return this.#owner.env.context
  }
  get log(): JobLogger {
    this.#log ??= this.#createLog()
    return this.#log
  }

  #createLog(): JobLogger {
    const { env, job } = this.#owner
    const child = env.logger.child({
      job_id: job.id,
      type: job.type,
      attempt: job.attempt,
      worker_id: env.workerId,
      trace_id: job.traceId,
    })
    return createJobLog(child, storedFrom(env), (level, fields, message) => {
      // Not made for an attempt that is over: it could not be stored.
      if (!this.#owner.isOver)
        this.#owner.notes.log(lineText({ at: env.clock.now(), level, attempt: job.attempt, fields, message }))
    })
  }

  // Bound, so that `const { progress } = ctx` works, as it does in a thread.
  get progress(): (value: unknown) => Promise<void> {
    return (value) => this.#report(value)
  }

  /** Makes no promise of its own: a handler may report a hundred thousand times before anything else can run. */
  #report(value: unknown): Promise<void> {
    const { env } = this.#owner
    try {
      this.#requireLease()
      return this.#owner.notes.report(encodeValue(value, 'progress', env.payloadBytesMax))
    } catch (error) {
      return rejected(error)
    }
  }

  get enqueue(): JobContext<unknown>['enqueue'] {
    return (contract, input, options: EnqueueOptions = {}) =>
      this.#withLease(({ env }) => env.enqueue(contract as JobContract | string, input, options))
  }

  #requireLease(): void {
    const { job, isOver, lostLease } = this.#owner
    if (lostLease !== null) throw lostLease
    if (isOver) throw leaseLost(job, 'this attempt is over')
  }

  /** A handler may leave the promise alone, as in a thread: its rejection must not end the process. */
  #withLease<T>(call: (owner: AttemptOwner) => Promise<T>): Promise<T> {
    const promise = this.#settled(call)
    promise.catch(() => undefined)
    return promise
  }

  /** What throws at once rejects as well. */
  async #settled<T>(call: (owner: AttemptOwner) => Promise<T>): Promise<T> {
    this.#requireLease()
    return await call(this.#owner)
  }
}

function rejected(error: unknown): Promise<never> {
  const promise = Promise.reject(error)
  promise.catch(() => undefined)
  return promise
}

export function leaseEpochOf(job: ClaimedJob): number {
  return Number(job.token.slice(0, job.token.indexOf(':')))
}

export function leaseLost(job: ClaimedJob, why: string): HoldfastError {
  return new HoldfastError('LEASE_LOST', `the lease of ${job.id} is gone: ${why}`, {
    details: { jobId: job.id, attempt: job.attempt },
  })
}
