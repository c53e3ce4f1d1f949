/**
 * Every thread and process in which handler modules run: one host for each answer to `inThread`'s options, made and loaded before
 * the first claim. Called by the job actors through `run`, by the runtime for the rest.
 */
import type { Timers } from '../clock.ts'
import { withDeadline } from '../clock.ts'
import type { ThreadHandler } from '../contract.ts'
import { HoldfastError } from '../errors.ts'
import { toFailure } from '../failure.ts'
import type { Isolation } from '../isolation.ts'
import { LostSlots } from './lost-slots.ts'
import type { ModuleHost } from './module-host.ts'
import { ProcessHost } from './process-host.ts'
import { ThreadHost } from './thread-host.ts'
import type { ThreadRun, ThreadServices, ThreadTask } from './thread-run.ts'

const LOAD_DEADLINE_MS = 30_000

export interface PoolOptions {
  /** Most threads, or processes, of one kind of isolation. */
  readonly threads: number
  readonly timers: Timers
  readonly modules: readonly Pick<ThreadHandler, 'module' | 'isolation'>[]
  /** Told of threads and processes that do not end. */
  readonly lost?: LostSlots
  /** Told when a thread or process died with no attempt in it, such as by a timer that a handler left behind. */
  readonly onIdleCrash?: (error: unknown) => void
}

export class PoolActor {
  readonly #options: PoolOptions
  readonly #hosts = new Map<string, ModuleHost>()
  #state: 'new' | 'started' | 'stopped' = 'new'

  constructor(options: PoolOptions) {
    this.#options = options
  }

  /**
   * Starts the warm threads and processes and loads every module in each of them, `setup()` included. Throws
   * HANDLER_MODULE_INVALID naming the file; then none is left.
   */
  async start(): Promise<void> {
    const { timers } = this.#options
    this.#state = 'started'
    const late = new HoldfastError('HANDLER_MODULE_INVALID', `handler modules did not load in ${LOAD_DEADLINE_MS} ms`)
    try {
      this.#openHosts()
      const loads = Promise.all([...this.#hosts.values()].map((host) => host.load()))
      await withDeadline(loads, LOAD_DEADLINE_MS, timers, () => late)
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** How many threads and processes there are. */
  get size(): number {
    return [...this.#hosts.values()].reduce((sum, host) => sum + host.size, 0)
  }

  run(task: ThreadTask, services: ThreadServices): ThreadRun {
    return this.#hosts.get(task.isolation.key)?.run(task, services) ?? this.#refused(task)
  }

  /** As many slots in each kind of isolation; what runs goes on. */
  resize(slots: number): void {
    for (const host of this.#hosts.values()) host.resize(slots)
  }

  /** Ends all of them; nothing keeps the process alive afterwards. Attempts that run crash, those that wait fail with SHUTTING_DOWN. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    const hosts = [...this.#hosts.values()]
    this.#hosts.clear()
    await Promise.all(hosts.map((host) => host.stop()))
  }

  #openHosts(): void {
    const kinds = new Map<string, { readonly isolation: Isolation; readonly hrefs: Set<string> }>()
    for (const { isolation, module } of this.#options.modules) {
      const kind = kinds.get(isolation.key) ?? { isolation, hrefs: new Set() }
      kind.hrefs.add(module.href)
      kinds.set(isolation.key, kind)
    }
    const { threads: slots, timers, lost = new LostSlots(), onIdleCrash = () => undefined } = this.#options
    for (const [key, { isolation, hrefs }] of kinds) {
      const options = { isolation, hrefs: [...hrefs], slots, timers, lost, onIdleCrash }
      this.#hosts.set(key, isolation.kind === 'thread' ? new ThreadHost(options) : new ProcessHost(options))
    }
  }

  #refused(task: ThreadTask): ThreadRun {
    const refusal =
      this.#state === 'started'
        ? new HoldfastError(
            'HANDLER_MODULE_INVALID',
            `handler module ${task.module.href} with these limits was not given to the pool`,
          )
        : new HoldfastError('CLOSED', 'the pool of handler threads is not running')
    const outcome = Promise.resolve({ kind: 'failed', failure: toFailure(refusal) } as const)
    return { outcome, abort: () => undefined, kill: () => undefined }
  }
}
