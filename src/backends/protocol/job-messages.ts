/**
 * The messages about single jobs: enqueue, turn (settle and claim), leases, cancel, reads.
 * All are batches of plain data that can cross a thread; a single job is a batch of one.
 */
import type {
  AttemptRecord,
  Failure,
  JobDefinition,
  JobId,
  JobRecord,
  JobState,
  LeaseToken,
  Payload,
  RetryPolicy,
} from '../../job.ts'
import type { ThrottleReason } from './store-messages.ts'

/**
 * `created` is also the answer when the very same id is sent again, so that an enqueue may be repeated after a lost reply.
 * `deduplicated`: the lane has a job with the same idempotency key, whose id and state are given.
 * `refused`: the lane accepts no more for now; nothing was stored. Entries count one by one, in their order.
 */
export type EnqueueResult =
  | { readonly outcome: 'created' | 'deduplicated'; readonly id: JobId; readonly state: JobState }
  | { readonly outcome: 'refused'; readonly id: JobId; readonly retryAfterMs: number }

/** One line of a job's log. `number` counts the lines of the attempt from 1; `text` is the line as JSON, which stores keep unread. */
export interface NoteLine {
  readonly number: number
  readonly text: string
}

/**
 * What a running job says of itself. A note may come twice: a line whose number is not above the last one stored of the same
 * lease is known already.
 */
export interface Note {
  /** null: as it was. */
  readonly progress: Payload | null
  /** By rising number; some may have been left out. */
  readonly lines: readonly NoteLine[]
  /** How many lines the job keeps in all, the newest. */
  readonly keepLines: number
}

export interface LogQuery {
  readonly id: JobId
  /** The last line that is known; null: from the oldest that is kept. */
  readonly after: LinePlace | null
  readonly limit: number
}

/** Where a line is in the log of its job: lines are in the order of these two. */
export interface LinePlace {
  readonly leaseEpoch: number
  readonly number: number
}

export type StoredLine = LinePlace & NoteLine

interface SettlementBase {
  readonly id: JobId
  readonly token: LeaseToken
  /** What the attempt had not told yet, stored in the same step if this settlement applies and the job is kept. */
  readonly note?: Note
  /** How long the handler ran. */
  readonly durationMs: number
  /** How long the record is kept if this ends the job; null: for ever; 0: not at all. */
  readonly keepMs: number | null
}

/** How an attempt ends, with the token that proves the right to say so. */
export type Settlement =
  | (SettlementBase & {
      readonly kind: 'complete'
      /** null: the output is not kept. */
      readonly output: Payload | null
      readonly keepOutputMs: number | null
    })
  | (SettlementBase & {
      readonly kind: 'retry'
      readonly delayMs: number
      readonly failure: Failure
      readonly crashes: number
      /** Frozen with the job from the first failure on. */
      readonly retry: RetryPolicy
      readonly maxAttempts: number
    })
  | (SettlementBase & {
      readonly kind: 'dead'
      readonly code: string
      readonly failure: Failure
      readonly crashes: number
    })
  | (SettlementBase & { readonly kind: 'cancel'; readonly failure: Failure })
  /** Gives the job back uncharged. `started`: the handler was called, so the attempt is worth a record. */
  | (SettlementBase & { readonly kind: 'release'; readonly started: boolean })
  /** Only in `lease.reap`: the lease ran out and budget is left. */
  | (SettlementBase & { readonly kind: 'requeue'; readonly failure: Failure; readonly crashes: number })

/** What is decided about an expired lease; only its owner can complete a job. */
export type ReapDecision = Exclude<Settlement, { readonly kind: 'complete' }>

/**
 * `applied`: done now. `alreadyApplied`: this same settlement was applied before. `cancelled`: a retry, release or
 * requeue of a job whose cancellation was requested became its cancellation. `leaseLost`: another grant, an expiry or
 * a forced cancellation took the job; nothing was changed. `gone`: the job is not there any more.
 */
export type Verdict = 'applied' | 'alreadyApplied' | 'cancelled' | 'leaseLost' | 'gone'

/** Retention of jobs that are found past their deadline; null: for ever. */
export interface KeepDead {
  readonly keepDeadMs: number | null
  /** Of lanes that have their own. */
  readonly keepDeadMsOf?: Readonly<Record<string, number | null>>
}

export interface Claim extends KeepDead {
  readonly workerId: string
  /** Unique to this claim; a turn sent again under the same nonce gets the jobs it was given the first time. */
  readonly nonce: string
  /** In the order in which they are to be looked at; paused lanes give nothing. */
  readonly lanes: readonly string[]
  readonly limit: number
  readonly leaseMs: number
}

/** A job with a fresh lease. Times are the store's. */
export interface ClaimedJob {
  readonly id: JobId
  readonly type: string
  readonly lane: string
  readonly payload: Payload
  readonly token: LeaseToken
  readonly attempt: number
  readonly maxAttempts: number
  readonly maxAttemptsFixed: boolean
  readonly crashes: number
  readonly maxCrashes: number
  readonly retry: RetryPolicy | null
  readonly timeoutMs: number | null
  readonly deadlineAt: number | null
  /** Time to the deadline on the store's clock when the lease was given. */
  readonly deadlineInMs: number | null
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly traceId: string | null
  readonly keepResultMs: number | null
}

