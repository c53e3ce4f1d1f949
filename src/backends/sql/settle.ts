/**
 * Applies settlements, each guarded by its whole lease token: one step for all of a kind, then a look at those that did not
 * apply to tell why. A job that is settled twice in one call is settled in the order of the call.
 */
import type { Settlement, Verdict } from '../protocol/index.ts'
import { STATES_AFTER } from '../rules.ts'
import { ENDING, type Ending, endRow } from './ending.ts'
import { noteLast } from './note.ts'
import { byId, missed, type Plan, type Row, read, type Written, write } from './plan.ts'
import { readState, writeObject } from './row.ts'

export interface FoundRow {
  readonly id: string
  readonly state: string
  readonly token: string | null
  readonly cancel_requested: number
}

type Kind<K extends Settlement['kind']> = Extract<Settlement, { kind: K }>
export type Complete = Kind<'complete'>

/** `ifExpired`: only where the lease has run out; of the reaper. */
export function* settle(settlements: readonly Settlement[], ifExpired = false): Plan<readonly Verdict[]> {
  const verdicts = new Map<Settlement, Verdict>()
  for (const group of groupsOf(settlements)) {
    yield* noteLast(group)
    const written = yield* apply(group, ifExpired)
    group.forEach((settlement, index) => {
      if (written[index] === true) verdicts.set(settlement, 'applied')
    })
    const rest = group.filter((settlement) => !verdicts.has(settlement))
    for (const [settlement, verdict] of yield* explain(rest, ifExpired)) verdicts.set(settlement, verdict)
  }
  return settlements.map((settlement) => verdicts.get(settlement) ?? 'leaseLost')
}

/** By kind, in the order in which the kinds first come; one by one when a job occurs twice. */
function groupsOf(settlements: readonly Settlement[]): readonly (readonly Settlement[])[] {
  if (settlements.length < 2) return settlements.length === 0 ? [] : [settlements]
  if (new Set(settlements.map(({ id }) => id)).size < settlements.length) return settlements.map((one) => [one])
  const groups = new Map<string, Settlement[]>()
  for (const settlement of settlements) {
    const group = groups.get(settlement.kind)
    if (group === undefined) groups.set(settlement.kind, [settlement])
    else group.push(settlement)
  }
  return [...groups.values()]
}

const ofKind = <K extends Settlement['kind']>(group: readonly Settlement[], kind: K): readonly Kind<K>[] =>
  group.filter((settlement): settlement is Kind<K> => settlement.kind === kind)

/** All of `group` are of one kind. */
function* apply(group: readonly Settlement[], ifExpired: boolean): Plan<readonly boolean[]> {
  const kind = group[0]?.kind ?? 'complete'
  switch (kind) {
    case 'complete':
      return yield* complete(ofKind(group, kind))
    case 'dead':
      return (yield* end(ofKind(group, kind).map((one) => ({ ...deathOf(one), ifExpired })))).written
    case 'cancel':
      return (yield* end(ofKind(group, kind).map((one) => ({ ...cancellationOf(one), ifExpired })))).written
    case 'retry':
      return (yield* write('job_retry', ofKind(group, kind).map(retryRow(ifExpired)))).written
    case 'release':
      return (yield* write('job_release', ofKind(group, kind).map(releaseRow(ifExpired)))).written
    case 'requeue':
      return (yield* write('job_requeue', ofKind(group, kind).map(requeueRow(ifExpired)))).written
    default:
      return kind satisfies never
  }
}

const end = (endings: readonly Ending[]): Plan<Written> => write('job_end', endings.map(endRow))

