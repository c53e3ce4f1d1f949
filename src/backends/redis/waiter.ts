/**
 * The one blocking wait of a store, on a connection of its own that is opened with the first wait and then kept alive.
 * A wait that the server does not end in time drops the socket; one that is cut rejects, and the caller pauses.
 */
import { HoldfastError } from '../../errors.ts'
import { closed, replyWordOf } from './errors.ts'
import { Link } from './link.ts'
import type { RedisReply } from './servers.ts'
import type { Target, Wiring } from './wiring.ts'

/** How much later than the server the client gives up. */
const GRACE_MS = 2000

export interface Popped {
  readonly list: string
  readonly value: string
}

export class Waiter {
  private readonly targetFor: (list: string) => Target
  private readonly wiring: Wiring
  private readonly onFailure: (list: string, error: unknown) => void
  private link: Link | undefined
  private isBusy = false
  private isBlocked = false
  private isClosed = false

  /** `targetFor` is asked before each wait; `onFailure` hears why one failed. */
  constructor(
    targetFor: (list: string) => Target,
    wiring: Wiring,
    onFailure: (list: string, error: unknown) => void = () => {},
  ) {
    this.targetFor = targetFor
    this.wiring = wiring
    this.onFailure = onFailure
  }

  get isWaiting(): boolean {
    return this.isBlocked && this.link?.isReady === true
  }

  async pop(lists: readonly string[], timeoutMs: number): Promise<Popped | null> {
    if (this.isBusy) throw new HoldfastError('INTERNAL', 'two blocking waits at once')
    this.isBusy = true
    try {
      return await this.block(lists, timeoutMs)
    } catch (error) {
      if (replyWordOf(error) === 'UNBLOCKED') return null
      if (this.isClosed) throw closed('the store')
      this.onFailure(lists[0] ?? '', error)
      throw error
    } finally {
      this.isBusy = false
      this.isBlocked = false
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.link?.close()
  }

  private async block(lists: readonly string[], timeoutMs: number): Promise<Popped | null> {
    const link = this.linkFor(lists[0] ?? '')
    await link.reach()
    this.isBlocked = true
    // Zero would wait for ever.
    return readPop(await link.send('BLPOP', [...lists, Math.max(timeoutMs, 1) / 1000], timeoutMs + GRACE_MS))
  }

  private linkFor(list: string): Link {
    if (this.isClosed) throw closed('the store')
    const target = this.targetFor(list)
    if (this.link?.server !== target.server) {
      void this.link?.close()
      this.link = new Link(target, this.wiring)
    }
    return this.link
  }
}

function readPop(reply: RedisReply): Popped | null {
  if (!Array.isArray(reply)) return null
  const [list, value] = reply
  return { list: String(list), value: String(value) }
}
