/**
 * Handler threads: one piscina, one task a thread at a time, never more tasks than it has threads for, so that a dying thread meets
 * no task but its own. The worker answers with outcomes as data, so a rejection means that the thread died.
 * piscina asks us which thread gets a task, which is how we know whose thread a run is in, and how a thread that has run its number of
 * jobs is kept from getting another while its successor starts beside it.
 */
import { createRequire } from 'node:module'
import type { Worker } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import type { LoadReply, RunReply, ThreadData } from '../../workers/handler-protocol.ts'
import { withDeadline } from '../clock.ts'
import { HoldfastError } from '../errors.ts'
import { toFailure } from '../failure.ts'
import type { Isolation } from '../isolation.ts'
import { HERE, type WorkerRole, workerFile } from '../worker-file.ts'
import {
  type HostOptions,
  IDLE_MS,
  ModuleHost,
  moduleInvalid,
  STOP_DEADLINE_MS,
  unsendableInput,
} from './module-host.ts'
import { handlerEnvironment } from './thread-environment.ts'
import { ThreadLinks } from './thread-link.ts'
import { crashOf, PoolRun, runMessage, takenBack } from './thread-run.ts'

type Library = typeof import('piscina')
type Balancer = NonNullable<ConstructorParameters<typeof Piscina>[0]>['loadBalancer'] & {}

function limitsOf({ maxHeapMb, maxYoungHeapMb, stackMb }: Isolation): object {
  const limits = {
    ...(maxHeapMb === null ? {} : { maxOldGenerationSizeMb: maxHeapMb }),
    ...(maxYoungHeapMb === null ? {} : { maxYoungGenerationSizeMb: maxYoungHeapMb }),
    ...(stackMb === null ? {} : { stackSizeMb: stackMb }),
  }
  return Object.keys(limits).length === 0 ? {} : { resourceLimits: limits }
}

export class ThreadHost extends ModuleHost {
  readonly #piscina: Piscina
  /** Where piscina looks for what it asks us with. */
  readonly #queueOptions: symbol
  readonly #links: ThreadLinks
  readonly #threadsWarm: number
  /** Jobs given to each thread, where that is limited, and the last run of the threads that get no more. */
  readonly #jobs = new Map<number, number>()
  readonly #worn = new Map<number, PoolRun>()
  #onPort: () => void = () => undefined

