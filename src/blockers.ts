/**
 * Why a job does not run now, as a list that an operator can act upon: pure, from the record of the job and what is known of its lane.
 * What is not known is left out, so that no store ever says less than the truth.
 */
import type { JobRecord } from './job.ts'
import type { WorkerInfo } from './worker-list.ts'

/** What the policy of a lane allows and what of it is in use; absent or null: not limited, or not known. */
export interface LaneLimits {
  readonly maxInFlight?: number | null
  readonly inFlight?: number | null
  readonly rate?: { readonly limit: number; readonly perMs: number } | null
  /** Until the rate lets the next job of the lane start; 0 or less: it does now. */
  readonly throttledInMs?: number | null
  readonly maxPerKey?: number | null
  readonly concurrencyKey?: string | null
  readonly keyInFlight?: number | null
  /** Ids of jobs that hold places of the key. */
  readonly holders?: readonly string[] | null
}

/** What is known beside the job itself. */
export interface ExplainContext {
  /** The store's clock. */
  readonly nowMs: number
  /** null: not known. */
  readonly workers: readonly WorkerInfo[] | null
  readonly isPaused: boolean | null
  /** Ready jobs of the lane that come first, counted up to `max`; null: not known. */
  readonly ahead: { readonly count: number; readonly max: number } | null
  readonly limits: LaneLimits | null
}

interface Told {
  /** One sentence for people. */
  readonly text: string
}

/** One reason why a job does not run now, or not on. */
export type Blocker = Told &
  (
    | { readonly kind: 'paused'; readonly lane: string }
    | { readonly kind: 'no_worker'; readonly lane: string; readonly lastWorkerId: string | null }
    | {
        readonly kind: 'no_handler'
        readonly type: string
        readonly workers: number
        readonly types: readonly string[]
      }
    /** Only some of the lane's workers have a handler: whichever comes first takes the job. */
    | { readonly kind: 'mixed_handlers'; readonly type: string; readonly withHandler: number; readonly without: number }
    | { readonly kind: 'not_due'; readonly at: number; readonly inMs: number }
    | { readonly kind: 'waiting_for_parent' }
    | { readonly kind: 'deadline_passed'; readonly at: number }
    | { readonly kind: 'limit'; readonly maxInFlight: number; readonly inFlight: number }
    | { readonly kind: 'rate'; readonly throttledInMs: number }
    | {
        readonly kind: 'key_limit'
        readonly concurrencyKey: string
        readonly maxPerKey: number
        readonly keyInFlight: number
        readonly holders: readonly string[]
      }
    /** All slots of the workers that could run it are taken. */
    | { readonly kind: 'busy'; readonly workers: number; readonly slots: number }
    | { readonly kind: 'behind'; readonly ahead: number; readonly isMore: boolean }
    /** It runs, and its worker has not been heard of. */
    | { readonly kind: 'owner_silent'; readonly workerId: string; readonly lastBeatMs: number }
    /** Its worker is lost, and nobody has taken the job back. */
    | { readonly kind: 'lease_expired'; readonly workerId: string; readonly expiredForMs: number }
  )

const NAMES_MAX = 10
/** Workers look every few seconds; a lease that is over for longer is looked after by nobody. */
const UNREAPED_MS = 1_000

export function blockersOf(job: JobRecord, context: ExplainContext): readonly Blocker[] {
  switch (job.state) {
    case 'waiting':
      return [{ kind: 'waiting_for_parent', text: 'it waits for its parent to complete' }]
    case 'scheduled':
    case 'retry_wait':
      return [notDue(job, context), ...deadlinePassed(job, context), ...laneBlockers(job, context)]
    case 'queued':
      return [
        ...deadlinePassed(job, context),
        ...laneBlockers(job, context),
        ...limitBlockers(job, context.limits),
        ...queueBlockers(job, context),
      ]
    case 'running':
      return ownerBlockers(job, context)
    case 'completed':
    case 'cancelled':
    case 'dlq':
      return []
    default:
      return job.state satisfies never
  }
}

function notDue({ state, runAt }: JobRecord, { nowMs }: ExplainContext): Blocker {
  const inMs = Math.max(0, runAt - nowMs)
  const what = state === 'retry_wait' ? 'its next attempt is due' : 'it is due'
  const when = inMs === 0 ? `${what}, and becomes ready when a worker looks` : `${what} in ${span(inMs)}`
  return { kind: 'not_due', at: runAt, inMs, text: when }
}

function deadlinePassed({ deadlineAt }: JobRecord, { nowMs }: ExplainContext): readonly Blocker[] {
  if (deadlineAt === null || deadlineAt > nowMs) return []
  const text = 'its deadline has passed: the next worker that looks puts it into the dead letters'
  return [{ kind: 'deadline_passed', at: deadlineAt, text }]
}

const serves = (lane: string) => (worker: WorkerInfo) => worker.lanes.includes(lane) || worker.moreLanes > 0
const mayHandle = (type: string) => (worker: WorkerInfo) => worker.types.includes(type) || worker.moreTypes > 0

/** Those that take jobs of the lane. */
const takersOf = (lane: string, workers: readonly WorkerInfo[]): readonly WorkerInfo[] =>
  workers.filter(({ isAlive, isStopping }) => isAlive && !isStopping).filter(serves(lane))

function laneBlockers({ lane, type }: JobRecord, { isPaused, workers }: ExplainContext): readonly Blocker[] {
  const paused: readonly Blocker[] = isPaused === true ? [{ kind: 'paused', lane, text: `lane ${lane} is paused` }] : []
  if (workers === null) return paused
  const takers = takersOf(lane, workers)
  if (takers.length === 0) return [...paused, noWorker(lane, workers)]
  return [...paused, ...handlerBlockers(type, takers)]
}

