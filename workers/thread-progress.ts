/**
 * `ctx.progress` of one attempt in a thread: the first value goes to the main thread at once, what follows within an interval as
 * its latest value when that is over, or with the end of the attempt. So a handler that reports without end floods nobody.
 * Log lines are not gathered so, see `log-window.ts`: the last one before a thread dies is the one that is wanted.
 */
import type { HoldfastError } from '../src/errors.ts'
import { sendable } from './clonable.ts'
import type { MainLink, TaskScope } from './main-link.ts'

const INTERVAL_MS = 250

export class ThreadProgress {
  readonly #scope: TaskScope
  readonly #link: MainLink
  #latest: { readonly value: unknown } | null = null
  #sentAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #lost: HoldfastError | null = null

  constructor(scope: TaskScope, link: MainLink) {
    this.#scope = scope
    this.#link = link
    scope.onEnd = () => this.#flush()
  }

  report(reported: unknown): Promise<void> {
    // A copy of it as it is now: the handler may go on to change it.
    let value: unknown
    try {
      value = sendable(reported, 'progress')
    } catch (error) {
      return rejected(error)
    }
    if (this.#lost !== null) return rejected(this.#lost)
    const waitMs = this.#sentAt + INTERVAL_MS - performance.now()
    if (waitMs <= 0 || this.#scope.isEnded) return this.#send(value)
    this.#latest = { value }
    this.#timer ??= setTimeout(() => this.#flush(), waitMs).unref()
    return Promise.resolve()
  }

  #send(value: unknown): Promise<void> {
    this.#latest = null
    this.#sentAt = performance.now()
    const { task } = this.#scope
    const stored = this.#link.call(this.#scope, (call) => ({ type: 'progress', task, call, value })) as Promise<void>
    stored.catch((error: HoldfastError) => {
      if (error.code === 'LEASE_LOST') this.#lost = error
    })
    return stored
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#latest !== null) void this.#send(this.#latest.value)
  }
}

/** A rejection that nobody has to await: a handler may drop the promise without ending its thread. */
function rejected(error: unknown): Promise<never> {
  const promise = Promise.reject(error)
  promise.catch(() => undefined)
  return promise
}
