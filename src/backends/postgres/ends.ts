/**
 * Hints that jobs have ended, told only while somebody waits for results: who waits says so on the channel of the namespace, and again
 * while it lasts; who ends jobs remembers that for a while. So ending a job costs nothing more while nobody waits, and a lost word
 * costs the time of a poll.
 */
import type { Clock, TimerHandle, Timers } from '../../clock.ts'
import { EndListeners } from '../end-listeners.ts'
import { ENDED, type Marks, markOf, WAITING } from './channel.ts'

const SAY_AGAIN_MS = 10_000
const REMEMBERED_MS = 30_000
/** Lanes remembered; with more it is as if somebody waited in every lane. */
const LANES_MAX = 1_000
const ANY = '*'

export interface EndsOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** Says words on the channel; null: this process tells nobody. */
  readonly notifier: { tell(word: string): void; close(): void } | null
  /** Makes sure that the channel is heard. */
  readonly listen: () => void
}

export class Ends {
  private readonly options: EndsOptions
  /** By the marks of lanes. */
  private readonly listeners = new EndListeners()
  private readonly waitedUntil = new Map<string, number>()
  private timer: TimerHandle = null
  private isArmed = false

  constructor(options: EndsOptions) {
    this.options = options
  }

  /** Returns a function that removes the listener. */
  add(lane: string, listener: () => void): () => void {
    const mark = markOf(lane)
    const stop = this.listeners.add(mark, listener)
    this.options.listen()
    this.options.notifier?.tell(WAITING + mark)
    this.arm()
    return stop
  }

  /** Whether anybody may want to hear of ends. */
  get isAwaited(): boolean {
    return this.waitedUntil.size > 0
  }

  /** Jobs of these lanes have ended here; null: of some lanes. */
  ended(lanes: ReadonlySet<string> | null): void {
    const { notifier, clock } = this.options
    if (notifier === null) return
    const now = clock.monotonic()
    for (const [mark, until] of this.waitedUntil) if (until <= now) this.waitedUntil.delete(mark)
    const isAny = this.waitedUntil.has(ANY)
    const marks = lanes === null ? [...this.waitedUntil.keys()] : [...lanes].map(markOf)
    for (const mark of marks) if (isAny || this.waitedUntil.has(mark)) notifier.tell(ENDED + mark)
  }

  heard({ waiting, ended }: { readonly waiting: Marks; readonly ended: Marks }): void {
    const until = this.options.clock.monotonic() + REMEMBERED_MS
    const isMany = waiting === null || this.waitedUntil.size + waiting.length > LANES_MAX
    if (isMany) this.waitedUntil.clear()
    for (const mark of isMany ? [ANY] : waiting) this.waitedUntil.set(mark, until)
    if (this.listeners.isAwaited) this.listeners.tell(ended)
  }

  close(): void {
    this.options.timers.clear(this.timer)
    this.options.notifier?.close()
  }

  private arm(): void {
    if (this.isArmed || this.options.notifier === null) return
    this.isArmed = true
    this.timer = this.options.timers.set(
      () => {
        this.isArmed = false
        if (!this.listeners.isAwaited) return
        for (const mark of this.listeners.awaited) this.options.notifier?.tell(WAITING + mark)
        this.arm()
      },
      SAY_AGAIN_MS,
      true,
    )
  }
}
