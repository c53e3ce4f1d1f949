/**
 * Hints that jobs have ended, told only while somebody waits for results: who waits says so in the lane itself, for a while and again
 * while it lasts; a turn that settles in such a lane is told, and says so on a channel of the namespace. So ending a job costs
 * nothing more while nobody waits, and a lost word costs the time of a poll.
 */
import type { Clock, TimerHandle, Timers } from '../../clock.ts'
import type { LuaScript } from '../../lua/script.ts'
import { EndListeners } from '../end-listeners.ts'
import { endsChannel } from './key.ts'
import type { RedisSession } from './session.ts'

const SAY_AGAIN_MS = 10_000
const REMEMBERED_MS = 30_000
/** How often this process tells of one lane. */
const TELL_MS = 20

export interface EndsOptions {
  readonly session: RedisSession
  readonly clock: Clock
  readonly timers: Timers
}

export class Ends {
  private readonly options: EndsOptions
  private readonly listeners = new EndListeners()
  /** A write that no replica needs to have. */
  private readonly wait: LuaScript
  private readonly told = new Set<string>()
  private timer: TimerHandle = null
  private isArmed = false
  private isTelling = false
  private isClosed = false

  constructor(options: EndsOptions) {
    this.options = options
    this.wait = { ...options.session.scripts.lane_wait, isWriting: false }
  }

  /** Returns a function that removes the listener. */
  add(lane: string, listener: () => void): () => void {
    const { session } = this.options
    session.servers.listen(endsChannel(session.namespace), (heard) => {
      this.listeners.tell(heard === null ? null : [heard])
    })
    this.say(lane)
    this.arm()
    return this.listeners.add(lane, listener)
  }

  /** Jobs of a lane in which somebody waits have ended here. Those of a moment are told together. */
  ended(lane: string): void {
    this.told.add(lane)
    if (this.isTelling) return
    this.isTelling = true
    this.tell()
  }

  close(): void {
    this.isClosed = true
    this.options.timers.clear(this.timer)
  }

  private tell(): void {
    const { session, timers } = this.options
    if (this.isClosed || this.told.size === 0) {
      this.isTelling = false
      return
    }
    const channel = endsChannel(session.namespace)
    for (const lane of this.told) {
      // Refused or lost: whoever waits polls.
      session.servers.command('PUBLISH', channel, [channel, lane]).catch(() => {})
    }
    this.told.clear()
    timers.set(() => this.tell(), TELL_MS, true)
  }

  private say(lane: string): void {
    const { session } = this.options
    session.servers.run(this.wait, session.keys(lane).of(session.scripts.lane_wait), [REMEMBERED_MS]).catch(() => {})
  }

  private arm(): void {
    if (this.isArmed) return
    this.isArmed = true
    this.timer = this.options.timers.set(
      () => {
        this.isArmed = false
        if (!this.listeners.isAwaited) return
        for (const lane of this.listeners.awaited) this.say(lane)
        this.arm()
      },
      SAY_AGAIN_MS,
      true,
    )
  }
}
