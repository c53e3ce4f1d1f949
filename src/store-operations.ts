/** What a client does with lanes and the store as a whole: policies, counts, health, maintenance. */
import type { BackendActor } from './actors/backend-actor.ts'
import type { Keeper } from './actors/lease-keepers.ts'
import { type MaintainResult, maintainStore, reapExpired } from './actors/reaper.ts'
import type { Capabilities } from './backends/capabilities.ts'
import { NO_LIMITS } from './backends/limits.ts'
import type { LanePolicy, LaneStats } from './backends/protocol/index.ts'
import type { Clock } from './clock.ts'
import { parseFlag, parseName, refuseUnknown } from './config.ts'
import { HoldfastError } from './errors.ts'
import { JOB_STATES, type JobId, type JobState } from './job.ts'
import { type LanePolicyOptions, type LanePolicyReport, parsePolicy } from './lane-policy.ts'
import type { Retention } from './retention.ts'
import type { WorkerHealth } from './worker-health.ts'
import { listWorkers, type WorkerInfo } from './worker-list.ts'

/** Counts over one lane or all of them. */
export interface Stats {
  readonly counts: Readonly<Record<JobState, number>>
  /** Jobs in all states that are kept. */
  readonly total: number
  /** Jobs that could run now and wait. */
  readonly ready: number
  readonly oldestReadyMs: number | null
  readonly lanes: readonly LaneStats[]
}

/** Plain data, fit to be the body of a health check: 200 when `ok`, else 503. */
export interface Health {
  /** False when the store does not answer, or a worker of this process cannot get at jobs. */
  readonly ok: boolean
  /** What is wrong, a sentence each; empty when `ok`. */
  readonly problems: readonly string[]
  readonly claiming: {
    readonly ok: boolean
    /** Those of this process that have not given up. */
    readonly workers: number
    /** Epoch milliseconds of the last claim that the store answered; null: none yet. */
    readonly lastTurnAt: number | null
    readonly failuresInARow: number
    readonly lastError: string | null
    /** Handlers of this process that could not be stopped and still run. */
    readonly lostSlots: number
    readonly each: readonly WorkerHealth[]
  }
  /** Of the workers of this process; what `blocked` events have told, in sum. */
  readonly leases: {
    /** Who renews now while the main loop is blocked: a `thread`, or nobody but the `main` loop. */
    readonly keeper: 'thread' | 'main'
    readonly blocks: number
    readonly longestBlockMs: number
  }
  readonly store: {
    readonly ok: boolean
    readonly name: string
    readonly latencyMs: number | null
    /** How far the store's clock is ahead of this process's, whole milliseconds; negative: behind. null: the store did not answer. */
    readonly clockAheadMs: number | null
    readonly error: string | null
    readonly details: Readonly<Record<string, string | number | boolean>>
  }
}

export interface HealthOptions {
  /** Also asks which rights this user lacks on the store: `store.details.missingRights`, by name; empty: none. */
  readonly rights?: boolean
}

const HEALTH_OPTIONS = new Set(['rights'])

export interface StoreOperationsContext {
  readonly backend: BackendActor
  readonly clock: Clock
  readonly retention: Retention
  /** The workers of this client; one that gave up says why. */
  readonly workers: () => readonly LocalWorker[]
  readonly onEnded: (id: JobId) => void
}

/** What is asked of a worker of this client. */
interface LocalWorker {
  readonly fatal: HoldfastError | null
  readonly keeper: Keeper
  health(): WorkerHealth
}

/** What one `maintain` did. */
export interface Maintained extends MaintainResult {
  /** Jobs taken back because their lease ran out. */
  readonly reaped: number
}

export class StoreOperations {
  readonly #context: StoreOperationsContext

  constructor(context: StoreOperationsContext) {
    this.#context = context
  }

  /** Nothing of the lane is claimed from the moment this resolves; what runs goes on. */
  async pause(lane: string): Promise<void> {
    await this.#context.backend.ask('queue.policy', { changes: [{ lane: parseName(lane, 'lane'), paused: true }] })
  }

  async resume(lane: string): Promise<void> {
    await this.#context.backend.ask('queue.policy', { changes: [{ lane: parseName(lane, 'lane'), paused: false }] })
  }

  async setPolicy(lane: string, options: LanePolicyOptions): Promise<void> {
    const change = parsePolicy(lane, options)
    this.#requireLimits()
    await this.#context.backend.ask('queue.policy', { changes: [change] })
  }

