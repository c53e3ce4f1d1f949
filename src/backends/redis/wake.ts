/**
 * Wakes one idle worker, not all. A lane that became ready leaves one token in its wake list; of all processes that wait there, one
 * takes it. A worker that leaves work behind passes a token on. Everything here is a hint: a lost token costs the time of a poll.
 * States: `idle` (no worker wants hints), `waiting` (one blocking pop for all wanted lanes), `backing off` (the pop failed).
 */
import type { Clock, TimerHandle, Timers } from '../../clock.ts'
import type { Random } from '../../random.ts'
import type { HintListener, HintSubscription } from '../backend.ts'
import { laneOfWakeKey, wakeKey } from './key.ts'
import type { RedisSession } from './session.ts'
import type { LaneListener } from './store.ts'

/** One blocking pop; long enough to cost nothing, short enough that a wait which died unseen is replaced. */
const WAIT_MS = 25_000
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
  private isPopping = false
  private isClosed = false
  private failures = 0
  private timer: TimerHandle = null

  constructor(options: WakeOptions) {
    this.options = options
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
    session.servers.run(session.scripts.wake_push, [wakeKey(session.namespace, lane)], [TOKENS_MAX]).catch(() => {
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

  /** Starts the blocking pop unless it stands. Lanes wanted later are in the next one. */
  private wait(): void {
    if (this.isPopping || this.isClosed || this.timer !== null) return
    const lanes = new Set([...this.subscribers].flatMap(({ isWanted, lanes }) => (isWanted ? [...lanes] : [])))
    if (lanes.size === 0) return
    this.isPopping = true
    const { session } = this.options
    const lists = [...lanes].map((lane) => wakeKey(session.namespace, lane))
    session.servers.pop(lists, WAIT_MS).then(
      (popped) => this.popped(popped === null ? null : laneOfWakeKey(popped.list)),
      () => this.failed(),
    )
  }

  private popped(lane: string | null): void {
    this.isPopping = false
    this.failures = 0
    // Whoever wanted it is busy by now: somebody else may be idle.
    if (lane !== null && !this.wakeOwn(lane)) this.push(lane)
    this.wait()
  }

  private failed(): void {
    this.isPopping = false
    if (this.isClosed) return
    const { random, timers } = this.options
    const waitMs = random.next() * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** Math.min(this.failures, 10))
    this.failures += 1
    this.timer = timers.set(
      () => {
        this.timer = null
        this.wait()
      },
      waitMs,
      true,
    )
  }

  close(): void {
    this.isClosed = true
    this.options.timers.clear(this.timer)
  }
}
