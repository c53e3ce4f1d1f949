/** Applies one settlement, guarded by the whole lease token. A complete answers in one or two statements. */
import type { Settlement, Verdict } from '../protocol/index.ts'
import { STATES_AFTER } from '../rules.ts'
import { addAttempt, ENDING, endJob } from './ending.ts'
import { readState, writeObject } from './row.ts'
import type { Session } from './statement.ts'

export interface FoundRow {
  readonly seq: number
  readonly lane: string
  readonly state: string
  readonly token: string | null
  readonly cancel_requested: number
  readonly lease_expires_at: number | null
}

type Kind<K extends Settlement['kind']> = Extract<Settlement, { kind: K }>

export function settle(session: Session, settlement: Settlement, now: number): Verdict {
  if (applies(session, settlement, now)) return 'applied'
  const row = session.sql.get<FoundRow>('job_find', { ns: session.ns, id: settlement.id })
  if (row === undefined) return 'gone'
  if (row.token !== settlement.token) return 'leaseLost'
  if (row.state === 'running' && row.cancel_requested === 1) return cancelInstead(session, settlement, now)
  return STATES_AFTER[settlement.kind].includes(readState(row.state, settlement.id)) ? 'alreadyApplied' : 'leaseLost'
}

function applies(session: Session, settlement: Settlement, now: number): boolean {
  switch (settlement.kind) {
    case 'complete':
      return complete(session, settlement, now)
    case 'dead':
      return die(session, settlement, now)
    case 'cancel':
      return cancel(session, settlement, now)
    case 'retry':
      return putBack(session, settlement, now)
    case 'release':
      return release(session, settlement, now)
    case 'requeue':
      return requeue(session, settlement, now)
    default:
      return settlement satisfies never
  }
}

/** A retry, release or requeue of a job whose cancellation was requested becomes its cancellation. */
function cancelInstead(session: Session, settlement: Settlement, now: number): Verdict {
  const failure = 'failure' in settlement ? settlement.failure : { code: 'CANCELLED', message: 'cancelled on request' }
  return cancel(session, { ...settlement, kind: 'cancel', failure }, now) ? 'cancelled' : 'leaseLost'
}

function complete(session: Session, { id, token, keepMs, ...rest }: Kind<'complete'>, now: number): boolean {
  // Most jobs of a fast queue end here.
  if (keepMs === 0 && session.sql.run('job_delete', [session.ns, id, 'running', token, 0]) === 1) return true
  const { durationMs, output, keepOutputMs } = rest
  const outputUntil = output === null || keepOutputMs === null ? null : now + keepOutputMs
  return endJob(
    session,
    { ...ENDING, id, from: 'running', token, to: 'completed', keepMs, durationMs, output, outputUntil },
    now,
  )
}

function die(session: Session, settlement: Kind<'dead'>, now: number): boolean {
  const { id, token, keepMs, durationMs, failure, crashes, code } = settlement
  const hasCrashed = failure.code === 'PANIC' || failure.code === 'LEASE_EXPIRED'
  const attempt = { outcome: hasCrashed ? 'crashed' : 'failed', failure } as const
  return endJob(
    session,
    {
      ...ENDING,
      id,
      from: 'running',
      token,
      to: 'dlq',
      keepMs,
      durationMs,
      attempt,
      failure,
      crashes,
      dlqCode: code,
    },
    now,
  )
}

function cancel(session: Session, settlement: Kind<'cancel'>, now: number): boolean {
  const { id, token, keepMs, durationMs, failure } = settlement
  const attempt = { outcome: 'cancelled', failure } as const
  return endJob(
    session,
    { ...ENDING, id, from: 'running', token, to: 'cancelled', keepMs, durationMs, attempt, failure },
    now,
  )
}

function putBack(session: Session, settlement: Kind<'retry'>, now: number): boolean {
  const { id, token, crashes, failure, durationMs } = settlement
  const outcome = failure.code === 'PANIC' ? 'crashed' : 'failed'
  if (!addAttempt(session, { id, token, outcome, failure, durationMs, evenIfCancelled: false }, now)) return false
  const { sql, ns } = session
  const written = sql.run('job_retry', {
    ns,
    id,
    token,
    now,
    run_at: now + settlement.delayMs,
    failure: writeObject(failure),
    crashes,
    retry: writeObject(settlement.retry),
    max_attempts: settlement.maxAttempts,
  })
  return written === 1
}

function release(session: Session, { id, token, started, durationMs }: Kind<'release'>, now: number): boolean {
  const attempt = { id, token, outcome: 'released', failure: null, durationMs, evenIfCancelled: false } as const
  if (started && !addAttempt(session, attempt, now)) return false
  const { sql, ns } = session
  return sql.run('job_release', { ns, id, token, now, recorded: started ? 1 : 0 }) === 1
}

function requeue(session: Session, { id, token, failure, crashes }: Kind<'requeue'>, now: number): boolean {
  const attempt = { id, token, outcome: 'crashed', failure, durationMs: null, evenIfCancelled: false } as const
  if (!addAttempt(session, attempt, now)) return false
  const { sql, ns } = session
  return sql.run('job_requeue', { ns, id, token, now, failure: writeObject(failure), crashes }) === 1
}
