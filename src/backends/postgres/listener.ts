/**
 * Hears of new jobs over one connection of its own, and makes the next one when that is lost. Nothing is believed of it until it has heard
 * a word that was said over another connection: through a transaction pooler LISTEN seems to work and nothing ever comes.
 *
 * States: idle → connecting → listening → (heard the word) reliable → (lost) pausing → connecting …; closed from any of them.
 */
import type { Client } from 'pg'
import { type TimerHandle, withDeadline } from '../../clock.ts'
import { nonce } from '../../random.ts'
import { type Marks, probeOf, saidBy } from './channel.ts'
import { quoted } from './statement.ts'
import { backOffMs, type Wiring } from './wiring.ts'

const BACK_OFF = { baseMs: 50, maxMs: 2000 }
/** A connection that hears nothing, however often it is made, is not worth more than this. */
const DEAF_BACK_OFF = { baseMs: 10_000, maxMs: 120_000 }
/** A connection over which nothing comes back is dead, whatever the socket says. */
const ALIVE_EVERY_MS = 10_000
/** A connection that lived this long was a good one: the next failure is the first of a new row. */
const STEADY_MS = 1000

export interface ListenerOptions {
  readonly server: string
  readonly channel: string
  readonly wiring: Wiring
  /** Makes a connection, not yet open; another server at each attempt where there are several. */
  makeClient(attempt: number): Client
  /** Says a word on the channel over another connection. */
  say(payload: string): Promise<unknown>
  /** Jobs may be ready in the lanes with these marks; null: in some lane. */
  onHint(marks: readonly string[] | null): void
  /** Some running job may have been cancelled. */
  onCancelled(): void
  /** Somebody waits for ends, or jobs have ended. */
  onEnds?(said: { readonly waiting: Marks; readonly ended: Marks }): void
  readonly aliveEveryMs?: number
}

export class Listener {
  private readonly options: ListenerOptions
  private client: Client | undefined
  private life: Promise<void> | undefined
  private isHearing = false
  private isClosed = false
  private isWarned = false
  private onProbe: (nonce: string) => void = () => {}
  private wake: () => void = () => {}

  constructor(options: ListenerOptions) {
    this.options = options
  }

  /** Whether what is said on the channel now is heard. */
  get isReliable(): boolean {
    return this.isHearing
  }

  /** Does nothing when it has been started or closed. */
  start(): void {
    if (this.isClosed) return
    this.life ??= this.live()
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.isHearing = false
    this.client?.connection.stream.destroy()
    this.wake()
    await this.life
  }

  private async live(): Promise<void> {
    const { clock, random } = this.options.wiring
    let [failures, deafness] = [0, 0]
    for (let attempt = 0; !this.isClosed; attempt += 1) {
      const startedAt = clock.monotonic()
      const end = await this.liveOnce(attempt)
      if (this.isClosed) return
      deafness = end === 'deaf' ? deafness + 1 : 0
      if (clock.monotonic() - startedAt > STEADY_MS) failures = 0
      const waitMs =
        end === 'deaf' ? backOffMs(deafness - 1, random, DEAF_BACK_OFF) : backOffMs(failures, random, BACK_OFF)
      failures += 1
      await this.pause(waitMs)
    }
  }

  /** One connection from its first packet to its end. */
  private async liveOnce(attempt: number): Promise<'lost' | 'deaf'> {
    const { wiring, makeClient, onHint, onCancelled } = this.options
    const client = makeClient(attempt)
    this.client = client
    const ended = new Promise<void>((resolve) => {
      client.once('end', () => resolve())
    })
    // What is wrong is told by whatever waits for the connection.
    client.on('error', () => {})
    client.on('notification', ({ channel, payload = '' }) => {
      if (channel === this.options.channel) this.hear(payload)
    })
    try {
      await this.inTime(client.connect(), wiring.limits.connectMs)
      await this.inTime(client.query(`LISTEN ${quoted(this.options.channel)}`), wiring.limits.answerMs)
      // Whatever was said while nobody listened.
      onHint(null)
      onCancelled()
      this.options.onEnds?.({ waiting: [], ended: null })
      if (!(await this.hearsOthers(ended))) {
        this.warnOfDeafness()
        return 'deaf'
      }
      this.isHearing = true
      this.isWarned = false
      await this.whileAlive(client, ended)
      return 'lost'
    } catch {
      return 'lost'
    } finally {
      this.isHearing = false
      client.connection.stream.destroy()
      this.client = undefined
    }
  }

  private hear(payload: string): void {
    const said = saidBy(payload)
    if (said.kind === 'probe') this.onProbe(said.nonce)
    else if (said.kind === 'cancelled') this.options.onCancelled()
    else if (said.kind === 'ends') this.options.onEnds?.(said)
    else this.options.onHint(said.marks)
  }

  /** Rejects when the word could not even be said, or the connection was lost meanwhile. */
  private async hearsOthers(ended: Promise<void>): Promise<boolean> {
    const { say, wiring } = this.options
    const word = nonce(wiring.random)
    const heard = new Promise<boolean>((resolve) => {
      this.onProbe = (said) => {
        if (said === word) resolve(true)
      }
    })
    const lost = ended.then((): never => {
      throw new Error('lost')
    })
    const late = new Error('late')
    const hearing = withDeadline(heard, wiring.limits.answerMs, wiring.timers, () => late).catch(() => false)
    // Neither may be left without somebody who hears of its end.
    lost.catch(() => {})
    await Promise.race([say(probeOf(word)), lost])
    return Promise.race([hearing, lost])
  }

  private warnOfDeafness(): void {
    if (this.isWarned || this.isClosed) return
    this.isWarned = true
    const { server } = this.options
    const message = `PostgreSQL at ${server}: LISTEN hears nothing, as behind a transaction pooler, so idle workers poll; give a direct URL by 'listen=URL', or 'listen=off'`
    this.options.wiring.warn({ code: 'LISTEN', server }, message)
  }

  /** Asks again and again whether it still listens. Returns when the connection has ended; rejects when it is dead or deaf. */
  private async whileAlive(client: Client, ended: Promise<void>): Promise<void> {
    const { channel, wiring, aliveEveryMs = ALIVE_EVERY_MS } = this.options
    let isWatched = true
    let hasEnded = false
    void ended.then(() => {
      hasEnded = true
      if (isWatched) this.wake()
    })
    const text = 'SELECT FROM pg_listening_channels() AS channel WHERE channel = $1'
    try {
      for (;;) {
        await this.pause(aliveEveryMs)
        if (hasEnded || this.isClosed) return
        const { rowCount } = await this.inTime(client.query(text, [channel]), wiring.limits.answerMs)
        if (rowCount !== 1) throw new Error('it does not listen any more')
      }
    } finally {
      isWatched = false
    }
  }

  private inTime<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
    return withDeadline(work, timeoutMs, this.options.wiring.timers, () => new Error('late'))
  }

  /** Ends early when woken. */
  private async pause(waitMs: number): Promise<void> {
    const { timers } = this.options.wiring
    let timer: TimerHandle = null
    const woken = new Promise<void>((resolve) => {
      this.wake = resolve
      timer = timers.set(resolve, waitMs, true)
    })
    await woken
    timers.clear(timer)
  }
}
