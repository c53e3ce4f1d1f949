/** What a client does with lanes and the store as a whole: policies, counts, health, maintenance. */
import type { Retention } from './actors/attempt.ts'
import type { BackendActor } from './actors/backend-actor.ts'
import { type MaintainResult, maintainStore, reapExpired } from './actors/reaper.ts'
import { NO_LIMITS } from './backends/limits.ts'
import type { LanePolicy, LaneStats } from './backends/protocol/index.ts'
import type { Clock } from './clock.ts'
import { parseName } from './config.ts'
import { HoldfastError } from './errors.ts'
import { JOB_STATES, type JobId, type JobState } from './job.ts'
import { type LanePolicyOptions, type LanePolicyReport, parsePolicy } from './lane-policy.ts'

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

export interface Health {
  /** False when the store does not answer, or the workers of this process have not been able to claim. */
  readonly ok: boolean
  readonly claiming: {
    readonly ok: boolean
    readonly workers: number
    /** Epoch milliseconds of the last turn that the store answered; null: none yet. */
    readonly lastTurnAt: number | null
    readonly failuresInARow: number
    readonly lastError: string | null
  }
  readonly store: {
    readonly ok: boolean
    readonly name: string
    readonly latencyMs: number | null
    readonly error: string | null
    readonly details: Readonly<Record<string, string | number | boolean>>
  }
}

export interface StoreOperationsContext {
  readonly backend: BackendActor
  readonly clock: Clock
  readonly retention: Retention
  /** The workers of this client; one that gave up says why. */
  readonly workers: () => readonly { readonly fatal: HoldfastError | null }[]
  readonly onEnded: (id: JobId) => void
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

  /** Takes back expired leases and applies retention, as workers do by themselves from time to time. */
  async maintain(): Promise<Maintained> {
    const { backend, retention, onEnded } = this.#context
    const reaped = await reapExpired({
      backend,
      retention,
      onReaped: ({ lease, settlement }) => {
        if (settlement.kind !== 'requeue') onEnded(lease.id)
      },
    })
    return { reaped, ...(await maintainStore(backend, retention)) }
  }

  /** Answers within about 2 s and never rejects: what is wrong is in the answer. */
  async health(): Promise<Health> {
    const { backend, clock } = this.#context
    const turns = backend.contact('job.turn')
    const all = this.#context.workers()
    const fatal = all.find((worker) => worker.fatal !== null)?.fatal ?? null
    const workers = all.filter((worker) => worker.fatal === null).length
    const isAnswered = turns.lastOkAt !== null && turns.failuresInARow === 0
    const isClaiming = fatal === null && (workers === 0 || isAnswered)
    const claiming = {
      ok: isClaiming,
      workers,
      lastTurnAt: turns.lastOkAt,
      failuresInARow: turns.failuresInARow,
      lastError: fatal?.message ?? turns.lastError?.message ?? null,
    }
    const startedAt = clock.monotonic()
    try {
      const { details } = await backend.ask('store.health', {})
      const store = {
        ok: true,
        name: backend.backend.name,
        latencyMs: clock.monotonic() - startedAt,
        error: null,
        details,
      }
      return { ok: isClaiming, claiming, store }
    } catch (error) {
      const { message } = error as HoldfastError
      return {
        ok: false,
        claiming,
        store: { ok: false, name: backend.backend.name, latencyMs: null, error: message, details: {} },
      }
    }
  }
}
