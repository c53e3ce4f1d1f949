/**
 * Handler threads: one piscina for each heap limit, one task a thread at a time, and a queue of our own before it.
 * The worker answers with outcomes as data, so a rejection means that the thread died: that is the attempt's PANIC and
 * nobody else's. piscina is never given more than it has threads for, so a dying thread meets no task but its own.
 * Called by the job actors; started before the first claim.
 */
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import type { LoadReply, RunReply, ThreadData } from '../../workers/handler-protocol.ts'
import { type Timers, withDeadline } from '../clock.ts'
import type { ThreadHandler } from '../contract.ts'
import { HoldfastError } from '../errors.ts'
import { toFailure } from '../failure.ts'
import { handlerEnvironment } from './thread-environment.ts'
import { ThreadLinks } from './thread-link.ts'
import {
  crashOf,
  PoolRun,
  type RunOwner,
  runMessage,
  type ThreadOutcome,
  type ThreadRun,
  type ThreadServices,
  type ThreadTask,
} from './thread-run.ts'

const WORKER_FILE = fileURLToPath(new URL('../../workers/handler-worker.js', import.meta.url))
/** Threads beyond the warm ones end after this long without work. */
const IDLE_MS = 30_000
const LOAD_DEADLINE_MS = 30_000
/** How long `stop` waits for a thread inside a native call that cannot be interrupted. */
const STOP_DEADLINE_MS = 5_000

export interface PoolOptions {
  /** Most threads of one heap limit. */
  readonly threads: number
  readonly timers: Timers
  readonly modules: readonly ThreadHandler[]
  /** Told when a thread died with no attempt in it, such as by a timer that a handler left behind. */
  readonly onIdleCrash?: (error: unknown) => void
}

/** The threads of one heap limit. */
class HeapPool {
  readonly hrefs: readonly string[]
  readonly threadsWarm: number
  readonly #maxHeapMb: number | null
  readonly #threads: number
  readonly #piscina: Piscina
  readonly #queue: PoolRun[] = []
  readonly #onSettled: (run: PoolRun, sent: number | null) => void
  /** The unsettled runs of all pools. */
  readonly #runs: ReadonlyMap<number, PoolRun>
  /** How many of this pool's are with piscina. */
  #running = 0

