/**
 * Runs handler modules of one kind of isolation: a queue before a number of slots, each slot a thread or a process. What a slot
 * is made of is the business of its two hosts, `thread-host.ts` and `process-host.ts`; who waits, who runs, and what becomes of a
 * slot that cannot be freed is decided here. Owned by `pool-actor.ts`.
 */
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { RunReply } from '../../workers/handler-protocol.ts'
import type { Timers } from '../clock.ts'
import { DEFAULTS } from '../config.ts'
import { HoldfastError } from '../errors.ts'
import { toFailure } from '../failure.ts'
import type { Isolation } from '../isolation.ts'
import type { LostSlots } from './lost-slots.ts'
import {
  crashOf,
  PoolRun,
  type RunOwner,
  type ThreadOutcome,
  type ThreadRun,
  type ThreadServices,
  type ThreadTask,
  takenBack,
} from './thread-run.ts'

/** Threads and processes beyond the warm ones end after this long without work. */
export const IDLE_MS = 30_000
/** How long `stop` waits for what does not end. */
export const STOP_DEADLINE_MS = 5_000

export interface HostOptions {
  readonly isolation: Isolation
  /** The modules; runs name them by position. */
  readonly hrefs: readonly string[]
  readonly slots: number
  readonly timers: Timers
  readonly lost: LostSlots
  /** Told when a thread or process died with no attempt in it, such as by a timer that a handler left behind. */
  readonly onIdleCrash: (error: unknown) => void
}

export abstract class ModuleHost implements RunOwner {
  protected readonly options: HostOptions
  /** Those that wait and those that run. */
  protected readonly runs = new Map<number, PoolRun>()
  protected slots: number
  private readonly queue: PoolRun[] = []
  private running = 0
  private lastRun = 0

  constructor(options: HostOptions) {
    this.options = options
    this.slots = options.slots
  }

  /** How many threads or processes there are, those that start included, those that were told to end not. */
  abstract get size(): number
  /** Starts the warm ones and loads every module in each, `setup()` included. Throws HANDLER_MODULE_INVALID naming the file. */
  abstract load(): Promise<void>
  abstract abort(run: PoolRun): void
  /** Gives the run to a free thread or process. */
  protected abstract send(run: PoolRun): void
  /** Ends the thread or process of a run; the promise settles when it is gone. Null: it had none. */
  protected abstract end(run: PoolRun): Promise<void> | null
  /** Deals with what was sent before an outcome; `sent` is how many messages, null when nobody can say. */
  protected abstract drain(run: PoolRun, sent: number | null): void
  protected abstract resized(): void
  /** Ends all threads or processes. */
  protected abstract endAll(): Promise<void>

  /** Null: the module was not given to this host. */
  run(task: ThreadTask, services: ThreadServices): ThreadRun | null {
    const module = this.options.hrefs.indexOf(task.module.href)
    if (module < 0) return null
    this.lastRun += 1
    const run = new PoolRun({ number: this.lastRun, module, task, services, owner: this })
    this.runs.set(this.lastRun, run)
    if (this.running >= this.slots) this.queue.push(run)
    else this.begin(run)
    return run
  }

  /** Takes a run that waits out of the queue. */
  drop(run: PoolRun): void {
    const index = this.queue.indexOf(run)
    if (index >= 0) this.queue.splice(index, 1)
    this.settle(run, takenBack(run), 0)
  }

  /** The slot is free when its thread or process is gone, or does not go: then it is lost, and another takes its place. */
  kill(run: PoolRun): void {
    const gone = this.end(run)
    if (gone === null) {
      this.over(run, crashOf(run, null), null)
      return
    }
    const { timers, lost, isolation } = this.options
    const timer = timers.set(() => {
      if (run.state !== 'killed') return
      run.state = 'lost'
      const { jobId, type, attempt } = run.parts.task.job
      lost.add({ jobId, type, attempt, where: isolation.kind }, gone)
      this.over(run, crashOf(run, null), null)
    }, DEFAULTS.lostAfterMs)
    void gone.then(() => {
      timers.clear(timer)
      this.over(run, crashOf(run, null), null)
    })
  }

  resize(slots: number): void {
    this.slots = slots
    this.resized()
    this.fill()
  }

  /** What waits was never started and may be given back; what runs crashes. */
  stop(): Promise<void> {
    const failure = toFailure(new HoldfastError('SHUTTING_DOWN', 'the pool stopped before the attempt was started'))
    for (const run of this.queue.splice(0)) this.settle(run, { kind: 'failed', failure }, 0)
    return this.endAll()
  }

  /** As many stay up without work: one for each core at most. */
  protected get warm(): number {
    return Math.min(this.slots, availableParallelism())
  }

  protected pathOf(position: number): string {
    return fileURLToPath(this.options.hrefs[position] ?? '')
  }

  protected replied(run: PoolRun, [sent, output, failure]: RunReply): void {
    this.over(run, failure === undefined ? { kind: 'succeeded', output } : { kind: 'failed', failure }, sent)
  }

  /** Frees the slot first: it gets its next run before anybody looks at the last one. */
  protected over(run: PoolRun, outcome: ThreadOutcome, sent: number | null): void {
    if (run.state === 'settled') return
    this.running -= 1
    this.fill()
    this.settle(run, outcome, sent)
  }

  private fill(): void {
    while (this.running < this.slots) {
      const next = this.queue.shift()
      if (next === undefined) return
      this.begin(next)
    }
  }

  private begin(run: PoolRun): void {
    this.running += 1
    run.state = 'sent'
    try {
      this.send(run)
    } catch (error) {
      // Such as a machine that makes no more processes: without an outcome the slot would be taken for ever.
      this.over(run, crashOf(run, error), null)
    }
  }

  private settle(run: PoolRun, outcome: ThreadOutcome, sent: number | null): void {
    this.drain(run, sent)
    this.runs.delete(run.parts.number)
    run.settle(outcome)
  }
}

export function moduleInvalid(path: string, problem: string, cause?: unknown): HoldfastError {
  return new HoldfastError('HANDLER_MODULE_INVALID', problem, { cause, details: { path } })
}

/** The outcome where the input cannot be sent: nothing died, and no other attempt can fare better. */
export function unsendableInput(run: PoolRun, message: string): ThreadOutcome {
  const { kind } = run.parts.task.isolation
  return {
    kind: 'failed',
    failure: { code: 'BAD_PAYLOAD', message: `the input cannot be sent to a ${kind}: ${message}` },
  }
}
