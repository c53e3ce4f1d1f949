/**
 * One lease: runs the handler once, inline or in a thread, and turns whatever happens into one settlement.
 * States: `held` (granted), `checking` (its input is), `begun` (the handler was called, or is on its way to a thread), `aborting` (its signal
 * fired, the grace is running), `over` (the settlement is decided; what the handler still does changes nothing). What is aborted before
 * its handler begins is over at once, and no handler begins after the attempt's time. It never throws and calls `onOver` exactly once.
 */
import { decodeValue } from '../backends/codec.ts'
import type { ClaimedJob, Settlement } from '../backends/protocol/index.ts'
import type { TimerHandle } from '../clock.ts'
import type { Handler, InlineHandler, ThreadHandler } from '../contract.ts'
import { HoldfastError } from '../errors.ts'
import type { Failure } from '../job.ts'
import type { Member } from '../roster.ts'
import { limitOf } from './abort-reason.ts'
import { type AttemptEnvironment, settleFailure, settleRelease, settleSuccess } from './attempt.ts'
import type { AttemptNotes } from './attempt-notes.ts'
import { check, failureOf, isThenable, type Schema } from './foreign-value.ts'
import { type AttemptOwner, HandlerContext } from './handler-context.ts'
import { createLifecycle, type Lifecycle } from './lifecycle.ts'
import type { ThreadRun } from './thread-run.ts'
import { AttemptServices } from './thread-services.ts'
import { threadTask } from './thread-task.ts'

/** What a thread may take to start and to load its module before the timeout of an attempt counts anyway. */
const THREAD_START_MS = 30_000

/** Called once, with what the store is to be told; null when the lease is lost and nothing may be. */
export type OverListener = (actor: JobActor, settlement: Settlement | null) => void

export interface JobHooks {
  readonly claimedAt: number
  readonly onOver: OverListener
  /** Told the monotonic time at which the attempt's own time is over, grace included; asked before a handler begins late. */
  readonly keeper: {
    limit(actor: JobActor, untilMs: number): void
    afterGap(): Promise<void> | null
  }
}

export class JobActor implements AttemptOwner, Member {
  readonly job: ClaimedJob
  readonly env: AttemptEnvironment
  private startedAt: number
  private readonly claimedAt: number
  private phase: 'held' | 'checking' | 'begun' = 'held'
  readonly lifecycle: Lifecycle
  /** Monotonic time before the request that last granted or renewed the lease was sent; kept by the lease keeper. */
  leaseConfirmedAt: number
  /** Monotonic time beyond which nobody renews, kept by the lease keeper; null: none, and no number is made for most attempts. */
  renewUntil: number | null = null
  /** Where the lease keeper has noted the lease; -1: nowhere. */
  boardSlot = -1
  place = -1
  isOver = false
  private readonly hooks: JobHooks
  private abortReason: HoldfastError | null = null
  private controller: AbortController | null = null
  private timer: TimerHandle = null
  private limit: { readonly reason: HoldfastError; readonly at: number } | null = null
  private thread: ThreadRun | null = null
  private ranMs: number | null = null
  /** Settles when an inline handler that awaits has ended. */
  private pending: unknown = null
  private said: AttemptNotes | null = null

  constructor(job: ClaimedJob, env: AttemptEnvironment, hooks: JobHooks) {
    this.job = job
    this.env = env
    this.hooks = hooks
    this.startedAt = hooks.claimedAt
    this.leaseConfirmedAt = hooks.claimedAt
    this.claimedAt = hooks.claimedAt
    this.lifecycle = createLifecycle(job.id, 'queued', env.inspect)
    this.lifecycle.send('claim')
  }

  get isInThread(): boolean {
    return this.thread !== null
  }

  get lostLease(): HoldfastError | null {
    return this.abortReason?.code === 'LEASE_LOST' ? this.abortReason : null
  }

  /** Made when the handler says something. */
  get notes(): AttemptNotes {
    this.said ??= this.env.notes.open(this.job.id, this.job.token, (error) => this.abort(error))
    return this.said
  }

  /** How long the handler has run so far, or ran. */
  get durationMs(): number {
    return this.ranMs ?? this.elapsed()
  }

