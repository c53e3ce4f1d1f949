/**
 * Fills the slots of one worker: asks for as many jobs as slots are free, starts a job actor for each, and tells the store in the
 * same round trip how the ended ones ended. At most one claim is in flight; what ends meanwhile goes with the next, or by itself once
 * nothing runs any more. Where turns overlap, while handlers are fast, the next claim is sent before the last one's jobs are started.
 * States: `active` (claims), `draining` (claims nothing, waits for what runs), `stopped`.
 */
import type { Claim, ClaimedJob, Grant, Settlement, Verdict } from '../backends/protocol/index.ts'
import type { HoldfastError } from '../errors.ts'
import { Actor } from './actor.ts'
import { ClaimRequests, nextChanceInMs } from './claim-request.ts'
import type { DispatcherMessage, DispatcherOptions } from './dispatcher-options.ts'
import { IdleWait } from './idle-wait.ts'
import { JobActor, type JobHooks } from './job-actor.ts'
import { returnGrants } from './late-grants.ts'
import { HELD_MS, Prefetch } from './prefetch.ts'
import { Pulse } from './pulse.ts'
import { isDangerous, Trial } from './trial.ts'
import { givenBack, type SentTurn, TurnQueue } from './turn-queue.ts'
import { TurnsInFlight } from './turns-in-flight.ts'
import { Watch } from './watch.ts'

export class Dispatcher extends Actor<DispatcherMessage> {
  private readonly options: DispatcherOptions
  private running = 0
  private readonly queue = new TurnQueue()
  /** How many handlers may run at once; `resize` changes it. */
  concurrency: number
  private readonly claims: ClaimRequests
  private readonly inFlight = new TurnsInFlight()
  private isScheduled = false
  private isClaimDue = true
  private isDraining = false
  private readonly prefetch: Prefetch
  private readonly overlaps: boolean
  private readonly wait: IdleWait
  private readonly watch = new Watch<Dispatcher>(this)
  private emptyClaim = false
  readonly pulse: Pulse
  readonly trial: Trial
  /** Handlers that were started, and turns that were answered, so far. */
  readonly counts = { started: 0, answered: 0 }

  constructor(options: DispatcherOptions) {
    super('dispatcher')
    this.options = options
    this.concurrency = options.concurrency
    this.prefetch = new Prefetch(options.prefetch)
    this.claims = new ClaimRequests(options)
    this.pulse = new Pulse(() => options.env.clock.monotonic())
    this.overlaps = options.backend.backend.overlapsTurns
    const { timers, random } = options.env
    const wake = (): void => this.wake()
    this.trial = new Trial(timers, wake)
    this.wait = new IdleWait({ timers, random, wakeUps: options.wakeUps, pollMs: options.pollMs, wake })
  }

  /** Handlers that run now, those given up after their grace not counted. */
  get active(): number {
    return this.running
  }

  resize(slots: number): void {
    this.concurrency = slots
    if (this.running >= slots) this.giveBack(this.trial.takeHeld())
    this.wake()
  }

  wake(): void {
    this.tell({ type: 'wake' })
  }

  /** Resolves the next time `condition` holds; it is looked at after every change. */
  until(condition: (dispatcher: Dispatcher) => boolean): Promise<void> {
    return this.watch.until(condition)
  }

  /** True when nothing runs, nothing waits to be settled, and the last claim found nothing that could run. */
  get isIdle(): boolean {
    return this.isQuiet && this.emptyClaim && !this.isClaimDue
  }

  /** True when nothing runs and everything is settled. */
  get isQuiet(): boolean {
    return this.taken === 0 && this.prefetch.size === 0 && this.queue.size === 0 && this.inFlight.isNone
  }

  /** Claims nothing from now on. */
  drain(): void {
    this.isDraining = true
    this.wait.end()
    if (this.inFlight.claim !== null) this.options.backend.withdraw(this.inFlight.claim)
    this.prefetch.unwatch(this.options.env.timers)
    this.giveBack([...this.prefetch.takeHeldSince(Number.POSITIVE_INFINITY), ...this.trial.takeHeld()])
    this.schedule()
  }

  protected override onStart(): void {
    this.schedule()
  }

  protected override onStop(): void {
    this.drain()
  }

  protected override onRestart(): void {
    this.inFlight.forget()
    this.isScheduled = false
    this.isClaimDue = true
    this.schedule()
  }

