/**
 * Says every few seconds that this worker is there and what it does, and that it has left when it stops. Whoever reads the list sees
 * who could run a job. Nothing depends on it but answers to people: a beat that is lost costs no lease and no claim.
 */
import type { WorkerBeat } from '../backends/protocol/index.ts'
import { type Clock, type TimerHandle, type Timers, withDeadline } from '../clock.ts'
import { DEFAULTS } from '../config.ts'
import { HoldfastError } from '../errors.ts'
import type { Random } from '../random.ts'
import type { Warn } from '../telemetry.ts'
import { Actor } from './actor.ts'
import type { BackendActor } from './backend-actor.ts'

const JITTER = 0.1
/** Names of lanes and types that a worker tells of, each. */
const NAMES_MAX = 200

/** What stays the same as long as the worker lives. */
export interface WorkerIdentity {
  readonly id: string
  readonly lanes: readonly string[]
  readonly types: readonly string[]
  readonly host: string
  readonly pid: number
  readonly nodeVersion: string
  readonly version: string
}

export interface MembershipOptions {
  readonly backend: BackendActor
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly warn: Warn
  readonly identity: WorkerIdentity
  /** What the worker does now. */
  readonly look: () => Pick<WorkerBeat, 'concurrency' | 'running' | 'isStopping'>
}

type MembershipMessage = { readonly type: 'beat' } | { readonly type: 'over'; readonly error: HoldfastError | null }

export class Membership extends Actor<MembershipMessage> {
  private readonly options: MembershipOptions
  private readonly startedAt: number
  private timer: TimerHandle = null
  private underWay: Promise<void> | null = null
  private hasFailed = false
  private isStoreSilent = false

  constructor(options: MembershipOptions) {
    super('membership')
    this.options = options
    this.startedAt = options.clock.monotonic()
  }

  /** Nobody waits for the first beat: a worker works also where it cannot be announced. */
  protected override onStart(): void {
    this.tell({ type: 'beat' })
  }

  /** From now on a goodbye is sent, and nobody waits for its answer: the store is known to be silent. */
  giveUpOnStore(): void {
    this.isStoreSilent = true
  }

  /** A beat that is under way must be over first, or it would announce the worker again. */
  protected override async onStop(): Promise<void> {
    const { timers } = this.options
    timers.clear(this.timer)
    const left = (this.underWay ?? Promise.resolve()).then(() => this.leave())
    if (this.isStoreSilent) left.catch(() => {})
    else await withDeadline(left, DEFAULTS.stopSilenceMs, timers, unheard).catch(() => {})
  }

  private async leave(): Promise<void> {
    const { backend, identity } = this.options
    await backend.ask('worker.beat', { workers: [], gone: [identity.id], forgetAfterMs: DEFAULTS.workerForgetMs })
  }

  protected override onRestart(): void {
    this.arm()
  }

  protected override receive(message: MembershipMessage): void {
    if (message.type === 'beat') this.beat()
    else this.over(message.error)
  }

  private beat(): void {
    if (this.underWay !== null || this.state !== 'active') return
    const { backend } = this.options
    this.underWay = backend
      .ask('worker.beat', { workers: [this.worker()], gone: [], forgetAfterMs: DEFAULTS.workerForgetMs })
      .then(
        () => this.ended(null),
        (error: HoldfastError) => this.ended(error),
      )
  }

  private ended(error: HoldfastError | null): void {
    this.underWay = null
    this.tell({ type: 'over', error })
  }

  private over(error: HoldfastError | null): void {
    // Once for each outage: a role that may not do it would say so for ever.
    if (error !== null && !this.hasFailed && this.state === 'active')
      this.options.warn({ code: error.code, err: error.message }, 'this worker could not be announced to the store')
    this.hasFailed = error !== null
    this.arm()
  }

  private arm(): void {
    const { timers, random } = this.options
    timers.clear(this.timer)
    if (this.state !== 'active') return
    const waitMs = DEFAULTS.workerBeatMs * (1 + JITTER * (2 * random.next() - 1))
    this.timer = timers.set(() => this.tell({ type: 'beat' }), waitMs, true)
  }

  private worker(): WorkerBeat {
    const { clock, identity, look } = this.options
    const { lanes, types } = identity
    return {
      ...identity,
      ...look(),
      lanes: lanes.slice(0, NAMES_MAX),
      types: types.slice(0, NAMES_MAX),
      moreLanes: Math.max(0, lanes.length - NAMES_MAX),
      moreTypes: Math.max(0, types.length - NAMES_MAX),
      upMs: Math.round(clock.monotonic() - this.startedAt),
    }
  }
}

const unheard = (): HoldfastError => new HoldfastError('STORE_TIMEOUT', 'the store did not hear that a worker has left')
