/**
 * What every store must pass: registers all suites against a store, and gives them clients, raw access to the protocol, a
 * clock that can be moved, restarts and child processes. A store differs from another only by its capability flags.
 *
 * Assertion 131: no test relies on completion order, fairness or exact start time of parallel workers; they assert lower
 * bounds and end states, and wait for events or conditions with a deadline.
 */
import { afterEach, beforeEach, describe } from 'vitest'
import type { Backend, BackendOptions } from '#dist/src/backends/backend.js'
import type { Capabilities } from '#dist/src/backends/capabilities.js'
import { connectWith, type Holdfast } from '#dist/src/client.js'
import { type Clock, systemTimers } from '#dist/src/clock.js'
import type { ConnectOptions } from '#dist/src/connect-options.js'
import type { AppContext } from '#dist/src/contract.js'
import { systemRandom } from '#dist/src/random.js'
import type { NeedsContext, Worker, WorkerOptions } from '#dist/src/worker.js'
import { casesSuite } from '../hostile/cases.suite.ts'
import { hostileCodeSuite } from '../hostile/code.suite.ts'
import { poisonSuite } from '../hostile/poison.suite.ts'
import { shutdownSuite } from '../hostile/shutdown.suite.ts'
import { slotsSuite } from '../hostile/slots.suite.ts'
import { startsSuite } from '../hostile/starts.suite.ts'
import { typeLeaseSuite } from '../hostile/type-lease.suite.ts'
import { logSuite } from '../results/log.suite.ts'
import { payloadSuite } from '../results/payload.suite.ts'
import { resultSuite } from '../results/result.suite.ts'
import { Child } from '../support/child.ts'
import { withoutHints } from '../support/faulty-backend.ts'
import { silent } from '../support/silent.ts'
import { cancelSuite } from './cancel.suite.ts'
import { crashSuite } from './crash.suite.ts'
import { deadLetterSuite } from './dead-letter.suite.ts'
import { explainSuite } from './explain.suite.ts'
import { failureSuite } from './failure.suite.ts'
import { idempotencySuite } from './idempotency.suite.ts'
import { jobClaimSuite } from './job-claim.suite.ts'
import { jobEnqueueSuite } from './job-enqueue.suite.ts'
import { leaseSuite } from './lease.suite.ts'
import { leaseKeeperSuite } from './lease-keeper.suite.ts'
import { leaseLossSuite } from './lease-loss.suite.ts'
import { lifecycleSuite } from './lifecycle.suite.ts'
import { limitSuite } from './limit.suite.ts'
import { policySuite } from './policy.suite.ts'
import { policyWorkerSuite } from './policy-worker.suite.ts'
import { restartSuite } from './restart.suite.ts'
import { retrySuite } from './retry.suite.ts'
import { retryPolicySuite } from './retry-policy.suite.ts'
import { stopSuite } from './stop.suite.ts'
import { storeSuite } from './store.suite.ts'
import { workerSuite } from './worker.suite.ts'
import { workerListSuite } from './worker-list.suite.ts'

const SUITES = [
  jobEnqueueSuite,
  lifecycleSuite,
  jobClaimSuite,
  leaseSuite,
  leaseLossSuite,
  leaseKeeperSuite,
  crashSuite,
  restartSuite,
  failureSuite,
  limitSuite,
  retrySuite,
  retryPolicySuite,
  deadLetterSuite,
  cancelSuite,
  idempotencySuite,
  workerSuite,
  stopSuite,
  workerListSuite,
  shutdownSuite,
  hostileCodeSuite,
  logSuite,
  payloadSuite,
  resultSuite,
  storeSuite,
  policySuite,
  policyWorkerSuite,
  explainSuite,
  casesSuite,
  poisonSuite,
  slotsSuite,
  startsSuite,
  typeLeaseSuite,
] as const

/** One fresh store, as its runner opens it. */
export interface OpenedStore {
  /** How other processes reach it; null: they cannot. */
  readonly url: string | null
  /** Where one server serves many tests: the namespace that stands for the default one in this test. */
  readonly namespace?: string
  backend(options: BackendOptions): Promise<Backend>
  /** Called when all clients are closed: the same data again, or none where nothing is kept. */
  reopen(): Promise<void>
  /** Where the store has a clock of its own: moves it, so that it goes with the clock that clients are given. */
  advance?(ms: number): Promise<void>
  /** Writes a state that no release knows into the record of a job; null: nothing can be damaged. */
  readonly damageState: ((jobId: string, state: string) => Promise<void>) | null
  remove(): Promise<void>
}