  protected override receive(message: DispatcherMessage): void {
    switch (message.type) {
      case 'wake':
        this.isClaimDue = true
        this.fillSlots()
        if (this.isQuiet && !this.isScheduled) this.turn()
        else this.schedule()
        return
      case 'heldTooLong':
        this.heldTooLong()
        return
      case 'over':
        this.over(message.actor, message.settlement)
        return
      case 'turned':
        this.inFlight.landed(message.turn)
        this.counts.answered += 1
        if (message.turn.claim !== null) this.pulse.ended(null)
        this.settled(message.turn, message.reply.verdicts)
        this.granted(message.turn, message.reply.grants[0])
        break
      case 'notTurned':
        this.inFlight.landed(message.turn)
        this.notTurned(message.turn, message.error)
        break
      default:
        message satisfies never
    }
    this.watch.look()
  }

  /** Turns after all that is ready now has run, so that jobs which end together are settled together. */
  private schedule(): void {
    if (this.isScheduled || !this.mayTurn) return
    this.isScheduled = true
    this.options.env.timers.defer(() => {
      this.isScheduled = false
      if (this.mayTurn) this.turn()
    })
  }

  /** Beside a claim only when nothing runs: what ended last would wait for it, and nothing that ends soon could go along. */
  private get mayTurn(): boolean {
    if (this.inFlight.isNone) return true
    return this.overlaps && this.inFlight.isOnlyClaim && this.running + this.prefetch.size === 0 && this.queue.size > 0
  }

  private turn(): void {
    const { backend, env } = this.options
    const sentAt = env.clock.monotonic()
    if (this.isCatchingUp(sentAt)) return
    const endings = this.queue.take(backend.backend.limits.turnSettlements)
    const unanswered = this.queue.takeUnansweredClaim()
    // While draining, limit 0 asks only for what the lost answer may have granted.
    const repeated = unanswered !== null && this.isDraining ? { ...unanswered, limit: 0 } : unanswered
    const claim = repeated ?? this.nextClaim(endings.length > 0)
    if (endings.length === 0 && claim === null) {
      if (this.isDraining || this.freeSlots <= 0 || !this.mayClaim) this.wait.interrupt()
      this.watch.look()
      return
    }
    this.wait.interrupt()
    const turn = { endings, claim, sentAt }
    if (!this.inFlight.isClaiming) this.isClaimDue = false
    this.inFlight.sent(turn)
    if (claim !== null) this.pulse.sent()
    backend
      .ask('job.turn', {
        settlements: endings.map(({ settlement }) => settlement),
        claims: claim === null ? [] : [claim],
        resend: unanswered !== null,
      })
      .then(
        (reply) => {
          if (this.tell({ type: 'turned', turn, reply }) === 'stopped') returnGrants(reply.grants, this.options)
        },
        (error: HoldfastError) => this.tell({ type: 'notTurned', turn, error }),
      )
  }

  private get mayClaim(): boolean {
    return this.options.mayClaim?.() !== false && !this.trial.isOn
  }

  private get freeSlots(): number {
    return this.concurrency - this.taken - this.prefetch.size
  }

  /** Slots in use, and the one that is kept for a dangerous job. */
  private get taken(): number {
    return this.running + (this.trial.isHolding ? 1 : 0)
  }

  private nextClaim(isTurnAnyway: boolean): Claim | null {
    if (this.isDraining || this.inFlight.isClaiming || this.queue.hasSuspects || !this.mayClaim) return null
    if (!this.isClaimDue && !isTurnAnyway) return null
    const extra = this.claims.isMoreWorthHolding ? this.prefetch.extra(this.concurrency) : 0
    const free = this.freeSlots + extra
    if (free <= 0) return null
    // Half of what may be held with each turn, so that one half runs while the store works on the other.
    const most = this.overlaps && extra > 0 ? Math.ceil((this.concurrency + extra) / 2) : free
    return this.claims.next(Math.min(free, most))
  }

  private settled(turn: SentTurn, verdicts: readonly Verdict[]): void {
    const { keeper, onSettled } = this.options
    turn.endings.forEach((ending, index) => {
      keeper.drop(ending.actor)
      onSettled(ending, verdicts[index] ?? 'gone')
    })
  }

  private granted(turn: SentTurn, grant: Grant | undefined): void {
    if (grant === undefined || turn.claim === null) {
      this.fillSlots()
      if (this.isTurnDue) this.schedule()
      return
    }
    if (grant.deadlined.length > 0) this.options.onDeadlined(grant.deadlined)
    this.claims.answered(grant)
    this.emptyClaim = grant.jobs.length === 0 && !grant.more
    if (grant.more) this.isClaimDue = true
    this.admit(grant.jobs, turn.sentAt)
    if (this.overlaps && this.claims.isMoreWorthHolding && this.prefetch.extra(this.concurrency) > 0) this.turn()
    this.fillSlots()
    this.prefetch.watch(this.options.env.timers, () => this.tell({ type: 'heldTooLong' }))
    if (this.inFlight.isClaiming) return
    if (this.isTurnDue) this.schedule()
    else this.waitFor(nextChanceInMs(grant), this.freeSlots > 0 && this.mayClaim)
  }

