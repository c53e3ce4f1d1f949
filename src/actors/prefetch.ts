/**
 * Jobs that a dispatcher was given beyond its free slots, and how many are worth having: only while handlers take a few
 * milliseconds at most and more work waits, so that a slot never stands empty for a round trip to the store. What is held longer
 * than `HELD_MS` goes back uncharged, so that it never waits here while another worker is idle.
 * A held job has its lease, which is renewed, and has not been started.
 */
import type { TimerHandle, Timers } from '../clock.ts'
import type { JobActor } from './job-actor.ts'

/** Longest a job may wait here. */
export const HELD_MS = 50
/** What is held should be under way within this. */
const DRAIN_MS = 10
/** Handlers that take longer on average gain nothing from a round trip saved. */
const SLOW_MS = 5
/** Weight of the latest attempt in the average. */
const WEIGHT = 0.1

interface Held {
  readonly actor: JobActor
  readonly since: number
}

export class Prefetch {
  private readonly limit: number
  private held: Held[] = []
  private averageMs: number | null = null
  private timer: TimerHandle = null

  /** `limit` 0 turns it off. */
  constructor(limit: number) {
    this.limit = limit
  }

  get size(): number {
    return this.held.length
  }

  /** Whether another one may be held beside those that start at once in `free` slots. */
  hasRoom(free: number): boolean {
    return this.held.length - Math.max(0, free) < this.limit
  }

  /** Told how long each attempt took. */
  record(durationMs: number): void {
    this.averageMs = this.averageMs === null ? durationMs : this.averageMs + WEIGHT * (durationMs - this.averageMs)
  }

  /** Told when a job had to be given back: a slot was busy for as long, whatever the ended attempts said before. */
  turnedSlow(): void {
    this.averageMs = Math.max(this.averageMs ?? 0, HELD_MS)
  }

  /** How many jobs beyond the free slots are worth having, those held already included. */
  extra(slots: number): number {
    if (this.averageMs === null || this.averageMs > SLOW_MS) return 0
    const wanted = Math.floor((slots * DRAIN_MS) / Math.max(this.averageMs, 0.01))
    return Math.min(this.limit, wanted)
  }

  hold(actor: JobActor, now: number): void {
    this.held.push({ actor, since: now })
  }

  /** The one that has waited longest. */
  take(): JobActor | undefined {
    return this.held.shift()?.actor
  }

  /** Calls `overdue` when something has been held for `HELD_MS`; once, and only if anything is held now. */
  watch(timers: Timers, overdue: () => void): void {
    if (this.held.length === 0 || this.timer !== null) return
    this.timer = timers.set(() => {
      this.timer = null
      overdue()
    }, HELD_MS)
  }

  unwatch(timers: Timers): void {
    timers.clear(this.timer)
    this.timer = null
  }

  /** Takes out all that were held since `since` or before. */
  takeHeldSince(since: number): readonly JobActor[] {
    const overdue = this.held.filter((each) => each.since <= since)
    this.held = this.held.filter((each) => each.since > since)
    return overdue.map(({ actor }) => actor)
  }
}
