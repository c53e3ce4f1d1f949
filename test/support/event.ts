/** Waits of tests: for an event of a worker, for a condition, for a gate. Each has a deadline and says what it waited for. */
import { setImmediate } from 'node:timers/promises'
import type { Worker, WorkerEvents } from 'holdfast'

const DEADLINE_MS = 10_000

/** A promise and the means to settle it from outside. */
export interface Gate<T = void> {
  readonly passed: Promise<T>
  open(value: T): void
}

export function gate<T = void>(): Gate<T> {
  let open: (value: T) => void = () => {}
  const passed = new Promise<T>((resolve) => {
    open = resolve
  })
  return { passed, open }
}

/** Settles as `work`, or fails after the deadline naming `what`. */
export async function within<T>(work: Promise<T>, what: string, deadlineMs = DEADLINE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${deadlineMs} ms`)), deadlineMs)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** What the next event of that name tells, from now on. */
export function nextEvent<E extends keyof WorkerEvents>(worker: Worker, event: E): Promise<WorkerEvents[E][0]> {
  const next = new Promise<WorkerEvents[E][0]>((resolve) => {
    worker.once(event, ((told: WorkerEvents[E][0]) => resolve(told)) as never)
  })
  return within(next, `event ${event}`)
}

/** Collects every event of that name. */
export function eventsOf<E extends keyof WorkerEvents>(worker: Worker, event: E): WorkerEvents[E][0][] {
  const seen: WorkerEvents[E][0][] = []
  worker.on(event, ((told: WorkerEvents[E][0]) => seen.push(told)) as never)
  return seen
}

type Found<T> = Exclude<T, false | null | undefined>

/** Looks until `condition` gives something other than false, null or undefined. */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  what: string,
  deadlineMs = DEADLINE_MS,
): Promise<Found<T>> {
  const until = performance.now() + deadlineMs
  for (;;) {
    const value = await condition()
    if (value !== false && value !== null && value !== undefined) return value as Found<T>
    if (performance.now() > until) throw new Error(`${what}: not within ${deadlineMs} ms`)
    await setImmediate()
  }
}

/** The error that `work` rejects with; a success fails the test. */
export async function rejection(work: Promise<unknown> | (() => unknown)): Promise<Error & { code?: string }> {
  try {
    await (typeof work === 'function' ? work() : work)
  } catch (error) {
    return error as Error & { code?: string }
  }
  throw new Error('expected a rejection')
}

/** The code that `work` rejects with. */
export async function codeOf(work: Promise<unknown> | (() => unknown)): Promise<string | undefined> {
  return (await rejection(work)).code
}