  private get isTurnDue(): boolean {
    return this.queue.size > 0 || (this.isClaimDue && this.freeSlots > 0)
  }

  /** Jobs that were granted wait for their slots among the held ones, if only for a moment. */
  private admit(jobs: readonly ClaimedJob[], claimedAt: number): void {
    const { env, keeper } = this.options
    const onOver: JobHooks['onOver'] = (actor, settlement) => this.tell({ type: 'over', actor, settlement })
    const hooks: JobHooks = { claimedAt, onOver, keeper }
    const now = env.clock.monotonic()
    for (const job of jobs) {
      const actor = new JobActor(job, env, hooks)
      if (!this.isDraining && this.hold(actor, now)) keeper.hold(actor)
      else this.giveBack([actor])
    }
    if (jobs.length > 0) keeper.doubt(claimedAt)
  }

  /** False if it is to go back. More than was asked for comes when a claim was sent again and the first one arrived after all. */
  private hold(actor: JobActor, now: number): boolean {
    const free = this.concurrency - this.taken
    if (isDangerous(actor.job)) return free > 0 && this.trial.hold(actor)
    if (!this.prefetch.hasRoom(free)) return false
    this.prefetch.hold(actor, now)
    return true
  }

  /** Starts held jobs while slots are free; a dangerous one once all that goes back is back, and nothing can come. */
  private fillSlots(): void {
    while (this.running < this.concurrency && (this.trial.isHolding || this.prefetch.size > 0)) {
      const now = this.options.env.clock.monotonic()
      if (this.isCatchingUp(now)) return
      const dangerous = this.inFlight.isNone && this.queue.isEmpty ? this.trial.start() : null
      const actor = dangerous ?? (this.taken < this.concurrency ? this.prefetch.take() : undefined)
      if (actor === undefined) return
      this.running += 1
      this.counts.started += 1
      actor.start(now)
    }
  }

  /** After a gap nothing is started, settled or claimed before what is held was renewed; then this goes on by itself. */
  private isCatchingUp(now: number): boolean {
    const renewal = this.options.keeper.afterGap(now)
    void renewal?.then(() => this.wake())
    return renewal !== null
  }

  /** What is still held when handlers have turned slow goes to whoever has a slot for it. */
  private heldTooLong(): void {
    const { clock, timers } = this.options.env
    const overdue = this.prefetch.takeHeldSince(clock.monotonic() - HELD_MS)
    this.giveBack(overdue)
    // Or the next claim would take them again, for as long as the slow ones run.
    if (overdue.length > 0) this.prefetch.turnedSlow()
    this.prefetch.watch(timers, () => this.tell({ type: 'heldTooLong' }))
    this.schedule()
  }

  /** Never started, so they go back uncharged; the keeper knows nothing of them, or they could end a second time. */
  private giveBack(actors: readonly JobActor[]): void {
    for (const actor of actors) {
      this.options.keeper.drop(actor)
      this.queue.add(givenBack(actor, this.options.env))
    }
  }

  private over(actor: JobActor, settlement: Settlement | null): void {
    this.running -= 1
    this.prefetch.record(actor.durationMs)
    if (this.trial.ended(actor)) this.isClaimDue = true
    this.fillSlots()
    if (settlement === null) {
      this.options.keeper.drop(actor)
      this.isClaimDue = true
      this.options.onLost(actor)
      this.watch.look()
    } else {
      this.options.keeper.limit(actor, null)
      this.queue.add({ actor, settlement })
    }
    // Threads end one by one, each in a tick of its own; one that got no job stands idle until this turn is answered.
    if (actor.isInThread && this.running < this.concurrency && this.mayTurn) this.turn()
    else this.schedule()
    if (this.isDraining) this.watch.look()
  }

  private notTurned(turn: SentTurn, error: HoldfastError): void {
    const isFinal = !error.retryable
    if (turn.claim !== null) this.pulse.ended(error)
    const [only, another] = turn.endings
    if (isFinal && only !== undefined && another === undefined) {
      this.options.keeper.drop(only.actor)
      this.options.onLost(only.actor)
    } else this.queue.putBack(turn.endings, isFinal)
    if (turn.claim !== null) this.queue.rememberClaim(isFinal ? null : turn.claim)
    this.isClaimDue = true
    if (error.code === 'CLOSED') return
    this.options.onError(error)
    // A store that cannot be asked has no wake-up to spend here.
    this.waitFor(null, false)
  }

  private waitFor(dueInMs: number | null, isIdle: boolean): void {
    if (this.isDraining && this.queue.size === 0) this.wait.end()
    else this.wait.begin(dueInMs, isIdle && !this.isDraining)
  }
}
