/**
 * What happened in a run, as facts in the order in which the store applied them. The memory store is atomic, so this
 * order is the linearization that the checkers judge. Facts are read off the messages themselves, not off the store.
 */
import type { MessageType, Reply, Request, Settlement, Verdict } from '#dist/src/backends/protocol/index.js'
import type { JobId, JobState, LeaseToken } from '#dist/src/job.js'

/** One execution of one message by the store. `copy` counts from 0; a duplicate delivered later has 1, 2, … */
export interface Executed<T extends MessageType = MessageType> {
  readonly at: number
  readonly origin: string
  readonly type: T
  readonly request: Request<T>
  readonly reply: Reply<T>
  readonly copy: number
}

/** `at` is virtual time, which is monotone whatever the clocks of stores and processes say; `storeNow` is the store's clock. */
interface Moment {
  readonly at: number
  readonly storeNow: number
  readonly job: JobId
}

export type Fact =
  | (Moment & {
      readonly kind: 'enqueue'
      readonly outcome: 'created' | 'deduplicated'
      /** The job that the key led to; differs from `job` when deduplicated. */
      readonly result: JobId
      readonly lane: string
      readonly key: string | null
      readonly ref: string | null
      /** The store's time from which the job may start, and from which it may not any more. */
      readonly eligibleAt: number
      readonly deadlineAt: number | null
    })
  | (Moment & {
      readonly kind: 'grant'
      readonly token: LeaseToken
      readonly worker: string
      readonly attempt: number
      readonly maxAttempts: number
      readonly expiresAt: number
      /** The claim said that it was sent before. */
      readonly resend: boolean
    })
  | (Moment & {
      readonly kind: 'settle'
      readonly how: Settlement['kind']
      readonly via: 'turn' | 'reap'
      readonly token: LeaseToken
      readonly verdict: Verdict
      readonly delayMs: number
    })
  | (Moment & {
      readonly kind: 'renew'
      readonly token: LeaseToken
      readonly outcome: 'renewed' | 'cancelRequested' | 'leaseLost' | 'gone'
      readonly expiresAt: number
    })
  | (Moment & { readonly kind: 'progress'; readonly token: LeaseToken; readonly verdict: Verdict })
  | (Moment & {
      readonly kind: 'cancel'
      readonly force: boolean
      readonly outcome: 'cancelled' | 'requested' | 'already_terminal' | 'not_found'
    })
  | (Moment & { readonly kind: 'promote'; readonly outcome: 'promoted' | 'invalid_state' | 'not_found' })
  | (Moment & { readonly kind: 'bury' })
  /** A lane was paused or resumed; `job` is empty. */
  | (Moment & { readonly kind: 'policy'; readonly lane: string; readonly paused: boolean })
  /** The store's clock is about to jump from `storeNow`. What is due by now stays due. It concerns every job; `job` is empty. */
  | (Moment & { readonly kind: 'jump' })

export type FactOf<K extends Fact['kind']> = Extract<Fact, { kind: K }>

/** What a handler saw of itself. `epoch` names the grant: it is unique for each grant of a job. */
export interface Effect {
  readonly kind: 'start' | 'end'
  readonly at: number
  readonly job: JobId
  readonly attempt: number
  readonly epoch: number
  /** Of an end: what the handler did. */
  readonly result?: 'returned' | 'threw'
}

/** What a producer was told about one call. `ambiguous`: it may have been done or not. */
export interface Produced {
  /** Unique to the call and stored with the job. */
  readonly ref: string
  readonly lane: string
  readonly key: string | null
  readonly status: 'ok' | 'ambiguous' | 'failed'
  readonly id: JobId | null
}

/** A job as the store has it at the end. */
export interface DumpedJob {
  readonly id: JobId
  readonly lane: string
  readonly key: string | null
  readonly state: JobState
  readonly attempts: number
  readonly finishedAt: number | null
}

/** All that a checker is given. */
export interface Run {
  readonly facts: readonly Fact[]
  readonly effects: readonly Effect[]
  readonly produced: readonly Produced[]
  readonly dump: readonly DumpedJob[]
  /** Jobs that retention removed, as the policy said. */
  readonly pruned?: ReadonlySet<JobId>
}

export const epochOf = (token: LeaseToken): number => Number(token.slice(0, token.indexOf(':')))

