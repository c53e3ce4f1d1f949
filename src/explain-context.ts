/** Gathers what an explanation needs beside the job. What a store refuses or cannot tell is left out: an explanation says less, and never fails for it. */
import type { BackendActor } from './actors/backend-actor.ts'
import type { StoredJob } from './backends/protocol/index.ts'
import type { ExplainContext } from './blockers.ts'
import { isTerminal } from './job.ts'
import { listWorkers } from './worker-list.ts'

/** Jobs ahead are counted up to this. */
const AHEAD_MAX = 1_000

export async function contextOf(job: StoredJob, backend: BackendActor): Promise<ExplainContext> {
  const { nowMs } = await backend.ask('store.health', {})
  const blank = { nowMs, workers: null, isPaused: null, ahead: null, limits: null }
  if (isTerminal(job.state)) return blank
  const [workers, isPaused, ahead] = await Promise.all([
    known(listWorkers(backend)),
    known(isPausedIn(job.lane, backend)),
    job.state === 'queued' ? known(aheadOf(job, backend)) : null,
  ])
  return { ...blank, workers, isPaused, ahead }
}

/** null: the store did not say. */
const known = <T>(work: Promise<T>): Promise<T | null> => work.catch(() => null)

async function isPausedIn(lane: string, backend: BackendActor): Promise<boolean> {
  const { policies } = await backend.ask('queue.policy', { changes: [] })
  return policies.some((policy) => policy.lane === lane && policy.paused)
}

async function aheadOf({ id }: StoredJob, backend: BackendActor): Promise<ExplainContext['ahead']> {
  const { ahead } = await backend.ask('job.ahead', { ids: [id], limit: AHEAD_MAX })
  const count = ahead[0] ?? null
  return count === null ? null : { count, max: AHEAD_MAX }
}
