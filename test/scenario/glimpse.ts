/**
 * What a store has of each job, read past it in one go. Of a call whose answer was lost, two looks tell what it did: the facts that
 * its answer would have told.
 */
import type { MessageType, Request, Settlement } from '#dist/src/backends/protocol/index.js'
import type { Fact } from '../simulation/history.ts'

const LETTERS: Readonly<Record<string, string>> = {
  scheduled: 'S',
  queued: 'Q',
  retry_wait: 'W',
  running: 'R',
  completed: 'C',
  cancelled: 'K',
  dlq: 'D',
}

/** The letter of a state as tables name it. */
export const letterOf = (state: string, isCancelRequested: boolean): string =>
  state === 'running' && isCancelRequested ? 'X' : (LETTERS[state] ?? '?')

/**
 * Letters of states: S scheduled, Q queued, W to be retried, R running, X running and to be cancelled, C completed, K cancelled, D dead. `-`: not run
 * yet, where the store does not tell more.
 */
export interface Seen {
  readonly state: string
  readonly token: string
  readonly attempts: number
  readonly expiresAt: number | null
}

export interface Glimpse {
  readonly jobs: ReadonlyMap<string, Seen>
  readonly paused: ReadonlySet<string>
}

export const sameGlimpse = (a: Glimpse, b: Glimpse): boolean =>
  JSON.stringify([[...a.jobs].sort(), [...a.paused]]) === JSON.stringify([[...b.jobs].sort(), [...b.paused]])

export interface Unheard<T extends MessageType = MessageType> {
  readonly type: T
  readonly request: Request<T>
  readonly before: Glimpse
  readonly after: Glimpse
  readonly at: number
  readonly storeNow: number
  maxAttemptsOf(id: string): number
}

/** In the order in which the store does things. */
export function factsOfUnheard(unheard: Unheard): readonly Fact[] {
  switch (unheard.type) {
    case 'job.enqueue':
      return enqueueFacts(unheard as Unheard<'job.enqueue'>)
    case 'job.turn':
      return turnFacts(unheard as Unheard<'job.turn'>)
    case 'lease.reap':
      return settleFacts(unheard, (unheard.request as Request<'lease.reap'>).decisions, 'reap')
    case 'lease.renew':
      return renewFacts(unheard as Unheard<'lease.renew'>)
    case 'job.cancel':
      return cancelFacts(unheard as Unheard<'job.cancel'>)
    case 'job.promote':
      return promoteFacts(unheard as Unheard<'job.promote'>)
    case 'queue.policy':
      return policyFacts(unheard as Unheard<'queue.policy'>)
    default:
      return []
  }
}

const isHeld = (job: Seen | undefined): job is Seen => job?.state === 'R' || job?.state === 'X'

function enqueueFacts({ request, before, after, at, storeNow }: Unheard<'job.enqueue'>): Fact[] {
  return request.jobs.flatMap((job) => {
    if (before.jobs.has(job.id) || !after.jobs.has(job.id)) return []
    const { id, lane, idempotencyKey: key, traceId: ref, deadlineAt } = job
    const eligibleAt = job.runAt ?? storeNow + job.delayMs
    const what = { job: id, outcome: 'created' as const, result: id, lane, key, ref, eligibleAt, deadlineAt }
    return [{ kind: 'enqueue' as const, at, storeNow, ...what }]
  })
}

function settleFacts(
  { before, after, at, storeNow }: Unheard,
  settlements: readonly Settlement[],
  via: 'turn' | 'reap',
): Fact[] {
  return settlements.flatMap((settlement) => {
    const { id: job, token, kind: how } = settlement
    const [was, is] = [before.jobs.get(job), after.jobs.get(job)]
    if (!isHeld(was) || was.token !== token || (isHeld(is) && is.token === token)) return []
    const isTurned = was.state === 'X' && (how === 'retry' || how === 'release' || how === 'requeue')
    const delayMs = settlement.kind === 'retry' ? settlement.delayMs : 0
    const verdict = isTurned ? 'cancelled' : 'applied'
    return [{ kind: 'settle', at, storeNow, job, how, via, token, verdict, delayMs } as const]
  })
}

function turnFacts(unheard: Unheard<'job.turn'>): Fact[] {
  const { request, before, after, at, storeNow } = unheard
  const settled = settleFacts(unheard, request.settlements, 'turn')
  const settledIds = new Set(settled.map(({ job }) => job))
  const buried = [...after.jobs].flatMap(([job, { state }]): Fact[] => {
    const isBuried = state === 'D' && before.jobs.get(job)?.state !== 'D' && !settledIds.has(job)
    return isBuried ? [{ kind: 'bury', at, storeNow, job }] : []
  })
  const granted = request.claims.flatMap(({ workerId: worker, nonce, leaseMs }) =>
    [...after.jobs].flatMap(([job, { state, token, attempts: attempt }]): Fact[] => {
      const isNew = state === 'R' && token.includes(`:${worker}:${nonce}.`) && before.jobs.get(job)?.token !== token
      if (!isNew) return []
      const limits = { maxAttempts: unheard.maxAttemptsOf(job), expiresAt: storeNow + leaseMs }
      return [{ kind: 'grant', at, storeNow, job, token, worker, attempt, ...limits, resend: request.resend }]
    }),
  )
  return [...settled, ...buried, ...granted]
}

function renewFacts({ request, before, after, at, storeNow }: Unheard<'lease.renew'>): Fact[] {
  return request.leases.flatMap(({ id: job, token }): Fact[] => {
    const [was, is] = [before.jobs.get(job), after.jobs.get(job)]
    if (is?.token !== token || is.expiresAt === null || is.expiresAt === was?.expiresAt) return []
    const outcome = is.state === 'X' ? 'cancelRequested' : 'renewed'
    return [{ kind: 'renew', at, storeNow, job, token, outcome, expiresAt: is.expiresAt }]
  })
}

function cancelFacts({ request, before, after, at, storeNow }: Unheard<'job.cancel'>): Fact[] {
  return request.ids.flatMap((job): Fact[] => {
    const [was, is] = [before.jobs.get(job), after.jobs.get(job)]
    if (was === undefined || was.state === is?.state) return []
    const outcome = is?.state === 'X' ? 'requested' : 'cancelled'
    return [{ kind: 'cancel', at, storeNow, job, force: request.force, outcome }]
  })
}

function promoteFacts({ request, before, after, at, storeNow }: Unheard<'job.promote'>): Fact[] {
  return request.ids.flatMap((job): Fact[] => {
    const hasMoved = before.jobs.get(job)?.state !== 'Q' && after.jobs.get(job)?.state === 'Q'
    return hasMoved ? [{ kind: 'promote', at, storeNow, job, outcome: 'promoted' }] : []
  })
}

function policyFacts({ request, before, after, at, storeNow }: Unheard<'queue.policy'>): Fact[] {
  return request.changes.flatMap(({ lane, paused }): Fact[] =>
    after.paused.has(lane) === paused && before.paused.has(lane) !== paused
      ? [{ kind: 'policy', at, storeNow, job: '', lane, paused }]
      : [],
  )
}
