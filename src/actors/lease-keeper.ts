/**
 * Renews every lease that this worker holds, all in one call at a third of their life, until the dispatcher drops them.
 * A refused renewal tells the attempt that its lease is lost; a renewal that fails is not a loss but an unknown, until 0.8 of
 * the lease has passed without one that worked. Long gaps between ticks (a blocked loop, a suspended machine) renew first.
 */
import type { RenewOutcome } from '../backends/protocol/index.ts'
import type { Clock, TimerHandle, Timers } from '../clock.ts'
import type { HoldfastError } from '../errors.ts'
import { Roster } from '../roster.ts'
import type { Warn } from '../telemetry.ts'
import { abortReason } from './abort-reason.ts'
import { Actor } from './actor.ts'
import type { BackendActor } from './backend-actor.ts'
import type { JobActor } from './job-actor.ts'

/** Renewals a lease gets in its life. */
const RENEWALS_A_LEASE = 3
/** Share of the lease after which an unrenewed one is given up locally. */
const LOCAL_DEADLINE = 0.8

/** How late a tick must be before it is worth a word. */
const BLOCKED_MS = 1_000

type KeeperMessage =
  | { readonly type: 'tick' }
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
  readonly leaseMs: number
  /** Told when a tick came late by more than `BLOCKED_MS`: the main loop stood still, or the machine slept. */
  readonly onBlocked: (blockedMs: number) => void
}

export class LeaseKeeper extends Actor<KeeperMessage> {
  private readonly options: LeaseKeeperOptions
  private readonly held = new Roster<JobActor>()
  private timer: TimerHandle = null
  private underWay: Promise<void> | null = null
  /** The renewal that `renewNow` has promised to send after the one under way. */
  private following: Promise<void> | null = null
  private tickDueAt = 0

  constructor(options: LeaseKeeperOptions) {
    super('lease-keeper')
    this.options = options
  }

  hold(actor: JobActor): void {
    this.held.add(actor)
  }

  drop(actor: JobActor): void {
    this.held.delete(actor)
  }

  /** The attempts whose leases are held: those that run, and those that are over but not yet settled. */
  get actors(): readonly JobActor[] {
    return this.held.list()
  }

  /** Fires the signal of a job that this worker runs or holds; one that does not run here is left alone. */
  cancel(jobId: string): void {
    const actor = this.actors.find(({ job, isOver }) => job.id === jobId && !isOver)
    actor?.abort(abortReason('JOB_CANCELLED', 'cancellation of the job was requested', jobId))
  }

  /** Fires the signal of everything that runs; what ends without success is given back. */
  abortAll(): void {
    for (const actor of this.actors) {
      actor.abort(abortReason('SHUTTING_DOWN', 'the worker is stopping', actor.job.id))
    }
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
    this.arm()
  }

  protected override onStop(): void {
    this.options.timers.clear(this.timer)
  }

  protected override onRestart(): void {
    this.options.timers.clear(this.timer)
    this.arm()
  }

  private arm(): void {
    const waitMs = this.options.leaseMs / RENEWALS_A_LEASE
    this.tickDueAt = this.options.clock.monotonic() + waitMs
    this.timer = this.options.timers.set(() => this.tell({ type: 'tick' }), waitMs, true)
  }

  protected override receive(message: KeeperMessage): void {
    switch (message.type) {
      case 'tick': {
        const lateMs = this.options.clock.monotonic() - this.tickDueAt
        this.arm()
        if (this.underWay === null) void this.renew()
        else this.giveUpOverdue()
        if (lateMs > BLOCKED_MS) this.options.onBlocked(lateMs)
        return
      }
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

  private renew(): Promise<void> {
    if (this.held.size === 0) return Promise.resolve()
    const asked = this.held.list()
    const leases = asked.map(({ job }) => ({ id: job.id, token: job.token }))
    const sentAt = this.options.clock.monotonic()
    const answered = (message: KeeperMessage): void => {
      this.underWay = null
      // It is dealt with in a microtask of its own, ahead of those who wait for the promise below.
      this.tell(message)
    }
    this.underWay = this.options.backend.ask('lease.renew', { leases, leaseMs: this.options.leaseMs }).then(
      ({ outcomes }) => answered({ type: 'renewed', asked, sentAt, outcomes }),
      (error: HoldfastError) => answered({ type: 'notRenewed', error }),
    )
    return this.underWay
  }

  private apply(actor: JobActor, outcome: RenewOutcome, sentAt: number): void {
    if (!this.held.has(actor)) return
    switch (outcome) {
      case 'renewed':
        actor.leaseConfirmedAt = sentAt
        return
      case 'cancelRequested':
        actor.leaseConfirmedAt = sentAt
        actor.abort(abortReason('JOB_CANCELLED', 'cancellation of the job was requested', actor.job.id))
        return
      case 'leaseLost':
      case 'gone':
        this.held.delete(actor)
        actor.abort(abortReason('LEASE_LOST', 'another worker or an operator has taken the job', actor.job.id))
        return
      default:
        outcome satisfies never
    }
  }

  private giveUpOverdue(): void {
    const limit = this.options.clock.monotonic() - LOCAL_DEADLINE * this.options.leaseMs
    for (const actor of this.held.list()) {
      if (actor.leaseConfirmedAt > limit) continue
      actor.abort(abortReason('LEASE_LOST', 'the lease could not be renewed in time', actor.job.id))
    }
  }
}
