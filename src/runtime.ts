/**
 * One worker: the tree of actors that claims, runs and settles jobs, made from options and torn down in order.
 * `start` resolves only when every part is ready to take jobs.
 */
import type { AttemptEnvironment } from './actors/attempt.ts'
import { Dispatcher } from './actors/dispatcher.ts'
import type { JobActor } from './actors/job-actor.ts'
import { LeaseKeeper } from './actors/lease-keeper.ts'
import { Notifier } from './actors/notifier.ts'
import { PoolActor } from './actors/pool-actor.ts'
import { type Reaped, Reaper } from './actors/reaper.ts'
import { Supervisor } from './actors/supervisor.ts'
import type { Ending } from './actors/turn-queue.ts'
import type { Settlement, Verdict } from './backends/protocol/index.ts'
import { delay, type TimerHandle } from './clock.ts'
import { DEFAULTS } from './config.ts'
import type { ThreadHandler } from './contract.ts'
import type { Engine, WorkerSettings } from './engine.ts'
import { HoldfastError } from './errors.ts'
import { toFailure } from './failure.ts'
import type { JobId, JobState } from './job.ts'
import { type JobEventFields, logAttempt } from './telemetry.ts'
import { WorkerListeners } from './worker-events.ts'

const EVENT_OF = {
  complete: 'complete',
  retry: 'retry',
  dead: 'die',
  cancel: 'cancel',
  release: 'release',
  requeue: 'expire',
} as const

export class Runtime {
  readonly events = new WorkerListeners((event, error) => {
    this.engine.logger.error({ event, err: toFailure(error) }, 'a listener of the worker failed')
  })
  private readonly engine: Engine
  private readonly settings: WorkerSettings
  private readonly supervisor: Supervisor
  private readonly dispatcher: Dispatcher
  readonly keeper: LeaseKeeper
  private readonly parts: readonly Parameters<Supervisor['start']>[0][]
  private readonly pool: PoolActor | null
  private stopping: Promise<void> | null = null
  private unlisten: () => void = () => {}
  private fatalError: HoldfastError | null = null
  /** One for each call of `stop`: the earliest ends the wait for handlers. */
  private readonly patience: TimerHandle[] = []
  private loosePatience: () => void = () => {}

  constructor(engine: Engine, settings: WorkerSettings) {
    this.engine = engine
    this.settings = settings
    const { backend, clock, timers, random, logger, warn } = engine
    const { leaseMs, lanes } = settings
    this.supervisor = new Supervisor({ clock, logger, onEscalate: (error) => this.escalated(error) })
    const modules = [...settings.handlers.values()].filter(
      (handler): handler is ThreadHandler => handler.kind === 'thread',
    )
    this.pool =
      modules.length === 0
        ? null
        : new PoolActor({
            threads: settings.concurrency,
            timers,
            modules,
            onIdleCrash: (error) => logger.warn({ err: error }, 'a handler thread died with no attempt in it'),
          })
    const keeper = new LeaseKeeper({
      backend,
      clock,
      timers,
      warn,
      terms: { leaseMs, maxBlockedMs: settings.maxBlockedMs },
      onBlocked: (blockedMs) => this.blocked(blockedMs),
    })
    const notifier = new Notifier(backend.backend, lanes, () => this.dispatcher.wake())
    this.dispatcher = new Dispatcher({
      backend,
      env: this.environment(),
      keeper,
      wakeUps: notifier,
      lanes,
      concurrency: settings.concurrency,
      leaseMs,
      prefetch: settings.prefetch,
      pollMs: settings.pollMs,
      onSettled: (ending, verdict) => this.settled(ending, verdict),
      onLost: (actor) => this.lost(actor),
      onDeadlined: (ids) => this.deadlined(ids),
      onError: (error) => this.failed(error),
    })
    const reaper = new Reaper({
      backend,
      timers,
      random,
      warn,
      retention: engine.retention,
      reapMs: settings.reapMs,
      afterGap: () => this.keeper.afterGap(),
      onReaped: (reaped) => this.reaped(reaped),
    })
    this.keeper = keeper
    this.parts = [keeper, reaper, notifier, this.dispatcher]
  }

