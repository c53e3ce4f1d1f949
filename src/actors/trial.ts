/**
 * Jobs that may end the process they run in, and how a worker keeps them from taking each other along. A dangerous one starts alone of its
 * kind: the others that were granted with it have gone back first, and nothing is claimed while it is on trial, since whatever was
 * claimed might be another one, whose lease would then end with the process.
 * States: `free`; `held` (one was granted, and waits until the store knows of all that goes back); `running` (it runs, for less than
 * `TRIAL_MS`; after that it is no different from the others).
 */
import type { ClaimedJob } from '../backends/protocol/index.ts'
import type { TimerHandle, Timers } from '../clock.ts'
import type { JobActor } from './job-actor.ts'

/** How long a dangerous job has to run before others of its kind may start beside it. */
export const TRIAL_MS = 10_000
/** From so many crashes in a row on it is not taken for chance, however many a job may have. */
const DANGEROUS_CRASHES = 2

/** True for a job that has crashed, and would be dead with one more crash or has done so twice in a row. */
export function isDangerous({
  crashes,
  maxCrashes,
  attempt,
  maxAttempts,
}: Pick<ClaimedJob, 'crashes' | 'maxCrashes' | 'attempt' | 'maxAttempts'>): boolean {
  const isLastChance = crashes + 1 >= maxCrashes || attempt >= maxAttempts
  return crashes > 0 && (isLastChance || crashes >= DANGEROUS_CRASHES)
}

export class Trial {
  private readonly timers: Timers
  private readonly over: () => void
  private held: JobActor | null = null
  private running: JobActor | null = null
  private timer: TimerHandle = null

  /** `over` is called when one has run for so long that others may start. */
  constructor(timers: Timers, over: () => void) {
    this.timers = timers
    this.over = over
  }

  /** True while nothing may be claimed. */
  get isOn(): boolean {
    return this.held !== null || this.running !== null
  }

  /** True while one waits for its start, for which a slot is kept. */
  get isHolding(): boolean {
    return this.held !== null
  }

  /** False if another one is held or on trial. */
  hold(actor: JobActor): boolean {
    if (this.isOn) return false
    this.held = actor
    return true
  }

  /** The one that is held, to be started now. */
  start(): JobActor | null {
    const actor = this.held
    if (actor === null) return null
    this.held = null
    this.running = actor
    const over = (): void => {
      this.running = null
      this.over()
    }
    this.timer = this.timers.set(over, TRIAL_MS, true)
    return actor
  }

  /** Told of each attempt that is over; true if that was on trial. */
  ended(actor: JobActor): boolean {
    if (actor !== this.running) return false
    this.timers.clear(this.timer)
    this.running = null
    return true
  }

  /** Takes out the one that is held, if any. */
  takeHeld(): readonly JobActor[] {
    const actors = this.held === null ? [] : [this.held]
    this.held = null
    return actors
  }
}