  #requireLimits(): void {
    const { backend } = this.#context.backend
    if (backend.capabilities.rateLimits) return
    const details = { capability: 'rateLimits' }
    throw new HoldfastError('UNSUPPORTED', `the store ${backend.name} has no limits of lanes`, { details })
  }

  async policy(name: string): Promise<LanePolicyReport> {
    const lane = parseName(name, 'lane')
    this.#requireLimits()
    const { policies, usage } = await this.#context.backend.ask('queue.policy', { changes: [], usage: [lane] })
    const policy = policies.find((each) => each.lane === lane) ?? { lane, paused: false, ...NO_LIMITS }
    const [used] = usage
    if (used === undefined) throw new HoldfastError('INTERNAL', 'the store left a lane unanswered')
    return { ...policy, ...used }
  }

  async policies(): Promise<readonly LanePolicy[]> {
    return (await this.#context.backend.ask('queue.policy', { changes: [] })).policies
  }

  async stats(lane?: string): Promise<Stats> {
    const lanes = lane === undefined ? null : [parseName(lane, 'lane')]
    const reply = await this.#context.backend.ask('queue.stats', { lanes })
    const counts = Object.fromEntries(
      JOB_STATES.map((state) => [state, reply.lanes.reduce((sum, each) => sum + each.counts[state], 0)]),
    ) as Record<JobState, number>
    const ages = reply.lanes.flatMap(({ oldestReadyMs }) => (oldestReadyMs === null ? [] : [oldestReadyMs]))
    return {
      counts,
      total: JOB_STATES.reduce((sum, state) => sum + counts[state], 0),
      ready: counts.queued,
      oldestReadyMs: ages.length === 0 ? null : Math.max(...ages),
      lanes: reply.lanes,
    }
  }

  async lanes(): Promise<readonly LaneStats[]> {
    return (await this.#context.backend.ask('queue.stats', { lanes: null })).lanes
  }

  /** The workers of all processes on this store, the latest beat first; one that died is listed for 5 minutes. At most 1,000. */
  workers(): Promise<readonly WorkerInfo[]> {
    return listWorkers(this.#context.backend)
  }

  /** Takes back expired leases and applies retention, as workers do by themselves from time to time. */
  async maintain(): Promise<Maintained> {
    const { backend, retention, onEnded, workers } = this.#context
    await Promise.all(workers().map(({ keeper }) => keeper.afterGap()))
    const reaped = await reapExpired({
      backend,
      retention,
      onReaped: ({ lease, settlement }) => {
        if (settlement.kind !== 'requeue') onEnded(lease.id)
      },
    })
    return { reaped, ...(await maintainStore(backend, retention)) }
  }

  /** Answers within about 2 s: what is wrong is in the answer. Rejects only with INVALID_ARGUMENT. */
  async health(options: HealthOptions = {}): Promise<Health> {
    refuseUnknown(options, HEALTH_OPTIONS, 'options')
    const store = await this.#storeHealth(parseFlag(options.rights, 'rights'))
    const claiming = this.#claimingHealth()
    const problems = claiming.each.flatMap((worker) =>
      worker.problems.map((problem) => `worker ${worker.workerId}: ${problem}`),
    )
    if (problems.length === 0 && !claiming.ok)
      problems.push(`claims fail: ${claiming.lastError ?? 'none was answered yet'}`)
    if (store.error !== null) problems.unshift(`the store does not answer: ${store.error}`)
    const { workers, backend } = this.#context
    const leases = leasesOf(workers(), backend.backend.capabilities)
    return { ok: store.ok && claiming.ok, problems, claiming, leases, store }
  }

  #claimingHealth(): Health['claiming'] {
    const turns = this.#context.backend.contact('job.turn')
    const all = this.#context.workers()
    const each = all.map((worker) => worker.health())
    const fatal = all.find((worker) => worker.fatal !== null)?.fatal ?? null
    // A claim that is being repeated has not failed yet for its worker, and does already for whoever asks.
    const isFailing = all.length > 0 && turns.failuresInARow > 0
    return {
      ok: !isFailing && each.every((worker) => worker.ok),
      workers: all.filter((worker) => worker.fatal === null).length,
      lastTurnAt: turns.lastOkAt,
      failuresInARow: turns.failuresInARow,
      lastError: fatal?.message ?? turns.lastError?.message ?? null,
      lostSlots: each.reduce((sum, worker) => sum + worker.lostSlots, 0),
      each,
    }
  }

  async #storeHealth(rights: boolean): Promise<Health['store']> {
    const { backend, clock } = this.#context
    const { name } = backend.backend
    const startedAt = clock.monotonic()
    try {
      const { details, nowMs } = await backend.ask('store.health', rights ? { rights } : {})
      const latencyMs = clock.monotonic() - startedAt
      // The store looked at its clock somewhere in between. A little behind rounds to -0, which JSON does not have.
      const clockAheadMs = Math.round(nowMs - clock.now() + latencyMs / 2) + 0
      return { ok: true, name, latencyMs, clockAheadMs, error: null, details }
    } catch (error) {
      const { message } = error as HoldfastError
      return { ok: false, name, latencyMs: null, clockAheadMs: null, error: message, details: {} }
    }
  }
}

function leasesOf(workers: readonly LocalWorker[], { leaseKeeper }: Capabilities): Health['leases'] {
  const keepers = workers.map(({ keeper }) => keeper)
  return {
    keeper: keepers.every(({ hasStandIn }) => hasStandIn) ? leaseKeeper : 'main',
    blocks: keepers.reduce((sum, { blocks }) => sum + blocks, 0),
    longestBlockMs: Math.max(0, ...keepers.map(({ longestBlockMs }) => longestBlockMs)),
  }
}
