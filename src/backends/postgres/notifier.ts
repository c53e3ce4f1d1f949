/**
 * Tells other processes of new jobs, after their commit and by a statement of its own. A notification takes a lock of the whole database
 * at its commit, so at most one goes out in 10 ms, for all lanes that became ready meanwhile; the first after a pause goes at once.
 * A lost one costs latency only: a poll stands behind it.
 */
import type { Clock, TimerHandle, Timers } from '../../clock.ts'
import { CANCELLED, payloadOf } from './channel.ts'
import type { Link, Prepared } from './link.ts'

const EVERY_MS = 10

/**
 * Takes the channel and the payload. Alone it writes nothing to the log, so its commit waits for no disk (500 of them: 3 flushes in all,
 * 2026-11-30). In a transaction of the caller's it is said when that commits, and not at all when it does not.
 */
export const NOTIFY: Prepared = { name: 'notify', text: 'SELECT pg_notify($1, $2)' }

export interface NotifierOptions {
  readonly link: Pick<Link, 'query'>
  readonly channel: string
  readonly clock: Clock
  readonly timers: Timers
  /** What is said for all that was told; as a rule that lanes may be ready. */
  readonly payloadOf?: (told: ReadonlySet<string | null>) => string
}

export class Notifier {
  private readonly options: NotifierOptions
  private readonly lanes = new Set<string | null>()
  private isCancelDue = false
  private sentAt = Number.NEGATIVE_INFINITY
  private timer: TimerHandle = null
  private isArmed = false
  private isSending = false
  private isClosed = false

  constructor(options: NotifierOptions) {
    this.options = options
  }

  /** Jobs may be ready in this lane; null stands for some lane. */
  tell(lane: string | null): void {
    if (this.isClosed) return
    this.lanes.add(lane)
    this.next()
  }

  /** A running job was asked to stop, or taken from its owner. */
  tellCancelled(): void {
    if (this.isClosed) return
    this.isCancelDue = true
    this.next()
  }

  close(): void {
    this.isClosed = true
    this.isCancelDue = false
    this.lanes.clear()
    this.options.timers.clear(this.timer)
  }

  /** Sends now, or when it is time; what is under way is waited for, so that a slow server is not told the more. */
  private next(): void {
    if (this.isArmed || this.isSending) return
    if (this.lanes.size === 0 && !this.isCancelDue) return
    const { clock, timers } = this.options
    const waitMs = this.sentAt + EVERY_MS - clock.monotonic()
    if (waitMs <= 0) {
      this.send()
      return
    }
    this.isArmed = true
    this.timer = timers.set(() => {
      this.isArmed = false
      this.send()
    }, waitMs)
  }

  private send(): void {
    const { link, channel, clock } = this.options
    const payload = this.isCancelDue ? CANCELLED : (this.options.payloadOf ?? payloadOf)(this.lanes)
    if (this.isCancelDue) this.isCancelDue = false
    else this.lanes.clear()
    this.sentAt = clock.monotonic()
    this.isSending = true
    // The poll of whoever is idle finds the work.
    const sent = link.query(NOTIFY, [channel, payload]).catch(() => {})
    void sent.then(() => {
      this.isSending = false
      if (!this.isClosed) this.next()
    })
  }
}