  start(startedAt: number): void {
    this.phase = 'checking'
    this.startedAt = startedAt
    if (this.abortReason !== null) {
      this.failed(this.abortReason)
      return
    }
    const handler = this.env.handlers.get(this.job.type)
    if (handler === undefined) {
      const message = `no handler for the job type '${this.job.type}' in ${this.env.workerId}`
      this.fail({ code: 'UNKNOWN_JOB_TYPE', message })
      return
    }
    this.armTimeout(handler.kind === 'thread' ? THREAD_START_MS : 0)
    if (this.isOver) return
    let input: unknown
    try {
      input = decodeValue(this.job.payload)
    } catch (error) {
      this.fail({ ...failureOf(error), code: 'BAD_PAYLOAD' })
      return
    }
    const { input: schema } = handler.contract
    if (schema === null) this.run(handler, input)
    else this.validate(schema, handler, input)
  }

  signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController()
      if (this.abortReason !== null) this.controller.abort(this.abortReason)
    }
    return this.controller.signal
  }

  /** Fires the signal; what does not end within the grace is given up (inline) or terminated (thread). */
  abort(reason: HoldfastError): void {
    if (this.isOver || (this.abortReason !== null && reason.code !== 'LEASE_LOST')) return
    this.abortReason = reason
    // A job that is held without having been started ends the moment it is.
    if (this.phase === 'held') return
    if (this.phase === 'checking') {
      this.failed(reason)
      return
    }
    this.controller?.abort(reason)
    this.thread?.abort({ code: reason.code, message: reason.message })
    this.env.timers.clear(this.timer)
    this.timer = this.env.timers.set(() => this.graceIsOver(reason), this.env.killGraceMs)
  }

  /** Its thread will not call the handler: nobody waits until the module is loaded, which has its grace all the same. */
  private unbegun(): void {
    const { thread, env } = this
    if (thread === null || this.isOver || this.abortReason === null) return
    const grace = env.timers.set(() => thread.kill(), env.killGraceMs, true)
    void thread.outcome.then(() => env.timers.clear(grace))
    this.failed(this.abortReason)
  }

  private graceIsOver(reason: HoldfastError): void {
    if (this.isOver) return
    if (this.thread === null) this.giveUp(reason)
    else this.thread.kill()
  }

  private giveUp(reason: HoldfastError): void {
    const { id: jobId, type, attempt } = this.job
    if (isThenable(this.pending)) this.env.lost.add({ jobId, type, attempt, where: 'inline' }, this.pending)
    this.failed(reason)
  }

  /** The timeout runs from the start of the handler; `startMs` is what its thread may take to get there. */
  private armTimeout(startMs: number): void {
    const limit = limitOf(this.job, startMs, () => this.env.clock.monotonic() - this.claimedAt)
    if (limit === null || this.isOver || this.abortReason !== null) return
    const { reason, waitMs } = limit
    this.env.timers.clear(this.timer)
    if (waitMs <= 0) {
      this.abortReason = reason
      this.failed(reason)
      return
    }
    const at = this.env.clock.monotonic() + waitMs
    this.limit = { reason, at }
    this.timer = this.env.timers.set(() => this.abort(reason), waitMs)
    this.hooks.keeper.limit(this, at + this.env.killGraceMs)
  }

  private validate(schema: Schema, handler: Handler<unknown>, input: unknown): void {
    check(schema, input).then(
      (checked) => {
        if (this.isOver) return
        if ('value' in checked) {
          // The loop may have stood still meanwhile.
          const renewal = this.hooks.keeper.afterGap()
          if (renewal === null) this.run(handler, checked.value)
          else void renewal.then(() => this.run(handler, checked.value))
        } else {
          const message = `the input does not satisfy the schema of '${this.job.type}': ${checked.problem}`
          this.fail({ code: 'BAD_PAYLOAD', message })
        }
      },
      (error: unknown) => this.fail({ ...failureOf(error), code: 'BAD_PAYLOAD' }),
    )
  }

  private run(handler: Handler<unknown>, input: unknown): void {
    if (this.isOver) return
    // Its timer may be late: what came before has taken the loop for itself.
    if (this.limit !== null && this.env.clock.monotonic() >= this.limit.at) {
      this.abort(this.limit.reason)
      return
    }
    this.phase = 'begun'
    if (handler.kind === 'thread') this.runInThread(handler, input)
    else this.runInline(handler, input)
  }

  private runInline(handler: InlineHandler<unknown>, input: unknown): void {
    try {
      const output = handler.run(input, new HandlerContext(this))
      if (isThenable(output)) {
        this.pending = output.then(
          (value) => this.succeeded(value),
          (error: unknown) => this.failed(error),
        )
      } else this.succeeded(output)
    } catch (error) {
      this.failed(error)
    }
  }

  private runInThread(handler: ThreadHandler, input: unknown): void {
    const { job, env } = this
    if (env.pool === null) {
      this.failed(new HoldfastError('INTERNAL', 'a thread handler without a pool'))
      return
    }
    const calls = {
      onStart: job.timeoutMs === null ? null : () => this.armTimeout(0),
      onUnbegun: () => this.unbegun(),
    }
    this.thread = env.pool.run(
      threadTask(handler, input, { job, env, claimedAt: this.claimedAt, calls }),
      new AttemptServices(this),
    )
    void this.thread.outcome.then((outcome) => {
      if (outcome.kind === 'succeeded') this.succeeded(outcome.output)
      else this.ended(outcome.failure)
    })
  }

  private succeeded(output: unknown): void {
    if (this.isOver) return
    const code = this.abortReason?.code
    if (code === 'TIMEOUT' || code === 'DEADLINE_EXCEEDED' || code === 'LEASE_LOST') {
      this.failed(this.abortReason)
      return
    }
    const schema = this.env.handlers.get(this.job.type)?.contract.output ?? null
    if (schema === null) {
      this.complete(output)
      return
    }
    check(schema, output).then(
      (checked) => {
        if ('value' in checked) this.complete(checked.value)
        else
          this.fail({
            code: 'BAD_OUTPUT',
            message: `the output does not satisfy the schema of '${this.job.type}': ${checked.problem}`,
          })
      },
      (error: unknown) => this.fail({ ...failureOf(error), code: 'BAD_OUTPUT' }),
    )
  }

  private complete(output: unknown): void {
    if (this.isOver) return
    let settlement: Settlement
    try {
      settlement = settleSuccess(this.env, this.job, { output, durationMs: this.elapsed() })
    } catch (error) {
      this.fail({ ...failureOf(error), code: 'BAD_OUTPUT' })
      return
    }
    this.end(settlement)
  }

  private failed(error: unknown): void {
    if (!this.isOver) this.ended(failureOf(error))
  }

  /** An attempt that did not succeed: why it was stopped, if it was, outweighs what the handler threw. */
  private ended(failure: Failure): void {
    if (this.isOver) return
    const reason = this.abortReason
    switch (reason?.code) {
      case undefined:
        this.fail(failure)
        return
      case 'LEASE_LOST':
        this.end(null)
        return
      case 'SHUTTING_DOWN':
        this.end(settleRelease(this.env, this.job, this.elapsed()))
        return
      default:
        this.fail({
          code: reason?.code === 'JOB_CANCELLED' ? 'CANCELLED' : (reason?.code ?? 'INTERNAL'),
          message: reason?.message ?? failure.message,
        })
    }
  }

  private fail(failure: Failure): void {
    if (this.isOver) return
    this.isOver = true
    this.ranMs = this.elapsed()
    this.env.timers.clear(this.timer)
    settleFailure(this.env, this.job, { failure, durationMs: this.ranMs }).then(
      (settlement) => this.hooks.onOver(this, this.withNote(settlement)),
      (error: unknown) => {
        this.env.logger.error({ err: error, job_id: this.job.id }, 'the outcome of an attempt could not be decided')
        this.hooks.onOver(this, null)
      },
    )
  }

  private end(settlement: Settlement | null): void {
    this.isOver = true
    this.ranMs = settlement?.durationMs ?? this.elapsed()
    this.env.timers.clear(this.timer)
    this.hooks.onOver(this, this.withNote(settlement))
  }

  /** The last words of the handler go with the end of its attempt. */
  private withNote(settlement: Settlement | null): Settlement | null {
    const note = this.said?.end() ?? null
    const isKept = settlement?.keepMs !== 0 || settlement.kind === 'retry' || settlement.kind === 'release'
    return settlement === null || note === null || !isKept ? settlement : { ...settlement, note }
  }

  private elapsed(): number {
    return this.env.clock.monotonic() - this.startedAt
  }
}