  private environment(): AttemptEnvironment {
    const { engine, settings } = this
    return {
      clock: engine.clock,
      timers: engine.timers,
      random: engine.random,
      logger: engine.logger,
      workerId: settings.id,
      handlers: settings.handlers,
      pool: this.pool,
      killGraceMs: settings.killGraceMs,
      payloadBytesMax: engine.payloadBytesMax,
      retention: engine.retention,
      defaultRetry: settings.retry,
      queueRetry: settings.queueRetry,
      context: settings.context,
      inspect: engine.inspect,
      progress: engine.progress,
      enqueue: engine.enqueue,
    }
  }

  async start(): Promise<void> {
    this.unlisten = this.engine.backend.backend.onChange(() => this.keeper.renewNow())
    try {
      await this.pool?.start()
      for (const part of this.parts) {
        this.requireRunning()
        await this.supervisor.start(part)
      }
      this.requireRunning()
    } catch (error) {
      this.unlisten()
      await this.supervisor.stop()
      await this.pool?.stop()
      this.requireRunning()
      throw error
    }
  }

  /** The client may be closed while its worker starts. */
  private requireRunning(): void {
    if (this.stopping !== null) throw new HoldfastError('CLOSED', 'the worker was stopped before it had started')
  }

  get concurrency(): number {
    return this.dispatcher.concurrency
  }

  get activeJobs(): number {
    return this.dispatcher.active
  }

  get startedCount(): number {
    return this.dispatcher.startedCount
  }

  /** Resolves when nothing that could run now is left in the lanes, or the worker stops; true in the first case. */
  async whenIdle(): Promise<boolean> {
    await this.dispatcher.until((dispatcher) => dispatcher.isIdle || this.stopping !== null)
    return this.stopping === null
  }

  cancel(id: JobId): void {
    this.keeper.cancel(id)
  }

  /** Changes the number of slots; resolves when no more than that many handlers run, or than a later change allows. */
  async resize(slots: number): Promise<void> {
    this.dispatcher.resize(slots)
    await this.dispatcher.until(({ active, concurrency }) => active <= Math.max(slots, concurrency))
  }

  /**
   * Claims nothing more, lets handlers end until the deadline, aborts the rest and gives it back, then closes. A store that does
   * not answer delays the end by `stopSilenceMs`; what it was not told is recovered when the leases run out. A worker that stops
   * already is hurried by an earlier deadline.
   */
  stop(deadlineMs: number = DEFAULTS.stopDeadlineMs): Promise<void> {
    const { timers } = this.engine
    const isOver = new Promise<void>((resolve) => {
      this.loosePatience = this.stopping === null ? resolve : this.loosePatience
    })
    if (this.stopping === null || this.patience.length > 0) {
      this.patience.push(timers.set(() => this.loosePatience(), deadlineMs))
    }
    this.stopping ??= this.shutDown(isOver)
    return this.stopping
  }

  private async shutDown(patienceIsOver: Promise<void>): Promise<void> {
    const { timers } = this.engine
    const { dispatcher } = this
    dispatcher.drain()
    const isQuiet = dispatcher.until((each) => each.isQuiet)
    await Promise.race([isQuiet, patienceIsOver])
    for (const timer of this.patience.splice(0)) timers.clear(timer)
    if (!dispatcher.isQuiet) {
      this.keeper.abortAll()
      await this.atMost(
        dispatcher.until(({ active }) => active === 0),
        this.settings.killGraceMs + DEFAULTS.stopSilenceMs,
      )
      await this.tellTheStore()
    }
    this.unlisten()
    await this.supervisor.stop()
    await this.pool?.stop()
    await delay(0, timers)
  }

  /** Waits until everything is settled, as long as the store goes on answering. */
  private async tellTheStore(): Promise<void> {
    const { dispatcher } = this
    for (let before = -1; !dispatcher.isQuiet && dispatcher.answeredCount > before; ) {
      before = dispatcher.answeredCount
      await this.atMost(
        dispatcher.until(({ isQuiet, answeredCount }) => isQuiet || answeredCount > before),
        DEFAULTS.stopSilenceMs,
      )
    }
  }

