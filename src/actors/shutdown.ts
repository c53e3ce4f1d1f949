/**
 * The orderly end of a worker: nothing is claimed from the call on, handlers may end until the deadline, the rest is aborted and given
 * back, and the store is told as long as it answers. A worker that stops already is hurried by an earlier deadline.
 * States: `working`, `draining` (handlers may end), `aborting` (their signals have fired), `told` (everything that could be said was).
 */
import type { TimerHandle, Timers } from '../clock.ts'
import { DEFAULTS } from '../config.ts'
import { abortReason } from './abort-reason.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { JobActor } from './job-actor.ts'

export interface ShutdownOptions {
  readonly timers: Timers
  readonly dispatcher: Dispatcher
  readonly keeper: { readonly actors: readonly JobActor[] }
  readonly killGraceMs: number
}

export class Shutdown {
  private readonly options: ShutdownOptions
  /** One for each call: the earliest ends the wait for handlers. */
  private readonly patience: TimerHandle[] = []
  private loosePatience: () => void = () => {}
  private draining: Promise<void> | null = null

  constructor(options: ShutdownOptions) {
    this.options = options
  }

  /** Resolves when everything is settled, or the store is silent. What it was not told is recovered when the leases run out. */
  drain(deadlineMs: number): Promise<void> {
    const { timers } = this.options
    const isOver = new Promise<void>((resolve) => {
      this.loosePatience = this.draining === null ? resolve : this.loosePatience
    })
    if (this.draining === null || this.patience.length > 0) {
      this.patience.push(timers.set(() => this.loosePatience(), deadlineMs))
    }
    this.draining ??= this.run(isOver)
    return this.draining
  }

  private async run(patienceIsOver: Promise<void>): Promise<void> {
    const { timers, dispatcher, keeper, killGraceMs } = this.options
    dispatcher.drain()
    const isQuiet = dispatcher.until((each) => each.isQuiet)
    await Promise.race([isQuiet, patienceIsOver])
    for (const timer of this.patience.splice(0)) timers.clear(timer)
    if (dispatcher.isQuiet) return
    for (const actor of keeper.actors) {
      actor.abort(abortReason('SHUTTING_DOWN', 'the worker is stopping', actor.job.id))
    }
    await this.atMost(
      dispatcher.until(({ active }) => active === 0),
      killGraceMs + DEFAULTS.lostAfterMs + DEFAULTS.stopSilenceMs,
    )
    await this.tellTheStore()
  }

  /** Waits until everything is settled, as long as the store goes on answering. */
  private async tellTheStore(): Promise<void> {
    const { dispatcher } = this.options
    for (let before = -1; !dispatcher.isQuiet && dispatcher.counts.answered > before; ) {
      before = dispatcher.counts.answered
      await this.atMost(
        dispatcher.until(({ isQuiet, counts }) => isQuiet || counts.answered > before),
        DEFAULTS.stopSilenceMs,
      )
    }
  }

  private async atMost(work: Promise<void>, ms: number): Promise<void> {
    const { timers } = this.options
    let timer: TimerHandle = null
    const timeout = new Promise<void>((resolve) => {
      timer = timers.set(resolve, ms)
    })
    await Promise.race([work, timeout])
    timers.clear(timer)
  }
}
