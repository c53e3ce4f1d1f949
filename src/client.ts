/**
 * `connect`: opens a store and puts the client together from its parts. A client that makes no worker runs no handler and
 * holds no lease; closing it stops the workers it made.
 */
import { BackendActor } from './actors/backend-actor.ts'
import type { Backend } from './backends/backend.ts'
import { type Capabilities, requireCapabilities } from './backends/capabilities.ts'
import { openBackend } from './backends/open.ts'
import type { LaneStats } from './backends/protocol/index.ts'
import { type Clock, systemClock, systemTimers, type Timers } from './clock.ts'
import { type ConnectOptions, parseConnectOptions, type StoreClient, type StorePool } from './connect-options.ts'
import type { AppContext, EnqueueOptions, JobContract } from './contract.ts'
import type { Engine } from './engine.ts'
import { HoldfastError, invalidArgument } from './errors.ts'
import type { Explanation } from './explain.ts'
import type { AttemptRecord, JobDetail, JobId } from './job.ts'
import type { JobHandle, ResultOptions } from './job-handle.ts'
import type { LogLine, LogOptions } from './job-logs.ts'
import { JobOperations } from './job-operations.ts'
import type { EnqueueRequest, EnqueueRequests, JobPage, ListOptions, ReplayOptions } from './job-requests.ts'
import type { LanePolicy, LanePolicyOptions, LanePolicyReport } from './lane-policy.ts'
import { createUlidFactory, type Random, systemRandom } from './random.ts'
import { ResultWaiters } from './result-waiters.ts'
import { Runtime } from './runtime.ts'
import { type Health, type HealthOptions, type Maintained, type Stats, StoreOperations } from './store-operations.ts'
import { type Logger, limitWarnings, type Warn } from './telemetry.ts'
import type { Transaction } from './transactions/caller-transaction.ts'
import {
  type AnyWorkerOptions,
  type NeedsContext,
  parseStopDeadline,
  type StopOptions,
  toSettings,
  Worker,
  type WorkerOptions,
} from './worker.ts'
import type { WorkerInfo } from './worker-list.ts'

type Contract<Input, Output> = JobContract<Input, never, Output, never> | JobContract<Input, unknown, Output, unknown>

/** A client; see each method. All rejections are HoldfastErrors. */
export interface Holdfast {
  readonly namespace: string
  readonly capabilities: Capabilities
  /** Throws CAPABILITY_MISSING naming everything in `wanted` that this store does not offer. */
  require(wanted: Partial<Capabilities>): void
  /** Validates and stores a job. Rejects with VALIDATION_FAILED, INVALID_*, PAYLOAD_TOO_LARGE before anything is written. */
  enqueue<Input, Output>(
    job: Contract<Input, Output>,
    input: Input,
    options?: EnqueueOptions,
  ): Promise<JobHandle<Output>>
  enqueue(type: string, input: unknown, options?: EnqueueOptions): Promise<JobHandle>
  /** Checks all entries first, then writes them in as few steps as the store allows. */
  enqueueMany<const Inputs extends readonly unknown[]>(requests: EnqueueRequests<Inputs>): Promise<JobHandle[]>
  /**
   * Enqueues inside the caller's own transaction, on its connection: the job is there when it commits, and never was when it
   * does not. A delay counts from the call. Rejects as `enqueue` does before anything is written, with INVALID_ARGUMENT when
   * `transaction` is no open transaction of this store, and with UNSUPPORTED unless `capabilities.transactionalEnqueue`. In a
   * synchronous transaction (better-sqlite3, node:sqlite) the job is written when it returns, and errors are thrown.
   */
  enqueueTx<Input, Output>(
    transaction: Transaction,
    job: Contract<Input, Output>,
    input: Input,
    options?: EnqueueOptions,
  ): Promise<JobHandle<Output>>
  enqueueTx(transaction: Transaction, type: string, input: unknown, options?: EnqueueOptions): Promise<JobHandle>
  /** The record with input, output and progress. */
  get(id: JobId): Promise<JobDetail | null>
  /** A page of records, the newest job first. */
  list(options?: ListOptions): Promise<JobPage>
  /** The runs of a job in order, the running one last; empty for an unknown id. */
  attempts(id: JobId): Promise<readonly AttemptRecord[]>
  /** What happened to a job, why it does not run, and what comes next. */
  explain(id: JobId): Promise<Explanation | null>
  /** What `result()` of the job's handle gives, in any process. Rejects as that does, and with JOB_NOT_FOUND. */
  result<Output = unknown>(id: JobId, options?: ResultOptions): Promise<Output>
  /** Lines that its handlers wrote to `ctx.log`, as far as they are kept; empty for an unknown id. */
  logs(id: JobId, options?: LogOptions): Promise<readonly LogLine[]>
  /** Ends a job that waits, asks a running one to stop; `force` takes it from its worker. Rejects with JOB_NOT_FOUND. */
  cancel(id: JobId, options?: { readonly force?: boolean }): Promise<'cancelled' | 'requested' | 'already_terminal'>
  /** A new job of one that ended, with a fresh budget and without its idempotency key. */
  replay(id: JobId, options?: ReplayOptions): Promise<JobHandle>
  /** Makes a scheduled or retrying job ready now. Rejects with JOB_NOT_FOUND or INVALID_STATE. */
  retryNow(id: JobId): Promise<void>
  /** Nothing is claimed from the lane until `resume`; what runs goes on. */
  pause(lane: string): Promise<void>
  /** Ends a pause. */
  resume(lane: string): Promise<void>
  /** Sets limits of a lane, stored with it and obeyed by every worker from the moment this resolves; null takes one away. */
  setPolicy(lane: string, policy: LanePolicyOptions): Promise<void>
  /** The policy of a lane, how much of it is used, and how often it held something back. */
  policy(lane: string): Promise<LanePolicyReport>
  /** Of all lanes that are paused or limited. */
  policies(): Promise<readonly LanePolicy[]>
  /** Counts by state, how many could run now, and for how long the oldest of them has waited. */
  stats(lane?: string): Promise<Stats>
  /** The same for each lane that has jobs. */
  lanes(): Promise<readonly LaneStats[]>
  /** The workers of all processes on this store, the latest beat first; one that died is listed for 5 minutes. */
  workers(): Promise<readonly WorkerInfo[]>
  /** Whether the store answers and the workers of this client can claim. Answers within about 2 s, whatever the store does. */
  health(options?: HealthOptions): Promise<Health>
  /** One round of the upkeep that every worker does: expired leases, retention, what became due. */
  maintain(): Promise<Maintained>
  /** Starts a worker; resolves when it is ready to take jobs. */
  worker<Context = AppContext>(options: WorkerOptions<Context> & NeedsContext<Context>): Promise<Worker>
  /**
   * Runs what can run now until nothing can; returns how many jobs were taken. Delayed and retrying jobs stay. Rejects with INTERNAL
   * when too many handlers cannot be stopped.
   */
  runUntilEmpty<Context = AppContext>(options: WorkerOptions<Context> & NeedsContext<Context>): Promise<number>
  /**
   * Stops the workers of this client as `worker.stop` does and closes the store. A store that does not end within 5 s is left as it
   * is. Called again it may name an earlier deadline.
   */
  close(options?: StopOptions): Promise<void>
}