  private async atMost(work: Promise<void>, ms: number): Promise<void> {
    const { timers } = this.engine
    let timer: unknown = null
    const timeout = new Promise<void>((resolve) => {
      timer = timers.set(resolve, ms)
    })
    await Promise.race([work, timeout])
    timers.clear(timer)
  }

  private settled({ actor, settlement }: Ending, verdict: Verdict): void {
    if (verdict === 'leaseLost' || verdict === 'gone') {
      this.lost(actor)
      return
    }
    const state = actor.lifecycle.send(verdict === 'cancelled' ? 'cancel' : EVENT_OF[settlement.kind])
    if (this.isHeard(settlement.kind, state)) {
      const fields = this.describe(actor, settlement, state)
      logAttempt(this.engine.logger, fields)
      this.emit(settlement.kind, fields)
    }
    if (state === 'completed' || state === 'dlq' || state === 'cancelled') this.engine.onEnded(actor.job.id)
  }

  /** Nearly every attempt succeeds and nobody listens: then nothing is made for it. */
  private isHeard(kind: Settlement['kind'], state: JobState): boolean {
    if (kind !== 'complete' || state !== 'completed') return true
    return this.events.has('completed') || this.engine.logger.isLevelEnabled('debug')
  }

  private describe(actor: JobActor, settlement: Settlement, state: JobState): JobEventFields {
    const { job } = actor
    return {
      jobId: job.id,
      type: job.type,
      lane: job.lane,
      attempt: job.attempt,
      workerId: this.settings.id,
      durationMs: settlement.durationMs,
      state,
      traceId: job.traceId,
      failure: 'failure' in settlement ? settlement.failure : null,
      retryInMs: settlement.kind === 'retry' && state === 'retry_wait' ? settlement.delayMs : null,
      dlqCode: settlement.kind === 'dead' ? settlement.code : null,
    }
  }

  private emit(kind: Settlement['kind'], fields: JobEventFields): void {
    if (kind === 'retry' || kind === 'dead') this.events.emit('failed', fields)
    switch (fields.state) {
      case 'completed':
        this.events.emit('completed', fields)
        return
      case 'retry_wait':
        this.events.emit('retrying', fields)
        return
      case 'dlq':
        this.events.emit('dead', fields)
        return
      case 'cancelled':
        this.events.emit('cancelled', fields)
        return
      default:
        // A released job goes back to the queue without a word.
        return
    }
  }

  private reaped({ lease, settlement }: Reaped): void {
    if (settlement.kind === 'requeue') this.dispatcher.wake()
    else this.engine.onEnded(lease.id)
    this.engine.logger.warn(
      { job_id: lease.id, owner: lease.workerId, attempt: lease.attempt, outcome: settlement.kind },
      'a lease ran out',
    )
  }

  private deadlined(ids: readonly JobId[]): void {
    for (const id of ids) {
      this.engine.logger.warn(
        { job_id: id, dlq_code: 'DEADLINE_EXCEEDED' },
        'a job passed its deadline before it could start',
      )
      this.engine.onEnded(id)
    }
  }

  private lost({ job }: JobActor): void {
    this.engine.logger.warn({ job_id: job.id, attempt: job.attempt }, 'a lease was lost; the outcome was not stored')
    this.events.emit('lost', { jobId: job.id, type: job.type, attempt: job.attempt, workerId: this.settings.id })
  }

  private blocked(blockedMs: number): void {
    this.engine.logger.warn(
      { blocked_ms: Math.round(blockedMs), worker_id: this.settings.id },
      'the main loop stood still',
    )
    this.events.emit('blocked', { blockedMs, workerId: this.settings.id })
  }

  private failed(error: HoldfastError): void {
    this.engine.warn({ code: error.code, err: error.message }, 'the store did not answer a turn')
    this.events.emit('error', error)
  }

  /** Why the worker has given up; null while it has not. */
  get fatal(): HoldfastError | null {
    return this.fatalError
  }

  private escalated(cause: unknown): void {
    this.fatalError = new HoldfastError('INTERNAL', 'an actor failed too often; the worker has stopped', { cause })
    this.engine.logger.warn({ code: this.fatalError.code, err: this.fatalError.message }, 'the worker has given up')
    this.events.emit('error', this.fatalError)
    void this.stop(0)
  }
}