/** A lane that gave less than was asked for and waits, because of a limit. */
export interface Throttle {
  readonly lane: string
  readonly reason: ThrottleReason
  /** Time until its rate permits the next start; null: nobody knows. */
  readonly inMs: number | null
}

export interface Grant {
  readonly jobs: readonly ClaimedJob[]
  /** True when the lanes may hold more that could run now. */
  readonly more: boolean
  /** Time until the next delayed job of these lanes is due; null: none is waiting. */
  readonly dueInMs: number | null
  /** Jobs that were found past their deadline and are in the dead letters now. */
  readonly deadlined: readonly JobId[]
  /** Absent: no limit held anything back. */
  readonly throttled?: readonly Throttle[]
  /** Lanes that were looked at and are under limits, so that an end of an attempt there may let another begin; absent: none. */
  readonly limited?: readonly string[]
}

export interface LeaseRef {
  readonly id: JobId
  readonly token: LeaseToken
}

/** `cancelRequested`: renewed, and somebody asked for the cancellation of the job. */
export type RenewOutcome = 'renewed' | 'cancelRequested' | 'leaseLost' | 'gone'

export interface ExpiredLease extends LeaseRef {
  readonly workerId: string
  readonly attempt: number
  readonly maxAttempts: number
  readonly crashes: number
  readonly maxCrashes: number
  readonly cancelRequested: boolean
  readonly startedAt: number
  readonly expiredForMs: number
}

export type CancelOutcome = 'cancelled' | 'requested' | 'already_terminal' | 'not_found'
export type PromoteOutcome = 'promoted' | 'invalid_state' | 'not_found'

/** A record as a store holds it: values still encoded. */
export interface StoredJob extends Omit<JobRecord, 'progress'> {
  readonly payload: Payload
  readonly output: Payload | null
  readonly progress: Payload | null
  readonly maxAttemptsFixed: boolean
  readonly keepResultMs: number | null
}

export interface ListQuery {
  readonly lane: string | null
  readonly states: readonly JobState[] | null
  readonly type: string | null
  readonly limit: number
  /** Opaque text from the reply before; null: from the newest on. */
  readonly cursor: string | null
}

export interface JobProtocol {
  'job.enqueue': {
    /** `resend` false: none of these ids was ever sent before, so that a store need not look for them among ended jobs. */
    request: { readonly jobs: readonly JobDefinition[]; readonly resend?: boolean }
    reply: { readonly results: readonly EnqueueResult[] }
  }
  'job.turn': {
    /** `resend`: this very turn was sent before and its outcome is not known. */
    request: {
      readonly settlements: readonly Settlement[]
      readonly claims: readonly Claim[]
      readonly resend: boolean
    }
    reply: { readonly verdicts: readonly Verdict[]; readonly grants: readonly Grant[] }
  }
  'lease.renew': {
    request: { readonly leases: readonly LeaseRef[]; readonly leaseMs: number }
    reply: { readonly outcomes: readonly RenewOutcome[] }
  }
  /** Applies decisions about expired leases (only if still expired), then names up to `limit` more that are. */
  'lease.reap': {
    request: { readonly decisions: readonly ReapDecision[]; readonly limit: number }
    reply: { readonly verdicts: readonly Verdict[]; readonly expired: readonly ExpiredLease[] }
  }
  'job.note': {
    request: { readonly notes: readonly (LeaseRef & Note)[] }
    reply: { readonly verdicts: readonly Verdict[] }
  }
  /** For each query its lines in order; none for a job that is not there. */
  'job.logs': {
    request: { readonly queries: readonly LogQuery[] }
    reply: { readonly logs: readonly (readonly StoredLine[])[] }
  }
  /** `force` takes a running job from its owner at once. */
  'job.cancel': {
    request: { readonly ids: readonly JobId[]; readonly force: boolean; readonly keepMs: number | null }
    reply: { readonly outcomes: readonly CancelOutcome[] }
  }
  /** Makes scheduled and retrying jobs due now. */
  'job.promote': {
    request: { readonly ids: readonly JobId[] }
    reply: { readonly outcomes: readonly PromoteOutcome[] }
  }
  /** null: not there. */
  'job.states': {
    request: { readonly ids: readonly JobId[] }
    reply: { readonly states: readonly (JobState | null)[] }
  }
  'job.get': { request: { readonly ids: readonly JobId[] }; reply: { readonly jobs: readonly (StoredJob | null)[] } }
  /** How many ready jobs of its lane come before each, `limit` standing for so many or more; null: it is not ready, or goes by its key. */
  'job.ahead': {
    request: { readonly ids: readonly JobId[]; readonly limit: number }
    reply: { readonly ahead: readonly (number | null)[] }
  }
  /** Newest first. Payloads and outputs are left empty. */
  'job.list': { request: ListQuery; reply: { readonly jobs: readonly StoredJob[]; readonly cursor: string | null } }
  /** Attempts of each job in order, the running one last. */
  'job.history': {
    request: { readonly ids: readonly JobId[] }
    reply: { readonly attempts: readonly (readonly AttemptRecord[])[] }
  }
}
