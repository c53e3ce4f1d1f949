/** The claims of one dispatcher: each has a name of its own, and each lane has its turn to be the first that is looked at. */
import type { Claim, Grant, KeepDead } from '../backends/protocol/index.ts'
import { nonce } from '../random.ts'
import type { DispatcherOptions } from './dispatcher-options.ts'
import { keepDeadOf } from './keep.ts'

export class ClaimRequests {
  private readonly options: Pick<DispatcherOptions, 'backend' | 'env' | 'leaseMs'>
  private readonly keepDead: KeepDead
  private lanes: readonly string[]

  constructor(options: Pick<DispatcherOptions, 'backend' | 'env' | 'lanes' | 'leaseMs'>) {
    this.options = options
    this.lanes = options.lanes
    this.keepDead = keepDeadOf(options.env.retention)
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
