/** The protocol as tests speak it: definitions with defaults, claims and settlements of single jobs, reads that must succeed. */
import { randomBytes } from 'node:crypto'
import type { AttemptRecord } from 'holdfast'
import type { Backend } from '#dist/src/backends/backend.js'
import type {
  Claim,
  ClaimedJob,
  Grant,
  LeaseRef,
  ReapDecision,
  RenewOutcome,
  Settlement,
  StoredJob,
  Verdict,
  WorkerBeat,
} from '#dist/src/backends/protocol/index.js'
import { systemClock } from '#dist/src/clock.js'
import { DEFAULT_RETRY } from '#dist/src/contract.js'
import type { JobDefinition } from '#dist/src/job.js'
import { createUlidFactory, systemRandom } from '#dist/src/random.js'

export const ulid = createUlidFactory(systemClock, systemRandom)

/** A job with nothing special about it; `lane` also makes the id. */
export function definition(overrides: Partial<JobDefinition> = {}): JobDefinition {
  const { lane = 'default' } = overrides
  return {
    id: `${lane}/${ulid()}`,
    type: 'task',
    lane,
    payload: '{"n":1}',
    priority: 0,
    runAt: null,
    delayMs: 0,
    deadlineAt: null,
    timeoutMs: null,
    maxAttempts: 7,
    maxAttemptsFixed: false,
    retry: null,
    maxCrashes: 3,
    idempotencyKey: null,
    concurrencyKey: null,
    metadata: null,
    traceId: null,
    keepResultMs: null,
    replayOf: null,
    ...overrides,
  }
}

/** Stores a new job. */
export async function put(backend: Backend, overrides: Partial<JobDefinition> = {}): Promise<JobDefinition> {
  const job = definition(overrides)
  const { results } = await backend.call('job.enqueue', { jobs: [job] })
  if (results[0]?.outcome !== 'created') throw new Error(`not created: ${JSON.stringify(results[0])}`)
  return job
}

export const claimOf = (overrides: Partial<Claim> = {}): Claim => ({
  workerId: 'worker-a',
  nonce: randomBytes(12).toString('hex'),
  lanes: ['default'],
  limit: 1,
  leaseMs: 30_000,
  keepDeadMs: null,
  ...overrides,
})

export async function grantOf(backend: Backend, overrides: Partial<Claim> = {}): Promise<Grant> {
  const { grants } = await backend.call('job.turn', { settlements: [], claims: [claimOf(overrides)], resend: false })
  const [grant] = grants
  if (grant === undefined) throw new Error('the claim was not answered')
  return grant
}

export async function claim(backend: Backend, overrides: Partial<Claim> = {}): Promise<readonly ClaimedJob[]> {
  return (await grantOf(backend, overrides)).jobs
}

/** Claims one job that must be there. */
export async function claimOne(backend: Backend, overrides: Partial<Claim> = {}): Promise<ClaimedJob> {
  const [job] = await claim(backend, overrides)
  if (job === undefined) throw new Error('nothing to claim')
  return job
}

export async function settle(backend: Backend, settlement: Settlement): Promise<Verdict> {
  const { verdicts } = await backend.call('job.turn', { settlements: [settlement], claims: [], resend: false })
  const [verdict] = verdicts
  if (verdict === undefined) throw new Error('the settlement was not answered')
  return verdict
}

const base = ({ id, token }: LeaseRef) => ({ id, token, durationMs: 5, keepMs: null })
const FAILURE = { code: 'HANDLER_ERROR', message: 'it failed' }

export const complete = (job: LeaseRef, output = '"done"'): Settlement => ({
  ...base(job),
  kind: 'complete',
  output,
  keepOutputMs: null,
})
export const retryIn = (job: LeaseRef, delayMs: number): Settlement => ({
  ...base(job),
  kind: 'retry',
  delayMs,
  failure: FAILURE,
  crashes: 0,
  retry: DEFAULT_RETRY,
  maxAttempts: 7,
})
export const dead = (job: LeaseRef): ReapDecision => ({
  ...base(job),
  kind: 'dead',
  code: 'PERMANENT_ERROR',
  failure: { code: 'PERMANENT_ERROR', message: 'no use' },
  crashes: 0,
})
export const cancelled = (job: LeaseRef): ReapDecision => ({
  ...base(job),
  kind: 'cancel',
  failure: { code: 'CANCELLED', message: 'cancelled' },
})
export const release = (job: LeaseRef): Settlement => ({ ...base(job), kind: 'release', started: true })
export const requeue = (job: LeaseRef): ReapDecision => ({
  ...base(job),
  kind: 'requeue',
  failure: { code: 'LEASE_EXPIRED', message: 'the lease ran out' },
  crashes: 1,
})

/** Every way in which an owner can end an attempt. */
export const SETTLEMENTS = { complete, retry: (job: LeaseRef) => retryIn(job, 1_000), dead, cancel: cancelled, release }

export async function stored(backend: Backend, id: string): Promise<StoredJob> {
  const [job] = (await backend.call('job.get', { ids: [id] })).jobs
  if (job === null || job === undefined) throw new Error(`no job ${id}`)
  return job
}

export async function history(backend: Backend, id: string): Promise<readonly AttemptRecord[]> {
  return (await backend.call('job.history', { ids: [id] })).attempts[0] ?? []
}

/** All that can be read of a job, to compare before and after. */
export async function picture(backend: Backend, id: string): Promise<object> {
  return { job: await stored(backend, id), attempts: await history(backend, id) }
}

export async function renew(backend: Backend, job: LeaseRef, leaseMs = 30_000): Promise<RenewOutcome | undefined> {
  const { outcomes } = await backend.call('lease.renew', { leases: [{ id: job.id, token: job.token }], leaseMs })
  return outcomes[0]
}

export async function progress(backend: Backend, job: LeaseRef): Promise<Verdict | undefined> {
  const notes = [{ id: job.id, token: job.token, progress: '0.5', lines: [], keepLines: 0 }]
  return (await backend.call('job.note', { notes })).verdicts[0]
}

/** What a worker says of itself, with nothing special about it. */
export const beatOf = (id: string, overrides: Partial<WorkerBeat> = {}): WorkerBeat => ({
  id,
  lanes: ['default'],
  types: ['task'],
  moreTypes: 0,
  moreLanes: 0,
  concurrency: 3,
  running: 1,
  isStopping: false,
  host: 'a',
  pid: 7,
  upMs: 60_000,
  nodeVersion: '20.0.0',
  version: '0.0.1',
  ...overrides,
})

/** Workers say that they are there, or have gone. */
export const announce = (
  backend: Backend,
  workers: readonly WorkerBeat[],
  gone: readonly string[] = [],
): Promise<{ readonly noted: number }> => backend.call('worker.beat', { workers, gone, forgetAfterMs: 300_000 })
