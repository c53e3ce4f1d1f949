/**
 * How a dispatcher waits between turns: for a hint, the next due time, or the poll, whichever comes first. Only an idle one asks
 * the store for wake-ups. A wake-up that surely arrives stands before the poll, which is then half as frequent.
 */
import type { TimerHandle, Timers } from '../clock.ts'
import { DEFAULTS } from '../config.ts'
import type { Random } from '../random.ts'
import type { WakeUps } from './notifier.ts'

const POLL_JITTER = 0.2
/** The poll is rarer by this while wake-ups are reliable. */
const RELIABLE_FACTOR = 2

export interface IdleWaitOptions {
  readonly timers: Timers
  readonly random: Random
  readonly wakeUps: WakeUps
  readonly pollMs?: number | undefined
  readonly wake: () => void
}

export class IdleWait {
  private readonly options: IdleWaitOptions
  private timer: TimerHandle = null

  constructor(options: IdleWaitOptions) {
    this.options = options
  }

  /** Waits anew. `isIdle`: slots are free and the store had nothing more for them. */
  begin(dueInMs: number | null, isIdle: boolean): void {
    const { timers, random, wakeUps, pollMs = DEFAULTS.pollMs, wake } = this.options
    wakeUps.want(isIdle)
    const usual = isIdle && wakeUps.isReliable ? RELIABLE_FACTOR * pollMs : pollMs
    const poll = usual * (1 + POLL_JITTER * (2 * random.next() - 1))
    timers.clear(this.timer)
    this.timer = timers.set(wake, dueInMs === null ? poll : Math.min(poll, Math.max(0, dueInMs)))
  }

  /** Not idle any more. The poll goes on: it stands behind whatever the dispatcher does now. */
  interrupt(): void {
    this.options.wakeUps.want(false)
  }

  /** Waits for nothing from now on. */
  end(): void {
    this.options.timers.clear(this.timer)
    this.interrupt()
  }
}
