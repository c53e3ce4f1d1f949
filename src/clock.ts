/**
 * Time as the engine sees it: a wall clock, a monotonic clock and timers, handed in from outside.
 * Nothing in the engine reads the platform's clock or sets its timers directly, so that whole systems run in virtual
 * time under a seed. Only this file touches `Date`, `performance` and `setTimeout`.
 */

export interface Clock {
  /** Milliseconds since the epoch; may jump. */
  now(): number
  /** Milliseconds from an arbitrary start; never goes back. For measuring waits only. */
  monotonic(): number
}

export type TimerHandle = unknown

export interface Timers {
  /** Calls `run` once after `delayMs`. The timer does not keep the process alive when `background` is true. */
  set(run: () => void, delayMs: number, background?: boolean): TimerHandle
  clear(handle: TimerHandle): void
  /** Calls `run` after the work that is ready now, I/O included: what arrives meanwhile can be done in one go. */
  defer(run: () => void): void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}

/** Longest delay that the platform's timers take; they run at once after a longer one. */
const TIMER_DELAY_MAX_MS = 2 ** 31 - 1

/** A wait that the platform's timers cannot make in one go. */
class LongTimer {
  private handle: NodeJS.Timeout | undefined

  constructor(run: () => void, delayMs: number, background: boolean) {
    this.wait(run, delayMs, background)
  }

  private wait(run: () => void, leftMs: number, background: boolean): void {
    const stepMs = Math.min(leftMs, TIMER_DELAY_MAX_MS)
    const next = leftMs > stepMs ? () => this.wait(run, leftMs - stepMs, background) : run
    this.handle = setTimeout(next, stepMs)
    if (background) this.handle.unref()
  }

  clear(): void {
    clearTimeout(this.handle)
  }
}

export const systemTimers: Timers = {
  set(run, delayMs, background = false) {
    if (delayMs > TIMER_DELAY_MAX_MS) return new LongTimer(run, delayMs, background)
    const handle = setTimeout(run, Math.max(0, delayMs))
    if (background) handle.unref()
    return handle
  },
  clear(handle) {
    if (handle instanceof LongTimer) handle.clear()
    else clearTimeout(handle as NodeJS.Timeout)
  },
  defer(run) {
    setImmediate(run)
  },
}

/** Settles as `work` does, or rejects with `onTimeout()` after `timeoutMs`. Every wait in the engine goes through here. */
export function withDeadline<T>(
  work: Promise<T>,
  timeoutMs: number,
  timers: Timers,
  onTimeout: () => Error,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = timers.set(() => reject(onTimeout()), timeoutMs)
    work.then(
      (value) => {
        timers.clear(timer)
        resolve(value)
      },
      (error: unknown) => {
        timers.clear(timer)
        reject(error)
      },
    )
  })
}

/** Resolves after `delayMs`. */
export function delay(delayMs: number, timers: Timers, background = false): Promise<void> {
  return new Promise((resolve) => {
    timers.set(resolve, delayMs, background)
  })
}

/** Milliseconds of the one monotonic clock that all threads of the process share; each counts its own from its own start. */
export const sharedMonotonic = (): number => Number(process.hrtime.bigint()) / 1e6
