/** Leases after the grant: renewed, reaped once they ran out, and used to store progress. */
import type { ExpiredLease, Reply, Request, Settlement, Verdict } from '../protocol/index.ts'
import { type FoundRow, settle } from './settle.ts'
import type { Session } from './statement.ts'

export function renew(session: Session, { leases, leaseMs }: Request<'lease.renew'>): Reply<'lease.renew'> {
  const { sql, ns } = session
  const until = session.now() + leaseMs
  const outcomes = leases.map(({ id, token }) => {
    const row = sql.get<{ cancel_requested: number }>('lease_renew', { ns, id, token, lease_expires_at: until })
    if (row !== undefined) return row.cancel_requested === 1 ? ('cancelRequested' as const) : ('renewed' as const)
    return isKnown(session, id) ? ('leaseLost' as const) : ('gone' as const)
  })
  return { outcomes }
}

const isKnown = ({ sql, ns }: Session, id: string): boolean => sql.get('job_find', { ns, id }) !== undefined

export function progress(session: Session, { updates }: Request<'job.progress'>): Reply<'job.progress'> {
  const { sql, ns } = session
  const verdicts = updates.map(({ id, token, progress: value }) => {
    if (sql.run('job_progress', { ns, id, token, progress: value }) === 1) return 'applied' as const
    return isKnown(session, id) ? ('leaseLost' as const) : ('gone' as const)
  })
  return { verdicts }
}

export function reap(session: Session, { decisions, limit }: Request<'lease.reap'>): Reply<'lease.reap'> {
  const now = session.now()
  const verdicts = decisions.map((decision) => reapOne(session, decision, now))
  const rows = session.sql.all<ExpiredRow>('lease_expired', { ns: session.ns, now, limit })
  return { verdicts, expired: rows.map((row) => readExpired(row, now)) }
}

/** The lease may have been renewed or settled since it was seen as expired: then the decision is void. */
function reapOne(session: Session, decision: Settlement, now: number): Verdict {
  const { sql, ns } = session
  const { id, token } = decision
  const row = sql.get<FoundRow>('job_find', { ns, id })
  if (row === undefined) return 'gone'
  const isHeld = row.state === 'running' && row.token === token
  if (!isHeld || (row.lease_expires_at ?? 0) > now) return 'leaseLost'
  const verdict = settle(session, decision, now)
  if (sql.run('lease_forget', { ns, id, token }) === 0) sql.run('archive_forget', { ns, id, token })
  return verdict
}

interface ExpiredRow {
  readonly id: string
  readonly token: string | null
  readonly worker_id: string | null
  readonly attempts: number
  readonly max_attempts: number
  readonly crashes: number
  readonly max_crashes: number
  readonly cancel_requested: number
  readonly started_at: number | null
  readonly lease_expires_at: number
}

const readExpired = (row: ExpiredRow, now: number): ExpiredLease => ({
  id: row.id,
  token: row.token ?? '',
  workerId: row.worker_id ?? '',
  attempt: row.attempts,
  maxAttempts: row.max_attempts,
  crashes: row.crashes,
  maxCrashes: row.max_crashes,
  cancelRequested: row.cancel_requested === 1,
  startedAt: row.started_at ?? now,
  expiredForMs: now - row.lease_expires_at,
})