/**
 * Opens the store that `url` names: `memory:`, `sqlite:PATH`, `sqlite::memory:`, `postgres://HOST/DATABASE`, `redis://HOST:PORT/DB`, `rediss:`,
 * `redis+cluster:`, `redis+sentinel:`; the servers that a client of ioredis
 * is for, which itself is neither used nor closed; or a pool of pg, which is used and never ended.
 * Waits for the server up to `callDeadline`. Rejects with INVALID_URL, INVALID_ARGUMENT, INVALID_NAME, STORE_DENIED, UNSUPPORTED,
 * STORE_UNAVAILABLE, STORE_FULL, STORE_READONLY, STORE_CORRUPT, STORE_SCHEMA_TOO_NEW or DEPENDENCY_MISSING.
 */
export async function connect(url: string | StoreClient | StorePool, options: ConnectOptions = {}): Promise<Holdfast> {
  const parsed = parseConnectOptions(options)
  const platform = { clock: systemClock, timers: systemTimers, random: systemRandom }
  const warn = toWarn(parsed.logger, platform.clock)
  const { namespace, callDeadlineMs: openDeadlineMs } = parsed
  const backend = await openBackend(url, { ...platform, namespace, openDeadlineMs, warn }, options.pool)
  return connectWith({ ...platform, backend, warn, options })
}

export interface Platform {
  readonly backend: Backend
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly options?: ConnectOptions
  /** Where the store's warnings go; those of the client are limited together with them. */
  readonly warn?: Warn
}

const toWarn = (logger: Logger, clock: Clock): Warn =>
  limitWarnings((fields, message) => logger.warn(fields, message), clock)

