/**
 * The deadlines of many calls under one timer. Nearly every call ends long before its own, and setting and clearing a timer for each cost
 * more than the rest of a call to a store that sleeps meanwhile (2026-11-30).
 */
import type { Clock, TimerHandle, Timers } from './clock.ts'
import { type Member, Roster } from './roster.ts'

export interface Deadline extends Member {
  readonly at: number
  readonly expire: () => void
}

export class Deadlines {
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly timers: Timers
  private readonly pending = new Roster<Deadline>()
  private timer: TimerHandle = null
  private firesAt = Number.POSITIVE_INFINITY

  constructor(clock: Pick<Clock, 'monotonic'>, timers: Timers) {
    this.clock = clock
    this.timers = timers
  }

  /** Calls `expire` after `timeoutMs`, unless `delete` is called with what this returns. */
  add(timeoutMs: number, expire: () => void): Deadline {
    const deadline = { at: this.clock.monotonic() + timeoutMs, expire, place: -1 }
    this.pending.add(deadline)
    if (deadline.at < this.firesAt) this.arm(deadline.at)
    return deadline
  }

  delete(deadline: Deadline): void {
    this.pending.delete(deadline)
  }

  /** Forgets all. */
  clear(): void {
    this.pending.clear()
    this.disarm()
  }

  private disarm(): void {
    this.timers.clear(this.timer)
    this.timer = null
    this.firesAt = Number.POSITIVE_INFINITY
  }

  /** In the background: what is waited for has a socket or a thread of its own that keeps the process alive. */
  private arm(at: number): void {
    this.disarm()
    this.firesAt = at
    this.timer = this.timers.set(() => this.fire(), Math.max(0, at - this.clock.monotonic()), true)
  }

  private fire(): void {
    this.disarm()
    const now = this.clock.monotonic()
    let next = Number.POSITIVE_INFINITY
    for (const deadline of this.pending.list()) {
      if (deadline.at <= now) {
        this.pending.delete(deadline)
        deadline.expire()
      } else next = Math.min(next, deadline.at)
    }
    if (next !== Number.POSITIVE_INFINITY && next < this.firesAt) this.arm(next)
  }
}
