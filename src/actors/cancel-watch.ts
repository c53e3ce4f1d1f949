/**
 * Sees to it that a worker hears of cancellations sooner than with the next renewal of its leases: a renewal is what tells that a job
 * was asked to stop, or was taken by force, so one is sent early when a hint says that there may be such a job, and every second where
 * the store gives no such hints. Jobs that end within a moment cost nothing here.
 */
import type { TimerHandle, Timers } from '../clock.ts'
import { Actor } from './actor.ts'
import type { JobActor } from './job-actor.ts'

/** Hints that come together are one renewal. */
const HEARD_MS = 200
const LOOK_MS = 1_000
/** Attempts younger than this are probably over before an answer comes. */
const YOUNG_MS = 150

type CancelWatchMessage = { readonly type: 'heard' } | { readonly type: 'due' } | { readonly type: 'look' }

export interface CancelWatchOptions {
  readonly timers: Timers
  readonly keeper: { readonly actors: readonly JobActor[]; renewNow(): Promise<void> }
  /** Whether hints about cancellations surely arrive now. */
  readonly isTold: () => boolean
}

export class CancelWatch extends Actor<CancelWatchMessage> {
  private readonly options: CancelWatchOptions
  private heardTimer: TimerHandle = null
  private isArmed = false
  private lookTimer: TimerHandle = null

  constructor(options: CancelWatchOptions) {
    super('cancel-watch')
    this.options = options
  }

  /** Some running job may have been cancelled. */
  heard(): void {
    this.tell({ type: 'heard' })
  }

  protected override onStart(): void {
    this.lookTimer = this.options.timers.set(() => this.tell({ type: 'look' }), LOOK_MS, true)
  }

  protected override onStop(): void {
    this.options.timers.clear(this.lookTimer)
    this.options.timers.clear(this.heardTimer)
    this.isArmed = false
  }

  protected override onRestart(): void {
    this.onStop()
    this.onStart()
  }

  protected override receive(message: CancelWatchMessage): void {
    switch (message.type) {
      case 'heard':
        this.arm()
        return
      case 'due':
        this.isArmed = false
        // What is too young now may have been meant all the same.
        if (!this.renew() && this.running.length > 0) this.arm()
        return
      case 'look':
        if (!this.options.isTold()) this.renew()
        this.onStart()
        return
      default: {
        message satisfies never
      }
    }
  }

  private get running(): readonly JobActor[] {
    return this.options.keeper.actors.filter(({ isOver }) => !isOver)
  }

  private arm(): void {
    if (this.isArmed) return
    this.isArmed = true
    this.heardTimer = this.options.timers.set(() => this.tell({ type: 'due' }), HEARD_MS, true)
  }

  private renew(): boolean {
    if (!this.running.some(({ durationMs }) => durationMs >= YOUNG_MS)) return false
    void this.options.keeper.renewNow()
    return true
  }
}