  constructor(options: {
    readonly maxHeapMb: number | null
    readonly hrefs: readonly string[]
    readonly threads: number
    readonly runs: ReadonlyMap<number, PoolRun>
    readonly onMessage: (message: unknown) => void
    readonly onSettled: (run: PoolRun, sent: number | null) => void
    readonly onIdleCrash: (error: unknown) => void
  }) {
    this.hrefs = options.hrefs
    this.#maxHeapMb = options.maxHeapMb
    this.#threads = options.threads
    this.#runs = options.runs
    this.#onSettled = options.onSettled
    this.threadsWarm = Math.min(options.threads, availableParallelism())
    this.#piscina = new Piscina({
      filename: WORKER_FILE,
      minThreads: this.threadsWarm,
      maxThreads: options.threads,
      concurrentTasksPerWorker: 1,
      // 'sync' stops the thread's event loop between tasks. No-ops of bare piscina, 64 in flight, 2 threads on 2 cores, in
      // November 2026: disabled 33 k/s, sync 26 k/s, async 25 k/s.
      atomics: 'disabled',
      idleTimeout: IDLE_MS,
      recordTiming: false,
      execArgv: [],
      env: handlerEnvironment(process.env),
      workerData: { modules: options.hrefs } satisfies ThreadData,
      ...(options.maxHeapMb === null ? {} : { resourceLimits: { maxOldGenerationSizeMb: options.maxHeapMb } }),
    })
    this.#piscina.on('message', options.onMessage)
    this.#piscina.on('error', (error: unknown) => {
      options.onIdleCrash(error)
      this.#rescue(error)
    })
  }

  get isBusy(): boolean {
    return this.#running >= this.#threads
  }

  /** Loads the module of this position in every warm thread; they are all idle, so each gets one of the tasks. */
  async load(position: number): Promise<void> {
    const path = fileURLToPath(this.hrefs[position] ?? '')
    const refuse = (problem: string, cause?: unknown): HoldfastError =>
      new HoldfastError('HANDLER_MODULE_INVALID', problem, { cause, details: { path } })
    const replies = await Promise.all(
      Array.from({ length: this.threadsWarm }, () =>
        this.#piscina.run(position).catch((error: unknown) => {
          const { message } = toFailure(error)
          throw refuse(`handler module ${path}: its thread died while it loaded: ${message}`, error)
        }),
      ),
    )
    const problem = (replies as LoadReply[]).find((reply) => reply !== null)
    if (typeof problem === 'string') throw refuse(problem)
  }

  submit(run: PoolRun): void {
    if (this.isBusy) this.#queue.push(run)
    else this.#send(run)
  }

  drop(run: PoolRun): void {
    const index = this.#queue.indexOf(run)
    if (index >= 0) this.#queue.splice(index, 1)
  }

  /** Ends every thread. What waits was never started and may be given back; what runs crashes. */
  async stop(timers: Timers): Promise<void> {
    const failure = toFailure(new HoldfastError('SHUTTING_DOWN', 'the pool stopped before the attempt was started'))
    for (const run of this.#queue.splice(0)) this.#finish(run, { kind: 'failed', failure }, 0)
    const workers = this.#piscina.threads
    const late = new HoldfastError('INTERNAL', 'a handler thread does not end')
    await withDeadline(this.#piscina.destroy(), STOP_DEADLINE_MS, timers, () => late).catch(() => {
      for (const worker of workers) worker.unref()
    })
  }

  #send(run: PoolRun): void {
    this.#running += 1
    run.state = 'sent'
    const message = runMessage(run)
    try {
      this.#piscina.run(message, { signal: run }).then(
        (reply: RunReply) => this.#onReply(run, reply),
        (error: unknown) => this.#onDeath(run, error),
      )
    } catch (error) {
      // No thread could be made, yet the task stands in piscina's queue: emptied, so that it does nothing once one is.
      Reflect.set(message, 'length', 0)
      this.#onDeath(run, error)
    }
  }

  #onReply(run: PoolRun, [sent, output, failure]: RunReply): void {
    if (run.state === 'settled') return
    this.#release()
    this.#finish(run, failure === undefined ? { kind: 'succeeded', output } : { kind: 'failed', failure }, sent)
  }

  #onDeath(run: PoolRun, error: unknown): void {
    if (run.state === 'settled') return
    this.#release()
    const problem = inputProblem(run, error)
    if (problem === null) this.#finish(run, crashOf(run, error), null)
    else this.#finish(run, { kind: 'failed', failure: { code: 'BAD_PAYLOAD', message: problem } }, 0)
  }

  /** Frees the slot first: the thread gets its next task before anybody looks at the last one. */
  #release(): void {
    this.#running -= 1
    const next = this.isBusy ? undefined : this.#queue.shift()
    if (next !== undefined) this.#send(next)
  }

  #finish(run: PoolRun, outcome: ThreadOutcome, sent: number | null): void {
    this.#onSettled(run, sent)
    run.settle(outcome)
  }

  /** When no thread is left and none can be made, what piscina still holds would wait for ever. */
  #rescue(error: unknown): void {
    if (this.#piscina.threads.length > 0) return
    for (const run of [...this.#runs.values()]) {
      if (run.parts.task.maxHeapMb !== this.#maxHeapMb || run.state !== 'sent') continue
      this.#onDeath(run, error)
      run.endTask()
    }
  }
}

/** piscina also rejects when the input cannot be sent: no thread died, and no other attempt can fare better. */
function inputProblem(run: PoolRun, error: unknown): string | null {
  if (run.isKilled || !(error instanceof Error) || error.name !== 'DataCloneError') return null
  try {
    structuredClone(run.parts.task.input)
    return null
  } catch {
    return `the input cannot be sent to a thread: ${error.message}`
  }
}

export class PoolActor implements RunOwner {
  readonly #options: PoolOptions
  readonly #runs = new Map<number, PoolRun>()
  readonly #pools = new Map<number | null, HeapPool>()
  readonly #links: ThreadLinks
  #state: 'new' | 'started' | 'stopped' = 'new'
  #lastRun = 0
  #onPort: () => void = () => undefined

  constructor(options: PoolOptions) {
    this.#options = options
    this.#links = new ThreadLinks(this.#runs, () => this.#onPort())
  }

  /**
   * Starts the warm threads and loads every module in each of them, `setup()` included. Throws HANDLER_MODULE_INVALID
   * naming the file; then no thread is left.
   */
  async start(): Promise<void> {
    const { timers } = this.#options
    this.#state = 'started'
    const late = new HoldfastError('HANDLER_MODULE_INVALID', `handler modules did not load in ${LOAD_DEADLINE_MS} ms`)
    try {
      this.#openPools()
      await withDeadline(this.#load(), LOAD_DEADLINE_MS, timers, () => late)
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  run(task: ThreadTask, services: ThreadServices): ThreadRun {
    this.#lastRun += 1
    const pool = this.#pools.get(task.maxHeapMb)
    const module = pool?.hrefs.indexOf(task.module.href) ?? -1
    const run = new PoolRun({ number: this.#lastRun, module, task, services, owner: this })
    const refusal = pool === undefined || module < 0 ? this.#refusal(task) : null
    if (refusal !== null) run.settle({ kind: 'failed', failure: toFailure(refusal) })
    else {
      this.#runs.set(run.parts.number, run)
      pool?.submit(run)
    }
    return run
  }

  /** Ends all threads; nothing keeps the process alive afterwards. Attempts that run crash, those that wait fail with SHUTTING_DOWN. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    await Promise.all(pools.map((pool) => pool.stop(this.#options.timers)))
    this.#links.close()
  }

  /** Called by a run: its thread is to hear of the abort. */
  abort(run: PoolRun): void {
    this.#links.abort(run)
  }

  /** Called by a run that is killed while it waits for a thread. */
  drop(run: PoolRun): void {
    this.#pools.get(run.parts.task.maxHeapMb)?.drop(run)
    this.#onSettled(run, 0)
    run.settle(crashOf(run, null))
  }

  #openPools(): void {
    const hrefs = new Map<number | null, Set<string>>()
    for (const { maxHeapMb, module } of this.#options.modules) {
      hrefs.set(maxHeapMb, (hrefs.get(maxHeapMb) ?? new Set()).add(module.href))
    }
    for (const [maxHeapMb, set] of hrefs) {
      const pool = new HeapPool({
        maxHeapMb,
        hrefs: [...set],
        threads: this.#options.threads,
        runs: this.#runs,
        onMessage: (message) => this.#links.accept(message),
        onSettled: (run, sent) => this.#onSettled(run, sent),
        onIdleCrash: this.#options.onIdleCrash ?? (() => undefined),
      })
      this.#pools.set(maxHeapMb, pool)
    }
  }

  async #load(): Promise<void> {
    const pools = [...this.#pools.values()]
    const warm = pools.reduce((sum, pool) => sum + pool.threadsWarm, 0)
    const ports = new Promise<void>((resolve) => {
      this.#onPort = () => {
        if (this.#links.count >= warm) resolve()
      }
    })
    for (const pool of pools) {
      for (const position of pool.hrefs.keys()) await pool.load(position)
    }
    if (this.#links.count < warm) await ports
  }

  /** What a thread sent before it ended is handled before its outcome is known; what comes later finds no run. */
  #onSettled(run: PoolRun, sent: number | null): void {
    this.#links.drain(run, sent)
    this.#runs.delete(run.parts.number)
    if (run.abortReason !== null) this.#links.forget(run)
  }

  #refusal(task: ThreadTask): HoldfastError {
    if (this.#state !== 'started') return new HoldfastError('CLOSED', 'the pool of handler threads is not running')
    return new HoldfastError(
      'HANDLER_MODULE_INVALID',
      `handler module ${task.module.href} with this heap limit was not given to the pool`,
    )
  }
}
