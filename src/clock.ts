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

/** Longest delay that the platform's timers take; a longer wait is cut to it and the caller looks again. */
const TIMER_DELAY_MAX_MS = 2 ** 31 - 1

export const systemTimers: Timers = {
  set(run, delayMs, background = false) {
    const handle = setTimeout(run, Math.min(Math.max(0, delayMs), TIMER_DELAY_MAX_MS))
    if (background) handle.unref()
    return handle
  },
  clear(handle) {
    clearTimeout(handle as NodeJS.Timeout)
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
