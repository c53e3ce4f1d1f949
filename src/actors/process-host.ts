/**
 * Handler processes: the slots of a module host, each a child process that runs one attempt after another and that always can be killed.
 * One that dies fails its own attempt; the next attempt gets a fresh one.
 */
import type { RunReply } from '../../workers/handler-protocol.ts'
import { withDeadline } from '../clock.ts'
import { HoldfastError } from '../errors.ts'
import { toFailure } from '../failure.ts'
import type { Failure } from '../job.ts'
import { HandlerProcess, type ProcessListener } from './handler-process.ts'
import {
  type HostOptions,
  IDLE_MS,
  ModuleHost,
  moduleInvalid,
  STOP_DEADLINE_MS,
  unsendableInput,
} from './module-host.ts'
import { crashOf, type PoolRun } from './thread-run.ts'

/** What a process that was let go of may take to end. */
const CUT_MS = 1_000

export class ProcessHost extends ModuleHost implements ProcessListener {
  readonly #children = new Set<HandlerProcess>()
  /** The last one to become free is the first to be used, so that the others reach their time. */
  readonly #idle: HandlerProcess[] = []
  readonly #timers = new Map<HandlerProcess, unknown>()
  #isStopped = false

  constructor(options: HostOptions) {
    super(options)
    for (let count = 0; count < this.warm; count += 1) this.#idle.push(this.#spawn())
  }

  get size(): number {
    return [...this.#children].filter(({ isEnding }) => !isEnding).length
  }

  async load(): Promise<void> {
    const children = [...this.#children]
    for (const position of this.options.hrefs.keys()) {
      const path = this.pathOf(position)
      const problems = await Promise.all(
        children.map((child) =>
          Promise.race([
            child.load(position),
            child.gone.then(() => {
              const { message } = child.reason
              throw moduleInvalid(path, `handler module ${path}: its process died while it loaded: ${message}`)
            }),
          ]),
        ),
      )
      const problem = problems.find((each) => each !== null)
      if (typeof problem === 'string') throw moduleInvalid(path, problem)
    }
    for (const child of children) this.#arm(child)
  }

  abort(run: PoolRun): void {
    this.#childOf(run)?.abort(run)
  }

  protected send(run: PoolRun): void {
    this.#give(run, this.#takeIdle() ?? this.#spawn())
  }

  #give(run: PoolRun, child: HandlerProcess): void {
    try {
      child.start(run)
    } catch (error) {
      this.#makeIdle(child)
      this.over(run, unsendableInput(run, toFailure(error).message), 0)
      return
    }
    // The successor of one that has its last job loads while that job runs.
    if (this.#isWorn(child)) this.#prepare(run)
  }

  protected end(run: PoolRun): Promise<void> | null {
    const child = this.#childOf(run)
    child?.kill()
    return child?.gone ?? null
  }

  /** One channel, in order: nothing is ever overtaken by an outcome. */
  protected drain(): void {}

  protected resized(): void {
    for (const child of [...this.#idle]) {
      if (this.#children.size <= this.slots) return
      this.#dismiss(child)
    }
  }

  protected async endAll(): Promise<void> {
    this.#isStopped = true
    const children = [...this.#children]
    for (const child of children) {
      if (this.#idle.includes(child)) this.#dismiss(child)
      else child.kill()
    }
    const late = new HoldfastError('INTERNAL', 'a handler process does not end')
    const gone = Promise.all(children.map((child) => child.gone))
    await withDeadline(gone, STOP_DEADLINE_MS, this.options.timers, () => late).catch(() => {
      for (const child of children) child.kill()
    })
  }

  onReply(child: HandlerProcess, run: PoolRun, reply: RunReply): void {
    if (this.#isStopped || this.#isWorn(child) || child.isEnding) child.end()
    else this.#makeIdle(child)
    this.replied(run, reply)
  }

  onCut(child: HandlerProcess): void {
    this.#endForCertain(child)
  }

  onGone(child: HandlerProcess, run: PoolRun | null, error: Failure): void {
    this.#children.delete(child)
    const wasIdle = this.#forgetIdle(child)
    if (run !== null) {
      if (run.state === 'sent') this.over(run, crashOf(run, error), null)
    } else if (wasIdle && !this.#isStopped) this.options.onIdleCrash(new Error(error.message, { cause: error }))
  }

  /** To a fresh one, so that it is the last time: one that was never heard of fails its attempt. */
  onUntaken(child: HandlerProcess, run: PoolRun): void {
    if (this.#isStopped || run.state !== 'sent') {
      this.onGone(child, run, child.reason)
      return
    }
    this.#children.delete(child)
    try {
      this.#give(run, this.#spawn())
    } catch (error) {
      this.over(run, crashOf(run, error), null)
    }
  }

  #spawn(): HandlerProcess {
    const child = new HandlerProcess(this.options, this)
    this.#children.add(child)
    return child
  }

  #isWorn({ jobs }: HandlerProcess): boolean {
    const { maxJobs } = this.options.isolation
    return maxJobs !== null && jobs >= maxJobs
  }

  #prepare(run: PoolRun): void {
    if (this.#idle.length > 0) return
    const successor = this.#spawn()
    this.#idle.push(successor)
    void successor.load(run.parts.module).then(() => this.#arm(successor))
  }

  #childOf(run: PoolRun): HandlerProcess | undefined {
    for (const child of this.#children) if (child.isAt(run)) return child
    return undefined
  }

  #takeIdle(): HandlerProcess | undefined {
    for (let child = this.#idle.pop(); child !== undefined; child = this.#idle.pop()) {
      this.#forgetIdle(child)
      if (!child.isEnding) return child
    }
    return undefined
  }

  #makeIdle(child: HandlerProcess): void {
    this.#idle.push(child)
    this.#arm(child)
  }

  /** One that has not loaded yet is not idle: its time begins later. */
  #arm(child: HandlerProcess): void {
    const { timers, isolation } = this.options
    const isKept = isolation.idleTimeoutMs === null && this.#children.size <= this.warm
    if (isKept || !this.#idle.includes(child)) return
    const idleMs = isolation.idleTimeoutMs ?? IDLE_MS
    this.#timers.set(
      child,
      timers.set(() => this.#dismiss(child), idleMs, true),
    )
  }

  #dismiss(child: HandlerProcess): void {
    this.#forgetIdle(child)
    child.end()
  }

  /** One that does not go by itself once it is cut off, such as one that a handler keeps busy, is made to. */
  #endForCertain(child: HandlerProcess): void {
    const { timers } = this.options
    const timer = timers.set(() => child.kill(), CUT_MS, true)
    void child.gone.then(() => timers.clear(timer))
  }

  #forgetIdle(child: HandlerProcess): boolean {
    this.options.timers.clear(this.#timers.get(child))
    this.#timers.delete(child)
    const index = this.#idle.indexOf(child)
    if (index >= 0) this.#idle.splice(index, 1)
    return index >= 0
  }
}
