/**
 * Keeps one connection to one server alive until it is closed: opens it, watches it, and opens the next one after a pause.
 *
 * States: idle → connecting → ready → (lost) pausing → connecting …; closed from any of them. A call goes out in `ready` alone.
 */
import { Connection } from './connection.ts'
import { closed, notConnected } from './errors.ts'
import { isSameServer, type ServerReport } from './server-facts.ts'
import type { RedisArgument, RedisReply } from './servers.ts'
import { backOffMs, type Target, type Wiring } from './wiring.ts'

/** A connection that lived this long was a good one: the next failure is the first of a new row. */
const STEADY_MS = 1000

type State = 'idle' | 'connecting' | 'ready' | 'pausing' | 'closed'

/** The end of one try to connect, awaited by any number, or none. */
interface Attempt {
  readonly outcome: Promise<void>
  succeed(): void
  fail(error: unknown): void
}

function newAttempt(): Attempt {
  let succeed = (): void => {}
  let fail = (_: unknown): void => {}
  const outcome = new Promise<void>((resolve, reject) => {
    succeed = resolve
    fail = reject
  })
  // Nobody needs to listen.
  outcome.catch(() => {})
  return { outcome, succeed, fail }
}

export interface LinkEvents {
  /** Ready; `isOther` when the server is another one than at the last handshake. Called before any call goes out. */
  onReady?(report: ServerReport, isOther: boolean): void
  onLost?(): void
  /** Of a channel that was subscribed to. */
  onMessage?(message: string): void
}

export class Link {
  readonly server: string
  private readonly target: Target
  private readonly wiring: Wiring
  private readonly events: LinkEvents
  private state: State = 'idle'
  private connection: Connection | undefined
  private attempt = newAttempt()
  private lastError: unknown
  private wake: () => void = () => {}
  private life: Promise<void> = Promise.resolve()
  private lastReport: ServerReport | undefined

  constructor(target: Target, wiring: Wiring, events: LinkEvents = {}) {
    this.server = target.server
    this.target = target
    this.wiring = wiring
    this.events = events
  }

  get isReady(): boolean {
    return this.state === 'ready' && this.connection?.isOpen === true
  }

  /** What the server told at the last handshake. */
  get report(): ServerReport | undefined {
    return this.lastReport
  }

  /** Settles with the try that is under way or comes next; starts the first one. */
  nextAttempt(): Promise<void> {
    if (this.state === 'closed') return Promise.reject(closed(`Redis at ${this.server}`))
    if (this.isReady) return Promise.resolve()
    if (this.state === 'idle') this.life = this.live()
    return this.attempt.outcome
  }

  /** Resolves when ready, waits for a try under way, but not for a pause: then it rejects at once. */
  reach(): Promise<void> {
    return this.state === 'pausing' ? Promise.reject(notConnected(this.server, this.lastError)) : this.nextAttempt()
  }

  send(name: string, args: readonly RedisArgument[], timeoutMs?: number): Promise<RedisReply> {
    if (this.state === 'closed') return Promise.reject(closed(`Redis at ${this.server}`))
    if (this.state !== 'ready' || this.connection === undefined) {
      return Promise.reject(notConnected(this.server, this.lastError))
    }
    return this.connection.send(name, args, timeoutMs)
  }

  /** On the connection of what was sent last: another one could lead to another server. Zero when there is none. */
  confirm(replicas: number): Promise<number> {
    return this.connection?.confirm(replicas) ?? Promise.resolve(0)
  }

  /** Ends the socket and what is under way; resolves when it is gone. */
  async close(): Promise<void> {
    this.state = 'closed'
    this.attempt.fail(closed(`Redis at ${this.server}`))
    this.connection?.drop()
    this.wake()
    await this.life
  }

  private async live(): Promise<void> {
    let failures = 0
    for (let number = 0; this.state !== 'closed'; number += 1) {
      const startedMs = this.wiring.clock.monotonic()
      await this.liveOnce(number)
      if (this.isClosed()) return
      const wasSteady = this.lastError === undefined && this.wiring.clock.monotonic() - startedMs > STEADY_MS
      if (wasSteady) failures = 0
      this.state = 'pausing'
      await this.pause(backOffMs(failures, this.wiring.random))
      failures += 1
    }
  }

  /** One connection from its first packet to its end. */
  private async liveOnce(number: number): Promise<void> {
    this.state = 'connecting'
    let connection: Connection | undefined
    try {
      connection = new Connection(this.target, this.wiring, { number, onMessage: this.events.onMessage })
      this.connection = connection
      const report = await connection.open()
      if (this.isClosed()) return
      this.becomeReady(report)
      await connection.ended
      if (!this.isClosed()) this.events.onLost?.()
    } catch (error) {
      this.lastError = error
      const { attempt } = this
      this.attempt = newAttempt()
      attempt.fail(error)
    } finally {
      await connection?.ended
      this.connection = undefined
    }
  }

  private becomeReady(report: ServerReport): void {
    const isOther = this.lastReport !== undefined && !isSameServer(this.lastReport, report)
    this.lastReport = report
    this.lastError = undefined
    this.state = 'ready'
    this.events.onReady?.(report, isOther)
    const { attempt } = this
    this.attempt = newAttempt()
    attempt.succeed()
  }

  private pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.wiring.timers.set(resolve, delayMs)
      this.wake = () => {
        this.wiring.timers.clear(timer)
        resolve()
      }
    })
  }

  /** Asked after every wait, where it may have changed. */
  private isClosed(): boolean {
    return this.state === 'closed'
  }
}