/** Why these did not apply. A retry, release or requeue of a job whose cancellation was requested becomes its cancellation. */
function* explain(rest: readonly Settlement[], ifExpired: boolean): Plan<ReadonlyMap<Settlement, Verdict>> {
  const verdicts = new Map<Settlement, Verdict>()
  const found = yield* read<FoundRow>('job_find', byId(rest.map(({ id }) => id)))
  const rows = new Map(found.map((row) => [row.id, row]))
  const cancelled: Settlement[] = []
  for (const settlement of rest) {
    const row = rows.get(settlement.id)
    if (row === undefined) verdicts.set(settlement, 'gone')
    else if (row.token !== settlement.token) verdicts.set(settlement, 'leaseLost')
    else if (row.state === 'running' && row.cancel_requested === 1) cancelled.push(settlement)
    else verdicts.set(settlement, isAfter(settlement, row) ? 'alreadyApplied' : 'leaseLost')
  }
  const outcome = yield* end(cancelled.map((one) => ({ ...cancellationOf(one), ifExpired })))
  cancelled.forEach((settlement, index) => {
    verdicts.set(settlement, outcome.written[index] === true ? 'cancelled' : 'leaseLost')
  })
  return verdicts
}

const isAfter = ({ kind, id }: Settlement, { state }: FoundRow): boolean =>
  STATES_AFTER[kind].includes(readState(state, id))

/** Most jobs of a fast queue that keeps nothing end in the first step. */
function* complete(settlements: readonly Complete[]): Plan<readonly boolean[]> {
  const unkept = settlements.filter(({ keepMs }) => keepMs === 0)
  const deleted = yield* write('job_delete', unkept.map(deletionOf))
  const done = new Set(unkept.filter((_, index) => deleted.written[index] === true))
  const rest = settlements.filter((settlement) => !done.has(settlement))
  const ended = yield* end(rest.map(completionOf))
  const missing = new Set(missed(rest, ended))
  return settlements.map((settlement) => !missing.has(settlement))
}

const deletionOf = ({ id, token }: Complete): Row => ({ id, from: 'running', token })

function completionOf({ id, token, keepMs, durationMs, output, keepOutputMs }: Complete): Ending {
  return { ...ENDING, id, from: 'running', token, to: 'completed', keepMs, durationMs, output, keepOutputMs }
}

function deathOf({ id, token, keepMs, durationMs, failure, crashes, code }: Kind<'dead'>): Ending {
  const hasCrashed = failure.code === 'PANIC' || failure.code === 'LEASE_EXPIRED'
  const attempt = { outcome: hasCrashed ? 'crashed' : 'failed', failure } as const
  const ending = { ...ENDING, id, from: 'running', token, to: 'dlq', keepMs, durationMs, attempt } as const
  return { ...ending, failure, crashes, dlqCode: code }
}

function cancellationOf(settlement: Settlement): Ending {
  const { id, token, keepMs, durationMs } = settlement
  const failure = 'failure' in settlement ? settlement.failure : { code: 'CANCELLED', message: 'cancelled on request' }
  const attempt = { outcome: 'cancelled', failure } as const
  return { ...ENDING, id, from: 'running', token, to: 'cancelled', keepMs, durationMs, attempt, failure }
}

const flag = (is: boolean): number => (is ? 1 : 0)

const retryRow =
  (ifExpired: boolean) =>
  (settlement: Kind<'retry'>): Row => ({
    id: settlement.id,
    token: settlement.token,
    outcome: settlement.failure.code === 'PANIC' ? 'crashed' : 'failed',
    delay_ms: settlement.delayMs,
    duration_ms: settlement.durationMs,
    failure: writeObject(settlement.failure),
    crashes: settlement.crashes,
    retry: writeObject(settlement.retry),
    max_attempts: settlement.maxAttempts,
    if_expired: flag(ifExpired),
  })

const releaseRow =
  (ifExpired: boolean) =>
  ({ id, token, started, durationMs }: Kind<'release'>): Row => ({
    id,
    token,
    started: flag(started),
    duration_ms: durationMs,
    if_expired: flag(ifExpired),
  })

const requeueRow =
  (ifExpired: boolean) =>
  ({ id, token, failure, crashes }: Kind<'requeue'>): Row => ({
    id,
    token,
    failure: writeObject(failure),
    crashes,
    if_expired: flag(ifExpired),
  })
