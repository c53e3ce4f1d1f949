/**
 * Jobs that come to a worker which has stopped: the answer to a claim of its, made before and answered after. They go back uncharged,
 * or nobody would run them until their leases run out.
 */
import type { Grant } from '../backends/protocol/index.ts'
import { settleRelease } from './attempt.ts'
import type { DispatcherOptions } from './dispatcher-options.ts'

/** If the store does not hear of it, their leases run out after all. */
export function returnGrants(
  grants: readonly Grant[],
  { backend, env }: Pick<DispatcherOptions, 'backend' | 'env'>,
): void {
  const settlements = grants.flatMap(({ jobs }) => jobs).map((job) => settleRelease(env, job, null))
  if (settlements.length === 0) return
  backend.ask('job.turn', { settlements, claims: [], resend: false }).catch(() => undefined)
}
