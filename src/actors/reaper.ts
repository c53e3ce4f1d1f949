/**
 * Takes back jobs whose lease ran out, moves what is due or past its deadline, and removes what retention has given up.
 * Any number may run at once: every write is guarded by the lease token it read, so of two reapers one changes nothing.
 */
import { laneOf } from '../backends/kept.ts'
import type { ExpiredLease, ReapDecision, Verdict } from '../backends/protocol/index.ts'
import { decideExpiry, expiryFailure } from '../backends/rules.ts'
import type { TimerHandle, Timers } from '../clock.ts'
import { DEFAULTS } from '../config.ts'
import type { HoldfastError } from '../errors.ts'
import type { Random } from '../random.ts'
import { type Retention, retentionIn } from '../retention.ts'
import type { Warn } from '../telemetry.ts'
import { Actor } from './actor.ts'
import type { BackendActor } from './backend-actor.ts'
import { keepCountsOf, keepDeadOf } from './keep.ts'

export interface Reaped {
  readonly lease: ExpiredLease
  readonly settlement: ReapDecision
}

export interface ReaperOptions {
  readonly backend: BackendActor
  readonly timers: Timers
  readonly random: Random
  readonly warn: Warn
  readonly retention: Retention
  readonly reapMs?: number
  readonly maintainMs?: number
  /** After a gap: what this process holds is renewed before anything is taken back. null: there was none. */
  readonly afterGap: () => Promise<void> | null
  /** Told of every expired lease that this reaper, and no other, has taken back. */
  readonly onReaped: (reaped: Reaped) => void
}

type ReaperMessage = { readonly type: 'reap' } | { readonly type: 'maintain' }

const BATCH = 100
const JITTER = 0.25

export class Reaper extends Actor<ReaperMessage> {
  private readonly options: ReaperOptions
  private readonly timerOf = new Map<ReaperMessage['type'], TimerHandle>()

  constructor(options: ReaperOptions) {
    super('reaper')
    this.options = options
  }

  protected override onStart(): void {
    this.arm('reap')
    this.arm('maintain')
  }

  protected override onStop(): void {
    for (const timer of this.timerOf.values()) this.options.timers.clear(timer)
  }

  protected override onRestart(): void {
    this.onStop()
    this.onStart()
  }

  private arm(type: ReaperMessage['type']): void {
    const { timers, random, reapMs = DEFAULTS.reapMs, maintainMs = DEFAULTS.maintainMs } = this.options
    const base = type === 'reap' ? reapMs : maintainMs
    const waitMs = base * (1 + JITTER * (2 * random.next() - 1))
    this.timerOf.set(
      type,
      timers.set(() => this.tell({ type }), waitMs, true),
    )
  }

  protected override receive(message: ReaperMessage): void {
    this.work(message.type).then(
      () => this.rearm(message.type),
      (error: HoldfastError) => {
        if (this.state === 'active')
          this.options.warn({ code: error.code }, `${message.type} failed; it is tried again`)
        this.rearm(message.type)
      },
    )
  }

  private async work(type: ReaperMessage['type']): Promise<void> {
    if (type === 'reap') {
      await this.options.afterGap()
      await reapExpired(this.options)
    } else await maintainStore(this.options.backend, this.options.retention)
  }

  private rearm(type: ReaperMessage['type']): void {
    if (this.state === 'active') this.arm(type)
  }
}

/** Takes back all leases that have run out, batch by batch; returns how many this call took back. */
export async function reapExpired(options: Pick<ReaperOptions, 'backend' | 'retention' | 'onReaped'>): Promise<number> {
  const { backend, retention, onReaped } = options
  let decided: readonly Reaped[] = []
  let count = 0
  for (;;) {
    const { verdicts, expired } = await backend.ask('lease.reap', {
      decisions: decided.map(({ settlement }) => settlement),
      limit: BATCH,
    })
    const applied = decided.flatMap((reaped, index) => asApplied(reaped, verdicts[index]))
    for (const reaped of applied) onReaped(reaped)
    count += applied.length
    // What is named again though nothing came of it would be named for ever; others may have been quicker, too. The next round looks again.
    if (expired.length === 0 || (decided.length > 0 && applied.length === 0)) return count
    decided = expired.map((lease) => ({ lease, settlement: decideLease(lease, retention) }))
  }
}

/** What the store made of a decision: a requeue became a cancellation when that was asked for meanwhile. */
function asApplied(reaped: Reaped, verdict: Verdict | undefined): readonly Reaped[] {
  if (verdict === 'applied') return [reaped]
  const { lease, settlement } = reaped
  if (verdict !== 'cancelled' || settlement.kind !== 'requeue') return []
  const { id, token, durationMs, failure, keepMs } = settlement
  return [{ lease, settlement: { kind: 'cancel', id, token, durationMs, failure, keepMs } }]
}

function decideLease(lease: ExpiredLease, retention: Retention): ReapDecision {
  const { id, token, cancelRequested, workerId } = lease
  const decision = decideExpiry(lease, cancelRequested)
  const base = { id, token, durationMs: 0, failure: expiryFailure(workerId) }
  const { deadMs, cancelledMs } = retentionIn(retention, laneOf(id))
  switch (decision.next) {
    case 'requeue':
      return { ...base, kind: 'requeue', crashes: decision.crashes, keepMs: null }
    case 'dead':
      return { ...base, kind: 'dead', code: decision.code, crashes: decision.crashes, keepMs: deadMs }
    case 'cancel':
      return { ...base, kind: 'cancel', keepMs: cancelledMs }
    default:
      return decision satisfies never
  }
}

export interface MaintainResult {
  /** Ended jobs that were removed. */
  readonly pruned: number
  readonly outputsDropped: number
  /** Delayed and retrying jobs that became ready. */
  readonly promoted: number
  /** Jobs dead-lettered because their deadline passed. */
  readonly deadlined: number
}

/** Applies retention in bounded batches until nothing is due. */
export async function maintainStore(backend: BackendActor, retention: Retention): Promise<MaintainResult> {
  let total: MaintainResult = { pruned: 0, outputsDropped: 0, promoted: 0, deadlined: 0 }
  const keepCounts = keepCountsOf(retention)
  const request = { limit: 500, ...keepDeadOf(retention), ...(keepCounts === undefined ? {} : { keepCounts }) }
  for (;;) {
    const reply = await backend.ask('store.maintain', request)
    total = {
      pruned: total.pruned + reply.pruned,
      outputsDropped: total.outputsDropped + reply.outputsDropped,
      promoted: total.promoted + reply.promoted,
      deadlined: total.deadlined + reply.deadlined,
    }
    if (!reply.more) return total
  }
}
