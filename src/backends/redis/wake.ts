/**
 * Wakes one idle worker, not all. A lane that became ready leaves one token in its wake list; of all processes that wait there, one
 * takes it. A worker that leaves work behind passes a token on. Everything here is a hint: a lost token costs the time of a poll.
 * States: `idle` (no worker wants hints), `waiting` (one blocking pop for all wanted lanes), `backing off` (the pop failed).
 */
import type { Clock, TimerHandle, Timers } from '../../clock.ts'
import type { LuaScript } from '../../lua/script.ts'
import { nonce, type Random } from '../../random.ts'
import type { HintListener, HintSubscription } from '../backend.ts'
import { laneOfWakeKey, nudgeKey, wakeKey } from './key.ts'
import type { LaneListener } from './lane-listener.ts'
import type { RedisSession } from './session.ts'

/** One blocking pop; long enough to cost nothing, short enough that a wait which died unseen is replaced. */
const WAIT_MS = 25_000
/** Pause between two pops, for the worker that the first one woke. */
const REARM_MS = 1
const BACKOFF_CAP_MS = 1_000
const BACKOFF_BASE_MS = 50
/** Tokens that may lie in one list: one worker wakes the next while there is work. */
const TOKENS_MAX = 1
/** How often a busy worker passes on that there is more. */
const PASS_ON_MS = 20

interface Subscriber {
  readonly lanes: ReadonlySet<string>
  readonly listener: HintListener
  isWanted: boolean
}

export interface WakeOptions {
  readonly session: RedisSession
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
}

export class Wake implements LaneListener {
  private readonly options: WakeOptions
  private readonly subscribers = new Set<Subscriber>()
  private readonly passedAt = new Map<string, number>()
  /** Lanes of the pop under way; null: none is. */
  private popping: ReadonlySet<string> | null = null
  private isNudged = false
  private readonly nudge: string
  /** A write that no replica needs to have. */
  private readonly hint: LuaScript
  private isClosed = false
  private failures = 0
  private timer: TimerHandle = null

  constructor(options: WakeOptions) {
    this.options = options
    this.hint = { ...options.session.scripts.wake_push, isWriting: false }
    this.nudge = nudgeKey(options.session.namespace, nonce(options.random))
  }

  /** The namespace's keys are in another slot than the lane's, so in a Cluster no script can reach both. */
  listFor(lane: string): string | null {
    const { namespace, servers } = this.options.session
    return servers.facts().isCluster || this.hasIdle(lane) ? null : wakeKey(namespace, lane)
  }

  ready(lane: string): void {
    if (!this.wakeOwn(lane)) this.push(lane)
  }

  left(lane: string, isClaimed: boolean): void {
    const now = this.options.clock.monotonic()
    if (isClaimed && now - (this.passedAt.get(lane) ?? Number.NEGATIVE_INFINITY) < PASS_ON_MS) return
    this.passedAt.set(lane, now)
    this.push(lane)
  }

  private hasIdle(lane: string): boolean {
    return [...this.subscribers].some(({ isWanted, lanes }) => isWanted && lanes.has(lane))
  }

  /** An idle worker of this process needs no token. */
  private wakeOwn(lane: string): boolean {
    for (const subscriber of this.subscribers) {
      if (!subscriber.isWanted || !subscriber.lanes.has(lane)) continue
      subscriber.listener(lane)
      return true
    }
    return false
  }

  private push(lane: string): void {
    const { session } = this.options
    session.servers.run(this.hint, [wakeKey(session.namespace, lane)], [TOKENS_MAX]).catch(() => {
      // The poll of whoever is idle finds the work.
    })
  }

  subscribe(lanes: readonly string[], listener: HintListener): HintSubscription {
    const subscriber: Subscriber = { lanes: new Set(lanes), listener, isWanted: false }
    this.subscribers.add(subscriber)
    const { servers } = this.options.session
    return {
      want: (isWanted) => {
        subscriber.isWanted = isWanted
        if (isWanted) this.wait()
      },
      get isReliable() {
        return servers.isWaiting
      },
      stop: () => this.subscribers.delete(subscriber),
    }
  }

  /** Starts the blocking pop; one that stands and lacks a lane is interrupted. */
  private wait(): void {
    if (this.isClosed || this.timer !== null) return
    const lanes = new Set([...this.subscribers].flatMap(({ isWanted, lanes }) => (isWanted ? [...lanes] : [])))
    if (lanes.size === 0) return
    if (this.popping !== null) {
      const { popping } = this
      if (![...lanes].every((lane) => popping.has(lane))) this.interrupt()
      return
    }
    this.popping = lanes
    const { session } = this.options
    const lists = [this.nudge, ...[...lanes].map((lane) => wakeKey(session.namespace, lane))]
    session.servers.pop(lists, WAIT_MS).then(
      (popped) => this.popped(popped === null || popped.list === this.nudge ? null : laneOfWakeKey(popped.list)),
      () => this.failed(),
    )
  }

  private interrupt(): void {
    if (this.isNudged) return
    this.isNudged = true
    const { servers } = this.options.session
    Promise.all([
      servers.run(this.hint, [this.nudge], [TOKENS_MAX]),
      servers.command('PEXPIRE', this.nudge, [this.nudge, 2 * WAIT_MS]),
    ]).catch(() => {
      // The pop ends by itself within its time.
    })
  }

  private popped(lane: string | null): void {
    this.popping = null
    this.isNudged = false
    this.failures = 0
    // Whoever wanted it is busy by now: somebody else may be idle.
    if (lane !== null && !this.wakeOwn(lane)) this.push(lane)
    // The woken worker claims first; it is probably busy then and wants no more of this.
    if (lane === null) this.wait()
    else this.timer = this.options.timers.set(() => this.waitAgain(), REARM_MS, true)
  }

  private failed(): void {
    this.popping = null
    this.isNudged = false
    if (this.isClosed) return
    const { random, timers } = this.options
    const waitMs = random.next() * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** Math.min(this.failures, 10))
    this.failures += 1
    this.timer = timers.set(() => this.waitAgain(), waitMs, true)
  }

  private waitAgain(): void {
    this.timer = null
    this.wait()
  }

  close(): void {
    this.isClosed = true
    this.options.timers.clear(this.timer)
  }
}
