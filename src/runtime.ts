/**
 * One worker: the tree of actors that claims, runs and settles jobs, made from options and torn down in order.
 * `start` resolves only when every part is ready to take jobs.
 */
import { cancellationOf } from './actors/abort-reason.ts'
import type { AttemptEnvironment } from './actors/attempt.ts'
import { CancelWatch } from './actors/cancel-watch.ts'
import { Dispatcher } from './actors/dispatcher.ts'
import type { JobActor } from './actors/job-actor.ts'
import { type Keeper, makeKeepers } from './actors/lease-keepers.ts'
import { eventOf } from './actors/lifecycle.ts'
import { type LostSlot, LostSlots } from './actors/lost-slots.ts'
import type { Membership } from './actors/membership.ts'
import { NoteWriter } from './actors/note-writer.ts'
import { Notifier } from './actors/notifier.ts'
import { PoolActor } from './actors/pool-actor.ts'
import { type Reaped, Reaper } from './actors/reaper.ts'
import { Shutdown } from './actors/shutdown.ts'
import { Supervisor } from './actors/supervisor.ts'
import { TRIAL_MS } from './actors/trial.ts'
import type { Ending } from './actors/turn-queue.ts'
import { announce } from './announcement.ts'
import { attemptFields } from './attempt-fields.ts'
import type { Settlement, Verdict } from './backends/protocol/index.ts'
import { delay } from './clock.ts'
import { DEFAULTS } from './config.ts'
import type { ThreadHandler } from './contract.ts'
import type { Engine, WorkerSettings } from './engine.ts'
import { HoldfastError } from './errors.ts'
import { toFailure } from './failure.ts'
import type { JobId, JobState } from './job.ts'
import { type JobEventFields, logAttempt } from './telemetry.ts'
import { WorkerListeners } from './worker-events.ts'
import { judgeWorker, type WorkerHealth } from './worker-health.ts'

/** A worker with a free slot that has not claimed for so many polls, and for the time that a call and a trial may take, is stuck. */
const QUIET_POLLS = 5

export class Runtime {
  readonly events = new WorkerListeners((event, error) => {
    this.engine.logger.error({ event, err: toFailure(error) }, 'a listener of the worker failed')
  })
  private readonly engine: Engine
  private readonly settings: WorkerSettings
  private readonly supervisor: Supervisor
  private readonly dispatcher: Dispatcher
  readonly keeper: Keeper
  private readonly membership: Membership
  private readonly notes: NoteWriter
  private readonly parts: readonly Parameters<Supervisor['start']>[0][]
  private readonly pool: PoolActor | null
  private stopping: Promise<void> | null = null
  private unlisten: () => void = () => {}
  private fatalError: HoldfastError | null = null
  private readonly shutdown: Shutdown
  private readonly slotsLost = new LostSlots((slot, change) => this.slotChanged(slot, change))

  constructor(engine: Engine, settings: WorkerSettings) {
    this.engine = engine
    this.settings = settings
    const { backend, clock, timers, random, logger, warn } = engine
    const { leaseMs, maxBlockedMs, typeLeases, lanes, keepLogs } = settings
    this.notes = new NoteWriter({ backend, clock, timers, warn, keepLines: keepLogs.lines })
    this.supervisor = new Supervisor({ clock, logger, onEscalate: (error) => this.escalated(error) })
    this.pool = this.newPool()
    const { keeper, keepers } = makeKeepers({
      ...{ backend, clock, timers, warn, leaseMs, maxBlockedMs, typeLeases },
      onBlocked: (blockedMs) => this.blocked(blockedMs),
    })
    const cancels = new CancelWatch({ timers, keeper, isTold: () => notifier.hearsCancels })
    const onCancel = (): void => cancels.heard()
    const notifier = new Notifier(backend.backend, lanes, { wake: () => this.dispatcher.wake(), onCancel })
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
      mayClaim: () => !this.isExhausted,
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
    this.shutdown = new Shutdown({ timers, dispatcher: this.dispatcher, keeper, killGraceMs: settings.killGraceMs })
    this.membership = announce(engine, settings, () => this.present)
    // Stopped in reverse: a worker is known until it has drained.
    this.parts = [this.membership, ...keepers, reaper, cancels, notifier, this.dispatcher]
  }

