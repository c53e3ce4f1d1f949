/**
 * Renews every lease of one duration that this worker holds, all in one call at a third of their life, until the dispatcher drops them.
 * A refused renewal tells the attempt that its lease is lost; a renewal that fails is not a loss but an unknown, until 0.8 of
 * the lease has passed without one that worked. What is held is also noted on a board, from which a thread of the store renews
 * what this loop cannot while it is blocked (`lease-policy.ts` says who renews when). After a gap (a blocked loop, a suspended
 * machine) everything is renewed before anything else is done: `afterGap` is asked before starting, settling, claiming and reaping.
 */
import type { LeaseKeeping } from '../backends/backend.ts'
import { LeaseBoard } from '../backends/lease-board.ts'
import {
  beatEveryMs,
  isAfterGap,
  isExhausted,
  isOverdue,
  type LeaseTerms,
  renewEveryMs,
} from '../backends/lease-policy.ts'
import type { RenewOutcome } from '../backends/protocol/index.ts'
import { type Clock, delay, type TimerHandle, type Timers } from '../clock.ts'
import type { HoldfastError } from '../errors.ts'
import { Roster } from '../roster.ts'
import type { Warn } from '../telemetry.ts'
import { abortReason, cancellationOf } from './abort-reason.ts'
import { Actor } from './actor.ts'
import type { BackendActor } from './backend-actor.ts'
import type { JobActor } from './job-actor.ts'

/** How late a beat must be before it is worth a word. */
const BLOCKED_MS = 1_000

type KeeperMessage =
  | { readonly type: 'beat' }
  | {
      readonly type: 'renewed'
      readonly asked: readonly JobActor[]
      readonly sentAt: number
      readonly outcomes: readonly RenewOutcome[]
    }
  | { readonly type: 'notRenewed'; readonly error: HoldfastError }

export interface LeaseKeeperOptions {
  readonly backend: BackendActor
  readonly clock: Clock
  readonly timers: Timers
  readonly warn: Warn
  readonly terms: LeaseTerms
  /** Told once of each block longer than `BLOCKED_MS`: the main loop stood still, or the machine slept. */
  readonly onBlocked: (blockedMs: number) => void
}

export class LeaseKeeper extends Actor<KeeperMessage> {
  /** How often this loop has stood still for more than `BLOCKED_MS`. */
  blocks = 0
  longestBlockMs = 0
  private readonly options: LeaseKeeperOptions
  private readonly held = new Roster<JobActor>()
  /** Those of `adopt` that no renewal has reached yet: they have what their claim asked for. */
  private readonly granted = new Set<JobActor>()
  private keeping: LeaseKeeping | null = null
  private board: LeaseBoard | null = null
  private timer: TimerHandle = null
  private underWay: Promise<void> | null = null
  /** The renewal that `renewNow` has promised to send after the one under way. */
  private following: Promise<void> | null = null
  private beatDueAt = 0
  private renewDueAt = 0
  /** The last time this loop was known to run, and to have its leases renewed if it had not. */
  private soundAt = 0
  private gapEndedAt = Number.NEGATIVE_INFINITY
  private catchingUp: Promise<void> | null = null

  constructor(options: LeaseKeeperOptions) {
    super('lease-keeper')
    this.options = options
  }

  /** From here on the lease is renewed, whatever the main loop does. */
  hold(actor: JobActor): void {
    this.held.add(actor)
    if (this.board !== null) actor.boardSlot = this.board.put(actor.job, actor.leaseConfirmedAt)
  }

  /** Asks for the duration of this keeper for what a claim has just granted with another. What fails is left to the next renewal of all. */
  adopt(actors: readonly JobActor[]): void {
    if (actors.length === 0) return
    for (const actor of actors) this.granted.add(actor)
    void this.request(actors, (message) => this.tell(message))
  }

  drop(actor: JobActor): void {
    this.held.delete(actor)
    if (this.granted.size > 0) this.granted.delete(actor)
    this.board?.clear(actor.boardSlot)
    actor.boardSlot = -1
  }

  /** Nobody renews the lease beyond `untilMs`, the end of the attempt's own time; while its settlement waits, it has none. */
  limit(actor: JobActor, untilMs: number | null): void {
    if (actor.renewUntil === untilMs) return
    actor.renewUntil = untilMs
    this.board?.limit(actor.boardSlot, untilMs ?? Number.POSITIVE_INFINITY)
  }

  /** True while a thread renews what this loop cannot. */
  get hasStandIn(): boolean {
    return this.keeping?.isReady === true
  }

  /**
   * null while this loop runs as it should; else everything held is renewed first, and it resolves when that was answered and whoever
   * else in this process holds leases has had a turn. `now` is monotonic. Never rejects.
   */
  afterGap(now = this.options.clock.monotonic()): Promise<void> | null {
    const isSound = this.state !== 'active' || !isAfterGap(now - this.soundAt, this.options.terms)
    return isSound ? this.catchingUp : this.catchUp()
  }

  /** A lease that was asked for so long ago may have run out unseen: it is renewed before it is used. */
  doubt(claimedAt: number): void {
    const { clock, terms } = this.options
    if (isAfterGap(clock.monotonic() - claimedAt, terms)) void this.catchUp()
  }

  private catchUp(): Promise<void> {
    const { clock, timers } = this.options
    this.soundAt = clock.monotonic()
    this.gapEndedAt = this.soundAt
    const work: Promise<void> = Promise.all([this.renewNow(), delay(0, timers)]).then(() => {
      if (this.catchingUp === work) this.catchingUp = null
    })
    this.catchingUp = work
    return work
  }