/** A client on a given store, clock, timers and random source: how whole systems are run in virtual time. */
export function connectWith(platform: Platform): Holdfast {
  const { clock, timers, random } = platform
  const options = parseConnectOptions(platform.options ?? {})
  const { retention, payloadBytesMax } = options
  const backend = new BackendActor({ ...platform, callDeadlineMs: options.callDeadlineMs })
  const results = new ResultWaiters({ backend, clock, timers })
  const runtimes = new Set<Runtime>()
  const onEnded = (id: JobId): void => results.notify(id)
  const jobs = new JobOperations({
    backend,
    clock,
    results,
    retention,
    definition: { ulid: createUlidFactory(clock, random), now: () => clock.now(), payloadBytesMax },
    cancelRunning: (id) => {
      for (const runtime of runtimes) runtime.cancel(id)
    },
  })
  const store = new StoreOperations({ backend, clock, retention, workers: () => [...runtimes], onEnded })
  const engine: Engine = {
    backend,
    clock,
    timers,
    random,
    logger: options.logger,
    warn: platform.warn ?? toWarn(options.logger, clock),
    retention,
    payloadBytesMax,
    inspect: options.inspect,
    enqueue: (job, input, enqueueOptions) => jobs.enqueue(job, input, enqueueOptions),
    onEnded,
  }
  return assemble({ namespace: options.namespace, backend, jobs, store, engine, results, runtimes })
}

interface Parts {
  readonly namespace: string
  readonly backend: BackendActor
  readonly jobs: JobOperations
  readonly store: StoreOperations
  readonly engine: Engine
  readonly results: ResultWaiters
  readonly runtimes: Set<Runtime>
}

function assemble({ namespace, backend, jobs, store, engine, results, runtimes }: Parts): Holdfast {
  const { capabilities } = backend.backend
  let closing: Promise<void> | null = null
  const startWorker = async (options: AnyWorkerOptions): Promise<{ worker: Worker; runtime: Runtime }> => {
    if (closing !== null) throw closed()
    const settings = toSettings(options, engine.random)
    if ([...runtimes].some(({ present }) => present.id === settings.id))
      throw invalidArgument('id', `another worker of this client is called ${settings.id}; two must not share an id`)
    const runtime = new Runtime(engine, settings)
    runtimes.add(runtime)
    try {
      await runtime.start()
    } catch (error) {
      runtimes.delete(runtime)
      throw error
    }
    return { runtime, worker: new Worker(runtime, settings, () => runtimes.delete(runtime)) }
  }
  return Object.freeze({
    namespace,
    capabilities,
    require: (wanted: Partial<Capabilities>) => requireCapabilities(capabilities, wanted),
    enqueue: (job: JobContract | string, input: unknown, options?: EnqueueOptions) => jobs.enqueue(job, input, options),
    enqueueMany: (requests: readonly EnqueueRequest[]) => jobs.enqueueMany(requests),
    enqueueTx: (transaction: Transaction, job: JobContract | string, input: unknown, options: EnqueueOptions = {}) =>
      jobs.enqueueTx(transaction, { job, input, options }),
    get: (id: JobId) => jobs.get(id),
    list: (options?: ListOptions) => jobs.list(options),
    attempts: (id: JobId) => jobs.attempts(id),
    explain: (id: JobId) => jobs.explain(id),
    result: (id: JobId, options?: ResultOptions) => jobs.result(id, options),
    logs: (id: JobId, options?: LogOptions) => jobs.logs(id, options),
    cancel: (id: JobId, options?: { readonly force?: boolean }) => jobs.cancel(id, options),
    replay: (id: JobId, options?: ReplayOptions) => jobs.replay(id, options),
    retryNow: (id: JobId) => jobs.retryNow(id),
    pause: (lane: string) => store.pause(lane),
    resume: (lane: string) => store.resume(lane),
    setPolicy: (lane: string, policy: LanePolicyOptions) => store.setPolicy(lane, policy),
    policy: (lane: string) => store.policy(lane),
    policies: () => store.policies(),
    stats: (lane?: string) => store.stats(lane),
    lanes: () => store.lanes(),
    workers: () => store.workers(),
    health: (options?: HealthOptions) => store.health(options),
    maintain: () => store.maintain(),
    worker: async (options: AnyWorkerOptions) => (await startWorker(options)).worker,
    runUntilEmpty: async (options: AnyWorkerOptions) => {
      const { runtime, worker } = await startWorker(options)
      const isDone = await runtime.whenIdle()
      await worker.stop()
      if (!isDone) throw runtime.fatal ?? closed()
      return runtime.startedCount
    },
    close: async (options: StopOptions = {}) => {
      const deadlineMs = parseStopDeadline(options)
      const stopped = Promise.all([...runtimes].map((runtime) => runtime.stop(deadlineMs)))
      closing ??= stopped.then(() => closeStore(runtimes, engine, results))
      await Promise.all([closing, stopped])
    },
  }) as Holdfast
}

async function closeStore(runtimes: Set<Runtime>, { backend, warn }: Engine, results: ResultWaiters): Promise<void> {
  results.close()
  runtimes.clear()
  try {
    await backend.close()
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== 'STORE_TIMEOUT') throw error
    warn({ code: error.code, err: error.message }, 'the store was left without an orderly end')
  }
}

const closed = (): HoldfastError => new HoldfastError('CLOSED', 'the client was closed')