function noWorker(lane: string, workers: readonly WorkerInfo[]): Blocker {
  const last = workers.find(serves(lane))
  const base = { kind: 'no_worker', lane, lastWorkerId: last?.id ?? null } as const
  const nobody = `no live worker takes jobs of lane ${lane}`
  if (last === undefined) return { ...base, text: nobody }
  const what = last.isAlive ? 'is stopping' : `was last heard of ${span(last.lastBeatMs)} ago`
  return { ...base, text: `${nobody}; ${last.id} ${what}` }
}

function handlerBlockers(type: string, takers: readonly WorkerInfo[]): readonly Blocker[] {
  const withHandler = takers.filter(mayHandle(type)).length
  const without = takers.length - withHandler
  if (without === 0) return []
  const end = 'whichever takes the job puts it into the dead letters as UNKNOWN_JOB_TYPE'
  if (withHandler > 0) {
    const text = `${without} of ${count(takers.length, 'live worker')} of the lane ${without === 1 ? 'has' : 'have'} no handler for ${type}: ${end}`
    return [{ kind: 'mixed_handlers', type, withHandler, without, text }]
  }
  const types = [...new Set(takers.flatMap((worker) => worker.types))].sort()
  const has = `${count(takers.length, 'live worker')} of the lane, and none has a handler for ${type}; they have ${names(types)}: ${end}`
  return [{ kind: 'no_handler', type, workers: takers.length, types, text: has }]
}

function limitBlockers({ lane }: JobRecord, limits: LaneLimits | null): readonly Blocker[] {
  if (limits === null) return []
  const { maxInFlight, inFlight, rate, throttledInMs, maxPerKey, concurrencyKey, keyInFlight, holders } = limits
  const found: Blocker[] = []
  if (isGiven(maxInFlight) && isGiven(inFlight) && inFlight >= maxInFlight) {
    const text = `lane ${lane} runs at most ${maxInFlight} at once, and ${inFlight} ${inFlight === 1 ? 'runs' : 'run'}`
    found.push({ kind: 'limit', maxInFlight, inFlight, text })
  }
  if (isGiven(throttledInMs) && throttledInMs > 0) {
    const limit = isGiven(rate) ? `at most ${rate.limit} in ${span(rate.perMs)}` : 'a limited rate'
    const text = `lane ${lane} starts ${limit}; the next may start in ${span(throttledInMs)}`
    found.push({ kind: 'rate', throttledInMs, text })
  }
  if (isGiven(maxPerKey) && isGiven(concurrencyKey) && isGiven(keyInFlight) && keyInFlight >= maxPerKey) {
    const held = holders ?? []
    const by = held.length === 0 ? '' : `, held by ${names(held)}`
    const text = `key ${concurrencyKey} of lane ${lane} allows ${maxPerKey} at once, and ${keyInFlight} ${keyInFlight === 1 ? 'runs' : 'run'}${by}`
    found.push({ kind: 'key_limit', concurrencyKey, maxPerKey, keyInFlight, holders: held, text })
  }
  return found
}

function queueBlockers({ lane, type }: JobRecord, { ahead, workers }: ExplainContext): readonly Blocker[] {
  const able = takersOf(lane, workers ?? []).filter(mayHandle(type))
  const slots = able.reduce((sum, { concurrency }) => sum + concurrency, 0)
  const isBusy = able.length > 0 && able.every(({ running, concurrency }) => running >= concurrency)
  const found: Blocker[] = []
  if (isBusy) {
    const text = `all ${count(slots, 'slot')} of ${count(able.length, 'live worker')} of the lane ${slots === 1 ? 'is' : 'are'} taken`
    found.push({ kind: 'busy', workers: able.length, slots, text })
  }
  if (ahead !== null && ahead.count > 0) {
    const isMore = ahead.count >= ahead.max
    const many = isMore ? `${ahead.max} or more jobs` : count(ahead.count, 'job')
    found.push({
      kind: 'behind',
      ahead: ahead.count,
      isMore,
      text: `${many} of the lane ${ahead.count === 1 ? 'is' : 'are'} ahead of it`,
    })
  }
  return found
}

function ownerBlockers(job: JobRecord, { nowMs, workers }: ExplainContext): readonly Blocker[] {
  const workerId = job.workerId ?? ''
  const owner = workers?.find(({ id }) => id === workerId)
  const expiredForMs = job.leaseExpiresAt === null ? 0 : nowMs - job.leaseExpiresAt
  const found: Blocker[] = []
  if (owner !== undefined && !owner.isAlive) {
    const then =
      expiredForMs > 0
        ? 'its lease has run out'
        : `its lease runs out in ${span(-expiredForMs)}, then ${job.cancelRequested ? 'the job is cancelled' : 'the job runs again'}`
    const text = `${workerId} was last heard of ${span(owner.lastBeatMs)} ago; ${then}`
    found.push({ kind: 'owner_silent', workerId, lastBeatMs: owner.lastBeatMs, text })
  }
  if (expiredForMs > UNREAPED_MS) {
    const text = `its lease ran out ${span(expiredForMs)} ago, and nobody has taken it back: workers do, and so does holdfast maintain`
    found.push({ kind: 'lease_expired', workerId, expiredForMs, text })
  }
  return found
}

const isGiven = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`

/** The first few, and how many more there are. */
function names(all: readonly string[]): string {
  const listed = all.slice(0, NAMES_MAX).join(', ')
  return all.length > NAMES_MAX ? `${listed} and ${all.length - NAMES_MAX} more` : listed
}

/** A span as people say it; the same in all texts of an explanation. */
export function span(ms: number): string {
  if (ms < 99_950) return `${Math.round(ms / 100) / 10} s`
  if (ms < 5_970_000) return `${Math.round(ms / 60_000)} min`
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} d`
}
