/** Gathers what an explanation needs beside the job. What a store refuses or cannot tell is left out: an explanation says less, and never fails for it. */
import type { BackendActor } from './actors/backend-actor.ts'
import type { StoredJob } from './backends/protocol/index.ts'
import type { ExplainContext, LaneLimits } from './blockers.ts'
import { isTerminal } from './job.ts'
import { listWorkers } from './worker-list.ts'

/** Jobs ahead are counted up to this. */
const AHEAD_MAX = 1_000
/** Running jobs of the lane that are looked at for those of one key. */
const RUNNING_MAX = 500

export async function contextOf(job: StoredJob, backend: BackendActor): Promise<ExplainContext> {
  const { nowMs } = await backend.ask('store.health', {})
  const blank = { nowMs, workers: null, isPaused: null, ahead: null, limits: null }
  if (isTerminal(job.state)) return blank
  const [workers, policy, ahead] = await Promise.all([
    known(listWorkers(backend)),
    known(policyOf(job, backend)),
    job.state === 'queued' ? known(aheadOf(job, backend)) : null,
  ])
  return { ...blank, workers, isPaused: policy?.isPaused ?? null, ahead, limits: policy?.limits ?? null }
}

/** null: the store did not say. */
const known = <T>(work: Promise<T>): Promise<T | null> => work.catch(() => null)

interface Policy {
  readonly isPaused: boolean
  readonly limits: LaneLimits | null
}

async function policyOf(job: StoredJob, backend: BackendActor): Promise<Policy> {
  const { lane, concurrencyKey } = job
  const { policies } = await backend.ask('queue.policy', { changes: [] })
  const policy = policies.find((each) => each.lane === lane)
  if (policy === undefined) return { isPaused: false, limits: null }
  const { paused: isPaused, maxInFlight, rate, maxPerKey } = policy
  if (maxInFlight === null && rate === null && maxPerKey === null) return { isPaused, limits: null }
  const { usage } = await backend.ask('queue.policy', { changes: [], usage: [lane] })
  const { inFlight = null, tokens = null } = usage[0] ?? {}
  // A token comes within this time when there is none.
  const throttledInMs = rate !== null && tokens !== null && tokens < 1 ? Math.ceil(rate.perMs / rate.limit) : null
  const isKeyed = maxPerKey !== null && concurrencyKey !== null
  const holders = isKeyed ? await holdersOf(lane, concurrencyKey, backend) : null
  const key = { concurrencyKey, maxPerKey, keyInFlight: holders?.length ?? null, holders }
  return { isPaused, limits: { maxInFlight, inFlight, rate, throttledInMs, ...key } }
}

async function holdersOf(lane: string, key: string, backend: BackendActor): Promise<readonly string[]> {
  const query = { lane, states: ['running'], type: null, limit: RUNNING_MAX, cursor: null } as const
  const { jobs } = await backend.ask('job.list', query)
  return jobs.filter(({ concurrencyKey }) => concurrencyKey === key).map(({ id }) => id)
}

async function aheadOf({ id }: StoredJob, backend: BackendActor): Promise<ExplainContext['ahead']> {
  const { ahead } = await backend.ask('job.ahead', { ids: [id], limit: AHEAD_MAX })
  const count = ahead[0] ?? null
  return count === null ? null : { count, max: AHEAD_MAX }
}
