/** Tells the store that a server is another one than before, and knows when the store has dealt with it. */
import { type Timers, withDeadline } from '../clock.ts'

/** A listener that hangs must not stop claims for ever. */
const LISTENER_WAIT_MS = 2000

export type ChangeListener = () => Promise<void>

export class Changes {
  private readonly listeners = new Set<ChangeListener>()
  private readonly timers: Timers
  private last: Promise<unknown> = Promise.resolve()
  private unsettled = 0

  constructor(timers: Timers) {
    this.timers = timers
  }

  add(listener: ChangeListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Calls the listeners before it returns; `settled` waits for them from now on. */
  announce(): void {
    const work = Promise.allSettled([...this.listeners].map(async (listener) => listener()))
    this.unsettled += 1
    const bounded = withDeadline(work, LISTENER_WAIT_MS, this.timers, () => new Error('late'))
      .catch(() => {})
      .finally(() => {
        this.unsettled -= 1
      })
    this.last = Promise.all([this.last, bounded])
  }

  get isSettled(): boolean {
    return this.unsettled === 0
  }

  async settled(): Promise<void> {
    for (let seen: unknown; seen !== this.last; ) {
      seen = this.last
      await seen
    }
  }
}