export interface StoreUnderTest {
  readonly name: string
  /** Its column in docs/backends.md, where that has another name. */
  readonly column?: string
  /** What the store must declare; the suites ask these flags and nothing else. */
  readonly capabilities: Capabilities
  open(): Promise<OpenedStore>
}

export interface HarnessConnectOptions extends ConnectOptions {
  /** False: this client hears of nothing and can only poll. */
  readonly hints?: boolean
  readonly wrap?: (backend: Backend) => Backend
}

export class Harness {
  readonly store: OpenedStore
  #offsetMs = 0
  #clients: Holdfast[] = []
  #raws: Backend[] = []
  readonly #workers: Worker[] = []
  readonly #children: Child[] = []
  readonly #clock: Clock = { now: () => Date.now() + this.#offsetMs, monotonic: () => performance.now() }

  constructor(store: OpenedStore) {
    this.store = store
  }

  /** The store's clock. */
  now(): number {
    return this.#clock.now()
  }

  /** Moves the store's clock; timers stay as they are. */
  async advance(ms: number): Promise<void> {
    this.#offsetMs += ms
    await this.store.advance?.(ms)
  }

  async connect({ hints = true, wrap, ...options }: HarnessConnectOptions = {}): Promise<Holdfast> {
    const namespace = this.#namespace(options.namespace)
    const opened = await this.#open(namespace)
    const heard = hints ? opened : withoutHints(opened)
    const client = connectWith({
      backend: wrap === undefined ? heard : wrap(heard),
      clock: this.#clock,
      timers: systemTimers,
      random: systemRandom,
      options: { logger: silent, ...options, namespace },
    })
    this.#clients.push(client)
    return client
  }

  /** The protocol itself, on a connection of its own. */
  async raw(namespace?: string): Promise<Backend> {
    const backend = await this.#open(this.#namespace(namespace))
    this.#raws.push(backend)
    return backend
  }

  /** What a test calls `name`, as the store knows it. */
  #namespace(name = 'default'): string {
    const { namespace } = this.store
    if (namespace === undefined) return name
    return name === 'default' ? namespace : `${namespace}.${name}`
  }

  #open(namespace: string): Promise<Backend> {
    const platform = { clock: this.#clock, random: systemRandom }
    return this.store.backend({ ...platform, namespace, warn: () => {}, openDeadlineMs: 10_000 })
  }

  /** A worker that looks often and is stopped with the harness. */
  async worker<Context = AppContext>(
    client: Holdfast,
    options: WorkerOptions<Context> & NeedsContext<Context>,
  ): Promise<Worker> {
    const worker = await client.worker<Context>({ poll: 20, reap: '1h', killGrace: 50, ...options })
    this.#workers.push(worker)
    return worker
  }

  /** Closes everything and opens the same store again, as a new process would. */
  async restart(): Promise<void> {
    await this.#disconnect()
    await this.store.reopen()
  }

  /** Starts a script of `test/support/children` on this store. */
  spawn(script: string, ...args: readonly string[]): Child {
    const { url } = this.store
    if (url === null) throw new Error('other processes cannot reach this store')
    const child = new Child(script, [url, this.#namespace(), ...args])
    this.#children.push(child)
    return child
  }

  async endChildren(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()))
  }

  async close(): Promise<void> {
    await this.endChildren()
    await this.#disconnect()
    await this.store.remove()
  }

  async #disconnect(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.stop({ deadline: 0 })))
    await Promise.all(this.#clients.splice(0).map((client) => client.close()))
    await Promise.all(this.#raws.splice(0).map((backend) => backend.close()))
  }
}

/** What a suite is given: the flags while it registers its tests, a fresh harness inside each. */
export interface SuiteContext {
  /** Of the store in docs/backends.md. */
  readonly column: string
  readonly capabilities: Capabilities
  harness(): Harness
}

/** True when other processes can open the store and find what this one wrote. */
export const isSharedByProcesses = ({ capabilities }: SuiteContext): boolean =>
  capabilities.durableJobs && (capabilities.sameHostProcesses || capabilities.distributedWorkers)

export function describeBackend({ name, column = name, capabilities, open }: StoreUnderTest): void {
  describe(name, () => {
    let current: Harness | null = null
    beforeEach(async () => {
      current = new Harness(await open())
    })
    afterEach(async () => {
      await current?.close()
      current = null
    })
    const harness = (): Harness => {
      if (current === null) throw new Error('the harness is there inside tests only')
      return current
    }
    for (const suite of SUITES) suite({ column, capabilities, harness })
  })
}