type Translators = { [T in MessageType]?: (entry: Executed<T>, storeNow: number) => Fact[] }

const translators: Translators = {
  'job.enqueue': ({ at, request, reply }, storeNow) =>
    request.jobs.flatMap((job, index) => {
      const result = reply.results[index]
      if (result === undefined || result.outcome === 'refused') return []
      const eligibleAt = job.runAt ?? storeNow + job.delayMs
      const { lane, idempotencyKey: key, traceId: ref, deadlineAt } = job
      const { outcome, id } = result
      return [
        { kind: 'enqueue', at, storeNow, job: job.id, outcome, result: id, lane, key, ref, eligibleAt, deadlineAt },
      ]
    }),
  'job.turn': ({ at, request, reply }, storeNow) => [
    ...settlementFacts({ at, storeNow, via: 'turn' }, request.settlements, reply.verdicts),
    ...reply.grants.flatMap((grant, index) => grantFacts({ at, storeNow }, request, { grant, index })),
  ],
  'lease.renew': ({ at, request, reply }, storeNow) =>
    request.leases.flatMap(({ id, token }, index) => {
      const outcome = reply.outcomes[index]
      if (outcome === undefined) return []
      return [{ kind: 'renew', at, storeNow, job: id, token, outcome, expiresAt: storeNow + request.leaseMs }]
    }),
  'lease.reap': ({ at, request, reply }, storeNow) =>
    settlementFacts({ at, storeNow, via: 'reap' }, request.decisions, reply.verdicts),
  'job.note': ({ at, request, reply }, storeNow) =>
    request.notes.flatMap(({ id, token }, index) => {
      const verdict = reply.verdicts[index]
      return verdict === undefined ? [] : [{ kind: 'progress', at, storeNow, job: id, token, verdict }]
    }),
  'queue.policy': ({ at, request }, storeNow) =>
    request.changes.flatMap(({ lane, paused }) =>
      paused === undefined ? [] : [{ kind: 'policy', at, storeNow, job: '', lane, paused }],
    ),
  'job.cancel': ({ at, request, reply }, storeNow) =>
    request.ids.flatMap((job, index) => {
      const outcome = reply.outcomes[index]
      return outcome === undefined ? [] : [{ kind: 'cancel', at, storeNow, job, force: request.force, outcome }]
    }),
  'job.promote': ({ at, request, reply }, storeNow) =>
    request.ids.flatMap((job, index) => {
      const outcome = reply.outcomes[index]
      return outcome === undefined ? [] : [{ kind: 'promote', at, storeNow, job, outcome }]
    }),
}

function settlementFacts(
  { at, storeNow, via }: { readonly at: number; readonly storeNow: number; readonly via: 'turn' | 'reap' },
  settlements: readonly Settlement[],
  verdicts: readonly Verdict[],
): Fact[] {
  return settlements.flatMap((settlement, index) => {
    const verdict = verdicts[index]
    if (verdict === undefined) return []
    const { id: job, token, kind: how } = settlement
    const delayMs = settlement.kind === 'retry' ? settlement.delayMs : 0
    return [{ kind: 'settle', at, storeNow, job, how, via, token, verdict, delayMs }]
  })
}

function grantFacts(
  { at, storeNow }: { readonly at: number; readonly storeNow: number },
  request: Request<'job.turn'>,
  { grant, index }: { readonly grant: Reply<'job.turn'>['grants'][number]; readonly index: number },
): Fact[] {
  const claim = request.claims[index]
  if (claim === undefined) return []
  const { workerId: worker, leaseMs } = claim
  const { resend } = request
  // A claim buries what is past its deadline before it grants anything.
  const buried = grant.deadlined.map((job): Fact => ({ kind: 'bury', at, storeNow, job }))
  const granted = grant.jobs.map(({ id: job, token, attempt, maxAttempts }): Fact => {
    const expiresAt = storeNow + leaseMs
    return { kind: 'grant', at, storeNow, job, token, worker, attempt, maxAttempts, expiresAt, resend }
  })
  return [...buried, ...granted]
}

/** The facts of one executed message. `storeNow`: the store's clock when it was executed. */
export function factsOf(entry: Executed, storeNow: number): readonly Fact[] {
  const translate = translators[entry.type] as ((entry: Executed, storeNow: number) => Fact[]) | undefined
  return translate?.(entry, storeNow) ?? []
}
