/**
 * The lease protocol as a specification: what each message must answer and what it leaves behind, in plain data.
 * Written apart from the stores; the exploration compares every answer of the real store with this one.
 */
import type { Verdict } from '#dist/src/backends/protocol/index.js'
import type { JobState } from '#dist/src/job.js'

export const LEASE_MS = 20
export const TICK_MS = 10
export const RETRY_DELAY_MS = 10

export type SettleKind = 'complete' | 'retry' | 'release'

/** A message on its way from the holder of `grant`, or from a reaper that saw it expired. */
export interface Message {
  readonly kind: SettleKind | 'renew' | 'requeue'
  readonly job: number
  readonly grant: number
}

export interface SpecJob {
  state: Exclude<JobState, 'waiting' | 'scheduled' | 'dlq'>
  /** The grant that may write; 0: none. */
  holder: number
  expiresAt: number
  runAt: number
  attempts: number
  cancelRequested: boolean
  /** The grant whose settlement would be recognised if it came again; 0: none. */
  recognised: number
}

export interface Spec {
  now: number
  readonly jobs: SpecJob[]
  /** Grants so far; each has a worker, a job, and the settlement its worker decided on. */
  readonly grants: { readonly worker: number; readonly job: number; decided: SettleKind | null }[]
  inFlight: Message[]
}

export function begin(jobs: number): Spec {
  const job = (): SpecJob => ({
    state: 'queued',
    holder: 0,
    expiresAt: 0,
    runAt: 0,
    attempts: 0,
    cancelRequested: false,
    recognised: 0,
  })
  return { now: 0, jobs: Array.from({ length: jobs }, job), grants: [], inFlight: [] }
}

export function copy({ now, jobs, grants, inFlight }: Spec): Spec {
  return {
    now,
    jobs: jobs.map((job) => ({ ...job })),
    grants: grants.map((grant) => ({ ...grant })),
    inFlight: [...inFlight],
  }
}

/**
 * Equal keys behave alike from here on. The order of messages on their way does not matter, nor do the names of workers:
 * they are told apart by the order in which they first claimed.
 */
export function keyOf({ now, jobs, grants, inFlight }: Spec): string {
  const names = [...new Set(grants.map(({ worker }) => worker))]
  const rows = jobs.map((job) => Object.values(job).join())
  const given = grants.map(({ worker, job, decided }) => `${names.indexOf(worker)}${job}${decided}`)
  const messages = inFlight.map(({ kind, job, grant }) => `${kind}${job}${grant}`).sort()
  return `${now}|${rows.join(';')}|${given.join()}|${messages.join()}`
}

const isDue = ({ state, runAt }: SpecJob, now: number): boolean =>
  state === 'queued' || (state === 'retry_wait' && runAt <= now)

/** Gives the first job that can run to `worker`; the number of the job, or null. */
export function claim(spec: Spec, worker: number): number | null {
  const ready = [...spec.jobs.keys()].filter((index) => isDue(spec.jobs[index] as SpecJob, spec.now))
  const [first] = ready.sort((a, b) => (spec.jobs[a]?.runAt ?? 0) - (spec.jobs[b]?.runAt ?? 0) || a - b)
  const job = first === undefined ? undefined : spec.jobs[first]
  if (first === undefined || job === undefined) return null
  spec.grants.push({ worker, job: first, decided: null })
  Object.assign(job, { state: 'running', holder: spec.grants.length, expiresAt: spec.now + LEASE_MS, recognised: 0 })
  job.attempts += 1
  return first
}

function settle(job: SpecJob, { kind, grant }: Message, now: number): Verdict {
  if (job.holder !== grant) return job.recognised === grant ? 'alreadyApplied' : 'leaseLost'
  job.holder = 0
  job.recognised = grant
  if (kind === 'complete') {
    job.state = 'completed'
    return 'applied'
  }
  if (job.cancelRequested) {
    job.state = 'cancelled'
    return 'cancelled'
  }
  job.state = kind === 'retry' ? 'retry_wait' : 'queued'
  if (kind === 'retry') job.runAt = now + RETRY_DELAY_MS
  else job.attempts -= 1
  return 'applied'
}

function requeue(job: SpecJob, grant: number, now: number): Verdict {
  if (job.holder !== grant || job.expiresAt > now) return 'leaseLost'
  Object.assign(job, { holder: 0, recognised: 0, state: job.cancelRequested ? 'cancelled' : 'queued' })
  return job.cancelRequested ? 'cancelled' : 'applied'
}

/** Applies a message that arrived; what the store must answer. */
export function deliver(spec: Spec, message: Message): string {
  const job = spec.jobs[message.job]
  if (job === undefined) return 'gone'
  if (message.kind === 'requeue') return requeue(job, message.grant, spec.now)
  if (message.kind !== 'renew') return settle(job, message, spec.now)
  if (job.holder !== message.grant) return 'leaseLost'
  job.expiresAt = spec.now + LEASE_MS
  return job.cancelRequested ? 'cancelRequested' : 'renewed'
}

export function cancel(spec: Spec, index: number, force: boolean): string {
  const job = spec.jobs[index]
  if (job === undefined) return 'not_found'
  if (job.state === 'completed' || job.state === 'cancelled') return 'already_terminal'
  if (job.state === 'running' && !force) {
    job.cancelRequested = true
    return 'requested'
  }
  Object.assign(job, { state: 'cancelled', holder: 0, recognised: 0 })
  return 'cancelled'
}

/** The grants that a reaper finds expired now. */
export const expired = (spec: Spec): readonly number[] =>
  spec.jobs.filter((job) => job.holder !== 0 && job.expiresAt <= spec.now).map((job) => job.holder)

/** States that the store may show: what is due may have been moved already or not. */
export const shown = (job: SpecJob, now: number): readonly JobState[] =>
  job.state === 'retry_wait' && job.runAt <= now ? ['retry_wait', 'queued'] : [job.state]
