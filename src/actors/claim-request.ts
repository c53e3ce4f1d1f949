/**
 * The claims of one dispatcher: each has a name of its own, and each lane has its turn to be the first that is looked at. A dangerous job
 * needs a slot when it comes: after one as many claims as there are lanes ask for no job beyond the free slots, or it would go back, and be
 * the first of the next claim, for as long as fast jobs or one slow one take all slots.
 */
import type { Claim, Grant, KeepDead } from '../backends/protocol/index.ts'
import { nonce } from '../random.ts'
import type { DispatcherOptions } from './dispatcher-options.ts'
import { keepDeadOf } from './keep.ts'
import { isDangerous } from './trial.ts'

export class ClaimRequests {
  private readonly options: Pick<DispatcherOptions, 'backend' | 'env' | 'leaseMs'>
  private readonly keepDead: KeepDead
  private lanes: readonly string[]
  /** Claims yet to be answered that ask for nothing beyond the free slots. */
  private bareClaims = 0
  /** True while a job is worth having before a slot is free for it. */
  isMoreWorthHolding = false

  constructor(options: Pick<DispatcherOptions, 'backend' | 'env' | 'lanes' | 'leaseMs'>) {
    this.options = options
    this.lanes = options.lanes
    this.keepDead = keepDeadOf(options.env.retention)
  }

  /** Told of each answer before the next claim is made. */
  answered({ jobs, more, limited }: Grant): void {
    this.bareClaims = jobs.some(isDangerous) ? this.lanes.length : Math.max(0, this.bareClaims - 1)
    // Under limits a job that is held but does not run would take the place of one that could.
    this.isMoreWorthHolding = more && limited === undefined && this.bareClaims === 0
  }

  /** For as many jobs as wanted, as far as the store gives them in one go. */
  next(wanted: number): Claim {
    const { backend, env, leaseMs } = this.options
    const [first = '', ...others] = this.lanes
    const lanes = this.lanes
    this.lanes = [...others, first]
    return {
      workerId: env.workerId,
      nonce: nonce(env.random),
      lanes,
      limit: Math.min(wanted, backend.backend.limits.claimJobs),
      leaseMs,
      ...this.keepDead,
    }
  }
}

/** When a job is due or a rate permits the next start, whichever comes first. */
export function nextChanceInMs({ dueInMs, throttled = [] }: Grant): number | null {
  const times = [dueInMs, ...throttled.map(({ inMs }) => inMs)].filter((inMs) => inMs !== null)
  return times.length === 0 ? null : Math.min(...times)
}