  /** The attempts whose leases are held: those that run, and those that are over but not yet settled. */
  get actors(): readonly JobActor[] {
    return this.held.list()
  }

  /**
   * Renews all that is held with a call that has not been sent yet. Resolves when it was answered and the answer was dealt with, or
   * it failed; never rejects.
   */
  renewNow(): Promise<void> {
    if (this.underWay === null) return this.renew()
    this.following ??= this.underWay.then(() => {
      this.following = null
      // Whatever is under way by now was sent after this was asked for.
      return this.underWay ?? this.renew()
    })
    return this.following
  }

  protected override onStart(): void {
    const { backend, clock, terms } = this.options
    this.keeping = terms.maxBlockedMs === 0 ? null : backend.backend.keepLeases(terms)
    const { keeping } = this
    if (keeping !== null) this.board = new LeaseBoard(clock.monotonic(), (memory) => keeping.addPage(memory))
    this.renewDueAt = clock.monotonic() + renewEveryMs(terms)
    this.arm()
  }

  protected override onStop(): void {
    this.options.timers.clear(this.timer)
    this.keeping?.stop()
  }

  protected override onRestart(): void {
    this.options.timers.clear(this.timer)
    this.arm()
  }

  private arm(): void {
    const { clock, timers, terms } = this.options
    const now = clock.monotonic()
    const waitMs = beatEveryMs(terms)
    this.beatDueAt = now + waitMs
    this.soundAt = now
    this.board?.beat(now)
    this.timer = timers.set(() => this.tell({ type: 'beat' }), waitMs, true)
  }

  protected override receive(message: KeeperMessage): void {
    switch (message.type) {
      case 'beat':
        this.beat()
        return
      case 'renewed':
        message.asked.forEach((actor, index) => {
          this.apply(actor, message.outcomes[index] ?? 'gone', message.sentAt)
        })
        return
      case 'notRenewed':
        this.options.warn({ code: message.error.code, leases: this.held.size }, 'leases could not be renewed')
        this.giveUpOverdue()
        return
      default:
        message satisfies never
    }
  }

  private beat(): void {
    const { clock, terms, onBlocked } = this.options
    const now = clock.monotonic()
    const lateMs = now - this.beatDueAt
    const isGap = isAfterGap(now - this.soundAt, terms)
    void this.afterGap()
    this.arm()
    // Timers may fire a moment early.
    const isDue = now >= this.renewDueAt - beatEveryMs(terms) / 2
    if (isDue) this.renewDueAt = now + renewEveryMs(terms)
    if (isDue && !isGap) {
      if (this.underWay === null) void this.renew()
      else this.giveUpOverdue(this.gapEndedAt)
    }
    if (lateMs <= BLOCKED_MS) return
    this.blocks += 1
    this.longestBlockMs = Math.max(this.longestBlockMs, Math.round(lateMs))
    onBlocked(lateMs)
  }

  private renew(): Promise<void> {
    const { clock } = this.options
    if (this.held.size === 0) return Promise.resolve()
    const asked = this.held.list().filter((actor) => !isExhausted(actor, clock.monotonic()))
    if (asked.length === 0) return Promise.resolve()
    this.underWay = this.request(asked, (message) => {
      this.underWay = null
      // It is dealt with in a microtask of its own, ahead of those who wait for the promise below.
      this.tell(message)
    })
    return this.underWay
  }

  private request(asked: readonly JobActor[], answered: (message: KeeperMessage) => void): Promise<void> {
    const { backend, clock, terms } = this.options
    const leases = asked.map(({ job }) => ({ id: job.id, token: job.token }))
    const sentAt = clock.monotonic()
    return backend.ask('lease.renew', { leases, leaseMs: terms.leaseMs }).then(
      ({ outcomes }) => answered({ type: 'renewed', asked, sentAt, outcomes }),
      (error: HoldfastError) => answered({ type: 'notRenewed', error }),
    )
  }

  private apply(actor: JobActor, outcome: RenewOutcome, sentAt: number): void {
    if (!this.held.has(actor)) return
    switch (outcome) {
      case 'renewed':
        this.confirm(actor, sentAt)
        return
      case 'cancelRequested':
        this.confirm(actor, sentAt)
        actor.abort(cancellationOf(actor.job.id))
        return
      case 'leaseLost':
      case 'gone':
        this.drop(actor)
        actor.abort(abortReason('LEASE_LOST', 'another worker or an operator has taken the job', actor.job.id))
        return
      default:
        outcome satisfies never
    }
  }

  private confirm(actor: JobActor, at: number): void {
    this.granted.delete(actor)
    actor.leaseConfirmedAt = at
    this.board?.confirm(actor.boardSlot, at)
  }

  /**
   * After a gap a renewal that is under way is waited for from its end on. Of what has ended only the settlement waits, and the
   * store decides about that.
   */
  private giveUpOverdue(askedAt = Number.NEGATIVE_INFINITY): void {
    const { clock, terms } = this.options
    const now = clock.monotonic()
    for (const actor of this.held.list()) {
      const renewedAt = this.board?.renewedAt(actor.boardSlot) ?? Number.NEGATIVE_INFINITY
      const confirmedAt = Math.max(actor.leaseConfirmedAt, renewedAt, askedAt)
      const isAsClaimed = this.granted.has(actor) && renewedAt < actor.leaseConfirmedAt
      if (actor.isOver || !isOverdue(now - confirmedAt, isAsClaimed ? terms.paceMs : terms.leaseMs)) continue
      this.drop(actor)
      actor.abort(abortReason('LEASE_LOST', 'the lease could not be renewed in time', actor.job.id))
    }
  }
}