  constructor(options: HostOptions) {
    super(options)
    const { isolation, hrefs } = options
    this.#threadsWarm = this.warm
    this.#links = new ThreadLinks(this.runs, options.timers, () => this.#onPort())
    const { Piscina, queueOptionsSymbol } = loadPiscina()
    this.#queueOptions = queueOptionsSymbol
    this.#piscina = new Piscina({
      filename: workerFile(),
      name: 'onTask',
      argv: ['handler-worker' satisfies WorkerRole],
      minThreads: this.#threadsWarm,
      maxThreads: options.slots,
      concurrentTasksPerWorker: 1,
      // 'sync' stops the thread's event loop between tasks. No-ops of bare piscina, 64 in flight, 2 threads on 2 cores, in
      // November 2026: disabled 33 k/s, sync 26 k/s, async 25 k/s.
      atomics: 'disabled',
      idleTimeout: isolation.idleTimeoutMs ?? IDLE_MS,
      recordTiming: false,
      execArgv: [],
      env: handlerEnvironment(process.env),
      workerData: { modules: hrefs } satisfies ThreadData,
      loadBalancer: this.#choose,
      ...limitsOf(isolation),
    })
    // piscina looks at its options anew each time; those that are up already count as idle ones from here on.
    if (isolation.idleTimeoutMs !== null) this.#piscina.options.minThreads = 0
    this.#piscina.on('message', (message: unknown) => this.#links.accept(message))
    this.#piscina.on('error', (error: unknown) => {
      options.onIdleCrash(error)
      this.#rescue(error)
    })
  }

  get size(): number {
    return this.#piscina.threads.length
  }

  async load(): Promise<void> {
    // Counted as they come: the first threads may have idled out before the last one is there.
    let seen = this.#links.count
    const ports = new Promise<void>((resolve) => {
      this.#onPort = () => {
        seen += 1
        if (seen >= this.#threadsWarm) resolve()
      }
    })
    for (const position of this.options.hrefs.keys()) await this.#loadInAll(position)
    if (seen < this.#threadsWarm) await ports
  }

  /** What still stands in piscina's queue, while a thread comes up, need not wait for it. */
  abort(run: PoolRun): void {
    if (run.thread.id !== null) {
      this.#links.abort(run)
      return
    }
    run.endTask()
    this.over(run, takenBack(run), 0)
  }

  protected send(run: PoolRun): void {
    const message = runMessage(run)
    Reflect.set(message, this.#queueOptions, run)
    try {
      this.#piscina.run(message, { signal: run }).then(
        (reply: RunReply) => {
          this.#retireWorn(run)
          this.replied(run, reply)
        },
        (error: unknown) => this.#onDeath(run, error),
      )
    } catch (error) {
      // No thread could be made, yet the task stands in piscina's queue: emptied, so that it does nothing once one is.
      Reflect.set(message, 'length', 0)
      this.#onDeath(run, error)
    }
  }

  protected end(run: PoolRun): Promise<void> | null {
    const thread = run.thread.id === null ? undefined : this.#threadOf(run.thread.id)
    const gone = thread && new Promise<void>((resolve) => thread.once('exit', () => resolve()))
    run.endTask()
    return gone ?? null
  }

  /** Two ports have no order between them: what a thread sent before it ended is handled before its outcome is known. */
  protected drain(run: PoolRun, sent: number | null): void {
    this.#links.drain(run, sent)
    if (run.abortReason !== null) this.#links.forget(run)
  }

  protected resized(): void {
    const { options } = this.#piscina
    options.maxThreads = this.slots + this.#worn.size
    if (this.options.isolation.idleTimeoutMs === null) options.minThreads = this.warm
  }

  protected async endAll(): Promise<void> {
    const workers = this.#piscina.threads
    const late = new HoldfastError('INTERNAL', 'a handler thread does not end')
    await withDeadline(this.#piscina.destroy(), STOP_DEADLINE_MS, this.options.timers, () => late).catch(() => {
      for (const worker of workers) worker.unref()
    })
    this.#links.close()
  }

  /** All warm threads are idle, so each gets one of the tasks. */
  async #loadInAll(position: number): Promise<void> {
    const path = this.pathOf(position)
    const replies = await Promise.all(
      Array.from({ length: this.#threadsWarm }, () =>
        this.#piscina.run(position).catch((error: unknown) => {
          const { message } = toFailure(error)
          throw moduleInvalid(path, `handler module ${path}: its thread died while it loaded: ${message}`, error)
        }),
      ),
    )
    const problem = (replies as LoadReply[]).find((reply) => reply !== null)
    if (typeof problem === 'string') throw moduleInvalid(path, problem)
  }

  #threadOf(id: number): Worker | undefined {
    return this.#piscina.threads.find(({ threadId }) => threadId === id)
  }

  /** piscina's question which of its threads gets a task; null: none of them. */
  readonly #choose: Balancer = (task, workers) => {
    const free = workers.find((each) => each.currentUsage === 0 && !each.destroyed && !this.#worn.has(each.id))
    if (free === undefined) return null
    const run: unknown = Reflect.get(task, this.#queueOptions)
    if (run instanceof PoolRun) {
      run.thread.id = free.id
      this.#count(free.id, run)
    }
    return free
  }

  /** The last job of a thread makes room for one thread more, which loads while that job runs: capacity never falls. */
  #count(threadId: number, run: PoolRun): void {
    const { maxJobs } = this.options.isolation
    if (maxJobs === null) return
    const jobs = (this.#jobs.get(threadId) ?? 0) + 1
    this.#jobs.set(threadId, jobs)
    const thread = jobs < maxJobs ? undefined : this.#threadOf(threadId)
    if (thread === undefined) return
    this.#worn.set(threadId, run)
    this.resized()
    thread.once('exit', () => {
      this.#worn.delete(threadId)
      this.#jobs.delete(threadId)
      this.resized()
    })
    queueMicrotask(() => this.#piscina.run(run.parts.module).catch(() => undefined))
  }

  /** Only with its last run: piscina may have given it that one before we hear of the run before. */
  #retireWorn(run: PoolRun): void {
    const { id } = run.thread
    if (this.#worn.size === 0 || id === null || this.#worn.get(id) !== run) return
    void this.#threadOf(id)?.terminate()
  }

  /** A run that was killed is over when its thread is gone, not when piscina lets go of it. */
  #onDeath(run: PoolRun, error: unknown): void {
    if (run.state === 'killed' || run.state === 'lost') return
    this.over(run, inputProblem(run, error) ?? crashOf(run, error), null)
  }

  /** When no thread is left and none can be made, what piscina still holds would wait for ever. */
  #rescue(error: unknown): void {
    if (this.#piscina.threads.length > 0) return
    for (const run of [...this.runs.values()]) {
      if (run.state !== 'sent') continue
      this.#onDeath(run, error)
      run.endTask()
    }
  }
}

/**
 * Not imported, so that no bundler takes it in: it starts its threads with a file of its own, which it looks for beside itself.
 * Throws DEPENDENCY_MISSING.
 */
function loadPiscina(): Library {
  try {
    return createRequire(HERE)('piscina') as Library
  } catch (cause) {
    throw new HoldfastError(
      'DEPENDENCY_MISSING',
      'handler threads need the package piscina, which a bundle does not hold. Run where it is: npm install piscina@5',
      { details: { dependency: 'piscina', outcome: 'refused' }, cause },
    )
  }
}

/** piscina also rejects when the input cannot be sent. */
function inputProblem(run: PoolRun, error: unknown): ReturnType<typeof unsendableInput> | null {
  if (!(error instanceof Error) || error.name !== 'DataCloneError') return null
  try {
    structuredClone(run.parts.task.input)
    return null
  } catch {
    return unsendableInput(run, error.message)
  }
}
