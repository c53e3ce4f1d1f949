/**
 * Hears one channel, on a connection of its own that is opened when somebody first listens and then kept alive. A server that does not
 * permit it is not asked again: what is said there is only ever a hint.
 * States: idle → connecting → listening → (lost) pausing → connecting …; given up, or closed, from any of them.
 */
import type { TimerHandle } from '../../clock.ts'
import { replyWordOf } from './errors.ts'
import { Link } from './link.ts'
import type { Target, Wiring } from './wiring.ts'

const AGAIN_MS = 1_000

/** What was said; null: something may have been missed. */
export type OnMessage = (message: string | null) => void

export class Subscriber {
  private readonly targetFor: (channel: string) => Target
  private readonly wiring: Wiring
  private link: Link | null = null
  private onMessage: OnMessage | null = null
  private timer: TimerHandle = null
  private isClosed = false

  constructor(targetFor: (channel: string) => Target, wiring: Wiring) {
    this.targetFor = targetFor
    this.wiring = wiring
  }

  /** Does nothing when it listens already. */
  listen(channel: string, onMessage: OnMessage): void {
    if (this.isClosed || this.onMessage !== null) return
    this.onMessage = onMessage
    this.open(channel)
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.wiring.timers.clear(this.timer)
    await this.link?.close()
  }

  /** Anew each time, since the channel may be another node's by then. */
  private open(channel: string): void {
    try {
      const link: Link = new Link(this.targetFor(channel), this.wiring, {
        onReady: () => this.subscribe(link, channel),
        onLost: () => this.again(channel),
        onMessage: (message) => this.onMessage?.(message),
      })
      this.link = link
      link.nextAttempt().catch(() => this.again(channel))
    } catch {
      this.again(channel)
    }
  }

  private subscribe(link: Link, channel: string): void {
    // In lower case, or the driver does not know its own reply.
    link.send('subscribe', [channel]).then(
      () => this.onMessage?.(null),
      // Whatever else is wrong is told as a loss too.
      (error: unknown) => {
        if (replyWordOf(error) === 'NOPERM') void link.close()
      },
    )
  }

  private again(channel: string): void {
    void this.link?.close()
    this.link = null
    if (this.isClosed) return
    this.wiring.timers.clear(this.timer)
    this.timer = this.wiring.timers.set(() => this.open(channel), AGAIN_MS, true)
  }
}