  private newPool(): PoolActor | null {
    const { engine, settings } = this
    const modules = [...settings.handlers.values()].filter(
      (handler): handler is ThreadHandler => handler.kind === 'thread',
    )
    if (modules.length === 0) return null
    return new PoolActor({
      threads: settings.concurrency,
      timers: engine.timers,
      modules,
      lost: this.slotsLost,
      onIdleCrash: (error) => engine.logger.warn({ err: error }, 'a handler thread died with no attempt in it'),
    })
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
      lost: this.slotsLost,
      killGraceMs: settings.killGraceMs,
      payloadBytesMax: engine.payloadBytesMax,
      retention: engine.retention,
      defaultRetry: settings.retry,
      queueRetry: settings.queueRetry,
      context: settings.context,
      inspect: engine.inspect,
      notes: this.notes,
      logLevel: settings.keepLogs.level,
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

  /** What it is and does now. */
  get present() {
    const { concurrency, active: running } = this.dispatcher
    return { id: this.settings.id, concurrency, running, isStopping: this.stopping !== null }
  }

  /** Whether this worker can get at jobs. */
  health(): WorkerHealth {
    const { id: workerId, maxBlockedMs, pollMs, typeLeases } = this.settings
    const leaseMs = Math.min(this.settings.leaseMs, ...typeLeases.values())
    const { running, concurrency: slots, isStopping } = this.present
    const keptMs = this.keeper.hasStandIn ? Math.max(leaseMs, maxBlockedMs) : leaseMs
    const trialMs = this.dispatcher.trial.isOn ? TRIAL_MS : 0
    const quietMaxMs = QUIET_POLLS * pollMs + this.engine.backend.deadlineMs + trialMs
    const facts = { workerId, running, slots, isStopping, fatal: this.fatal, keptMs, quietMaxMs }
    return judgeWorker({ ...this.dispatcher.pulse.read(), ...facts, lostSlots: this.lostSlots })
  }

  get startedCount(): number {
    return this.dispatcher.counts.started
  }

  /** Resolves when nothing that could run now is left in the lanes, or the worker stops or gives up; true in the first case. */
  async whenIdle(): Promise<boolean> {
    const isOver = (): boolean => this.stopping !== null || this.fatal !== null
    await this.dispatcher.until((dispatcher) => dispatcher.isIdle || isOver())
    return !isOver()
  }

  /** Fires the signal of a job that this worker runs or holds; one that does not run here is left alone. */
  cancel(id: JobId): void {
    const actor = this.keeper.actors.find(({ job, isOver }) => job.id === id && !isOver)
    actor?.abort(cancellationOf(id))
  }

  /** Changes the number of slots; resolves when no more than that many handlers run, or than a later change allows. */
  async resize(slots: number): Promise<void> {
    this.pool?.resize(slots)
    this.dispatcher.resize(slots)
    await this.dispatcher.until(({ active, concurrency }) => active <= Math.max(slots, concurrency))
  }

  /** Claims nothing more, lets handlers end until the deadline, aborts the rest and gives it back, then closes. See `Shutdown`. */
  stop(deadlineMs: number = DEFAULTS.stopDeadlineMs): Promise<void> {
    const drained = this.shutdown.drain(deadlineMs)
    this.stopping ??= this.shutDown(drained)
    return this.stopping
  }

  private async shutDown(drained: Promise<void>): Promise<void> {
    await drained
    if (!this.dispatcher.isQuiet) this.membership.giveUpOnStore()
    this.unlisten()
    this.notes.stop()
    await this.supervisor.stop()
    await this.pool?.stop()
    await delay(0, this.engine.timers)
  }

  private settled({ actor, settlement }: Ending, verdict: Verdict): void {
    if (verdict === 'leaseLost' || verdict === 'gone') {
      this.lost(actor)
      return
    }
    const state = actor.lifecycle.send(verdict === 'cancelled' ? 'cancel' : eventOf(settlement.kind))
    if (this.isHeard(settlement.kind, state)) {
      const fields = attemptFields(actor, settlement, state)
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
    this.dispatcher.pulse.stoodStill(blockedMs)
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

  /** Slots whose handlers were given up and have not ended yet. */
  get lostSlots(): number {
    return this.slotsLost.count
  }

  /** As many threads and processes are replaced as there are slots, two at least; beyond that memory is in danger. */
  private get isExhausted(): boolean {
    return this.slotsLost.heavyCount >= Math.max(2, this.dispatcher.concurrency)
  }

  private slotChanged(slot: LostSlot, change: 'lost' | 'recovered'): void {
    const { jobId, type, attempt, where } = slot
    const fields = { job_id: jobId, type, attempt, where, lost_slots: this.slotsLost.count }
    if (change === 'lost') {
      this.engine.logger.warn(fields, 'a handler could not be stopped; its slot is lost until it ends by itself')
    }
    this.dispatcher.wake()
    const event = { ...slot, workerId: this.settings.id, lostSlots: this.slotsLost.count }
    this.events.emit(change === 'lost' ? 'slotLost' : 'slotRecovered', event)
  }

  /** Why the worker claims nothing any more; null while it does. */
  get fatal(): HoldfastError | null {
    if (this.fatalError !== null || !this.isExhausted) return this.fatalError
    return new HoldfastError(
      'INTERNAL',
      `${this.slotsLost.heavyCount} handler threads or processes cannot be ended; the process should be restarted`,
    )
  }

  private escalated(cause: unknown): void {
    this.fatalError = new HoldfastError('INTERNAL', 'an actor failed too often; the worker has stopped', { cause })
    this.engine.logger.warn({ code: this.fatalError.code, err: this.fatalError.message }, 'the worker has given up')
    this.events.emit('error', this.fatalError)
    void this.stop(0)
  }
}
