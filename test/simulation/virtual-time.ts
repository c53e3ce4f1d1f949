/**
 * Virtual time: one queue of events for a whole simulated system, and the clocks and timers that its processes are given.
 * An event fires, the real microtasks it caused drain, then the next one fires: nothing else makes time pass.
 * A process can be paused (what is due waits and fires late), killed (never fires again) or have its wall clock moved.
 * All that reaches a process comes through its own timers, so a paused process also receives nothing.
 */
import type { Clock, TimerHandle, Timers } from '#dist/src/clock.js'
import type { SeededRandom } from './random.ts'

// Taken before any test may replace it. An awaited setImmediate costs 3.2 µs here (2026-11-29) and drains every microtask.
const immediate = setImmediate

interface Event {
  at: number
  /** Deferred work comes after all timers of the same moment. */
  readonly phase: 0 | 1
  tie: number
  sequence: number
  readonly owner: VirtualProcess | null
  run: (() => void) | null
}

const isBefore = (a: Event, b: Event): boolean =>
  a.at !== b.at
    ? a.at < b.at
    : a.phase !== b.phase
      ? a.phase < b.phase
      : a.tie !== b.tie
        ? a.tie < b.tie
        : a.sequence < b.sequence

/** A binary heap; cancelled events stay in it with `run` set to null and are skipped. */
class EventQueue {
  private readonly heap: Event[] = []

  push(event: Event): void {
    this.heap.push(event)
    let index = this.heap.length - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = this.heap[parent]
      if (above === undefined || !isBefore(event, above)) break
      this.heap[index] = above
      index = parent
    }
    this.heap[index] = event
  }

  peek(): Event | undefined {
    return this.heap[0]
  }

  pop(): Event | undefined {
    const top = this.heap[0]
    const last = this.heap.pop()
    if (last !== undefined && last !== top) this.sink(last)
    return top
  }

  private sink(event: Event): void {
    let index = 0
    for (;;) {
      const left = this.heap[2 * index + 1]
      const right = this.heap[2 * index + 2]
      const child = left !== undefined && right !== undefined && isBefore(right, left) ? right : left
      if (child === undefined || !isBefore(child, event)) break
      this.heap[index] = child
      index = child === left ? 2 * index + 1 : 2 * index + 2
    }
    this.heap[index] = event
  }
}

export interface WorldOptions {
  /** Wall-clock time at virtual time 0. */
  readonly startMs?: number
  /** Orders events of the same moment by chance; without it they fire in the order they were set. */
  readonly tieBreak?: SeededRandom | null
  /** Events after which the run is given up as a livelock. */
  readonly budget?: number
}

/** A run that fired more events than its budget: something spins without time passing. */
export class LivelockError extends Error {
  constructor(budget: number, at: number) {
    super(`more than ${budget} events by virtual time ${at} ms: the system spins`)
    this.name = 'LivelockError'
  }
}

export class World {
  readonly startMs: number
  private readonly queue = new EventQueue()
  private readonly tieBreak: SeededRandom | null
  private readonly budget: number
  private virtualMs = 0
  private sequence = 0
  private fired = 0

  constructor({ startMs = 1_800_000_000_000, tieBreak = null, budget = 1_000_000 }: WorldOptions = {}) {
    this.startMs = startMs
    this.tieBreak = tieBreak
    this.budget = budget
  }

  /** Milliseconds since the world began. */
  get time(): number {
    return this.virtualMs
  }

  get eventsFired(): number {
    return this.fired
  }

  /** Something the world itself does after `delayMs`: a message on its way, a fault. */
  after(delayMs: number, run: () => void): void {
    this.schedule(null, run, { delayMs, phase: 0 })
  }

  schedule(
    owner: VirtualProcess | null,
    run: () => void,
    { delayMs, phase }: { readonly delayMs: number; readonly phase: 0 | 1 },
  ): Event {
    const delay = Number.isFinite(delayMs) ? Math.max(0, delayMs) : 2 ** 31 - 1
    this.sequence += 1
    const tie = this.tieBreak === null ? 0 : this.tieBreak.bits()
    const event: Event = { at: this.virtualMs + delay, phase, tie, sequence: this.sequence, owner, run }
    this.queue.push(event)
    return event
  }

  /** Puts back an event that fell due while its process was paused: ahead of its moment, in the order it is put back. */
  requeue(event: Event): void {
    event.at = this.virtualMs
    event.tie = -1
    this.sequence += 1
    event.sequence = this.sequence
    this.queue.push(event)
  }

  process(name: string): VirtualProcess {
    return new VirtualProcess(this, name)
  }

  /** Lets everything that is ready to run without time passing do so. */
  async settle(): Promise<void> {
    await new Promise<void>((resolve) => {
      immediate(resolve)
    })
  }

  /**
   * Fires events in order until virtual time `untilMs`, or until `isDone()`. Time then stands at `untilMs`, or at the
   * last event fired. Rejects with a LivelockError once the budget of the world is spent.
   */
  async run(untilMs: number, isDone: () => boolean = () => false): Promise<void> {
    await this.settle()
    while (!isDone()) {
      const event = this.queue.peek()
      if (event === undefined || event.at > untilMs) {
        this.virtualMs = Math.max(this.virtualMs, untilMs)
        return
      }
      this.queue.pop()
      await this.fire(event)
    }
  }

  private async fire(event: Event): Promise<void> {
    const { owner, run } = event
    if (run === null || owner?.isKilled === true) return
    this.virtualMs = Math.max(this.virtualMs, event.at)
    if (owner?.isPaused === true) {
      owner.hold(event)
      return
    }
    this.fired += 1
    if (this.fired > this.budget) throw new LivelockError(this.budget, this.virtualMs)
    event.run = null
    run()
    await this.settle()
  }
}

/** The clock and the timers of one simulated process (or of the store's server). */
export class VirtualProcess implements Clock, Timers {
  readonly name: string
  isPaused = false
  isKilled = false
  private readonly world: World
  private wallOffsetMs = 0
  private held: Event[] = []

  constructor(world: World, name: string) {
    this.world = world
    this.name = name
  }

  now(): number {
    return Math.floor(this.world.startMs + this.world.time + this.wallOffsetMs)
  }

  monotonic(): number {
    return this.world.time
  }

  set(run: () => void, delayMs: number): TimerHandle {
    return this.world.schedule(this, run, { delayMs, phase: 0 })
  }

  clear(handle: TimerHandle): void {
    if (typeof handle === 'object' && handle !== null && 'run' in handle) handle.run = null
  }

  defer(run: () => void): void {
    this.world.schedule(this, run, { delayMs: 0, phase: 1 })
  }

  /** Moves the wall clock; the monotonic one goes on as before. */
  jumpWallClock(byMs: number): void {
    this.wallOffsetMs += byMs
  }

  pause(): void {
    this.isPaused = true
  }

  /** What fell due meanwhile fires now, in the order in which it was due. */
  resume(): void {
    this.isPaused = false
    const held = this.held
    this.held = []
    for (const event of held) this.world.requeue(event)
  }

  kill(): void {
    this.isKilled = true
    this.held = []
  }

  /** Called by the world for an event that is due while the process is paused. */
  hold(event: Event): void {
    this.held.push(event)
  }
}
