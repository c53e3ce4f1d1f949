/**
 * Replays facts job by job: who holds the lease before each fact, until when, and what has been written with it.
 * Written apart from the stores and from the machine, so that it can judge both. It goes on after a violation.
 */
import type { JobId, JobState, LeaseToken } from '#dist/src/job.js'
import type { Fact, FactOf } from './history.ts'

/** Where a job stands. `waiting` here covers every state in which it is in the store and not yet running. */
export interface Situation {
  phase: 'absent' | 'waiting' | 'running' | 'terminal'
  terminal: JobState | null
  /** The grant that may write now. */
  held: LeaseToken | null
  expiresAt: number
  /** What each token has written that ended its attempt. */
  readonly applied: Map<LeaseToken, string>
  readonly granted: Set<LeaseToken>
  lastEpoch: number
  charged: number
  eligibleAt: number
  deadlineAt: number
  retries: number
  takenBack: number
  cancelRequested: boolean
}

const fresh = (): Situation => ({
  phase: 'absent',
  terminal: null,
  held: null,
  expiresAt: 0,
  applied: new Map(),
  granted: new Set(),
  lastEpoch: 0,
  charged: 0,
  eligibleAt: 0,
  deadlineAt: Number.POSITIVE_INFINITY,
  retries: 0,
  takenBack: 0,
  cancelRequested: false,
})

const TERMINAL_OF: Readonly<Record<string, JobState>> = { complete: 'completed', dead: 'dlq', cancel: 'cancelled' }

export const isAccepted = (fact: Fact): boolean =>
  fact.kind === 'settle'
    ? fact.verdict === 'applied' || fact.verdict === 'cancelled'
    : fact.kind === 'renew'
      ? fact.outcome === 'renewed' || fact.outcome === 'cancelRequested'
      : fact.kind === 'progress'
        ? fact.verdict === 'applied'
        : false

function end(job: Situation, state: JobState): void {
  job.phase = 'terminal'
  job.terminal = state
  job.held = null
}

function applySettlement(job: Situation, fact: FactOf<'settle'>): void {
  if (!isAccepted(fact)) return
  job.applied.set(fact.token, fact.how)
  job.held = null
  const state = fact.verdict === 'cancelled' ? 'cancelled' : TERMINAL_OF[fact.how]
  if (state !== undefined) {
    end(job, state)
    return
  }
  job.phase = 'waiting'
  if (fact.how === 'retry') {
    job.eligibleAt = fact.storeNow + fact.delayMs
    job.retries += 1
  } else {
    job.takenBack += 1
    if (fact.how === 'release') job.charged -= 1
  }
}

function applyGrant(job: Situation, fact: FactOf<'grant'>): void {
  // A claim sent again is given the same grant again: nothing is new, and its lease runs on as it did.
  if (fact.token === job.held) return
  job.phase = 'running'
  job.held = fact.token
  job.expiresAt = fact.expiresAt
  job.granted.add(fact.token)
  job.lastEpoch = Math.max(job.lastEpoch, Number(fact.token.split(':')[0]))
  job.charged += 1
}

function apply(job: Situation, fact: Fact): void {
  switch (fact.kind) {
    case 'enqueue':
      if (fact.outcome !== 'created' || job.phase !== 'absent') return
      job.phase = 'waiting'
      job.eligibleAt = fact.eligibleAt
      job.deadlineAt = fact.deadlineAt ?? Number.POSITIVE_INFINITY
      return
    case 'grant':
      applyGrant(job, fact)
      return
    case 'settle':
      applySettlement(job, fact)
      return
    case 'renew':
      if (isAccepted(fact) && fact.token === job.held) job.expiresAt = fact.expiresAt
      return
    case 'cancel':
      if (fact.outcome === 'requested') job.cancelRequested = true
      if (fact.outcome === 'cancelled') end(job, 'cancelled')
      return
    case 'promote':
      if (fact.outcome === 'promoted') job.eligibleAt = fact.storeNow
      return
    case 'bury':
      end(job, 'dlq')
      return
    case 'progress':
    case 'jump':
    case 'policy':
      return
    default:
      throw new Error(`unknown fact ${JSON.stringify(fact satisfies never)}`)
  }
}

/** Calls `visit` for each fact with the situation of its job just before it; returns where every job stands at the end. */
export function replay(
  facts: readonly Fact[],
  visit: (fact: Fact, before: Readonly<Situation>) => void = () => {},
): ReadonlyMap<JobId, Readonly<Situation>> {
  const jobs = new Map<JobId, Situation>()
  for (const fact of facts) {
    if (fact.kind === 'jump') {
      for (const job of jobs.values()) if (job.eligibleAt <= fact.storeNow) job.eligibleAt = Number.NEGATIVE_INFINITY
      continue
    }
    let job = jobs.get(fact.job)
    if (job === undefined) {
      job = fresh()
      jobs.set(fact.job, job)
    }
    visit(fact, job)
    apply(job, fact)
  }
  return jobs
}
