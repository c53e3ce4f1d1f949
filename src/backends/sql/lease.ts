/** Leases after the grant: renewed, and reaped once they ran out. */
import type { ExpiredLease, Reply, Request } from '../protocol/index.ts'
import { knownIds, leaseName } from './note.ts'
import { change, missed, type Plan, read, write } from './plan.ts'
import { settle } from './settle.ts'

export function* renew({ leases, leaseMs }: Request<'lease.renew'>): Plan<Reply<'lease.renew'>> {
  const rows = yield* read<{ id: string; token: string; cancel_requested: number }>(
    'lease_renew',
    leases.map(({ id, token }) => ({ id, token, lease_ms: leaseMs })),
  )
  // Two jobs may have been granted under the same token.
  const renewed = new Map(rows.map((row) => [leaseName(row), row]))
  const known = yield* knownIds(leases.filter((lease) => !renewed.has(leaseName(lease))).map(({ id }) => id))
  const outcomes = leases.map((lease) => {
    const row = renewed.get(leaseName(lease))
    if (row !== undefined) return row.cancel_requested === 1 ? 'cancelRequested' : 'renewed'
    return known.has(lease.id) ? 'leaseLost' : 'gone'
  })
  return { outcomes }
}

/** A lease that was renewed or settled since it was seen as expired is left alone; after a reaped one its token proves nothing. */
export function* reap({ decisions, limit }: Request<'lease.reap'>): Plan<Reply<'lease.reap'>> {
  const verdicts = yield* settle(decisions, true)
  const tokens = decisions
    .filter((_, index) => verdicts[index] === 'applied' || verdicts[index] === 'cancelled')
    .map(({ id, token }) => ({ id, token }))
  const forgotten = yield* write('lease_forget', tokens)
  yield* change('archive_forget', missed(tokens, forgotten))
  const rows = yield* read<ExpiredRow>('lease_expired', [{ limit }])
  // Whoever reaps has no token of its own to repeat with: what is not held any more is lost, in whatever state it is.
  return {
    verdicts: verdicts.map((verdict) => (verdict === 'alreadyApplied' ? 'leaseLost' : verdict)),
    expired: rows.map(readExpired),
  }
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
  readonly now: number
}

const readExpired = (row: ExpiredRow): ExpiredLease => ({
  id: row.id,
  token: row.token ?? '',
  workerId: row.worker_id ?? '',
  attempt: row.attempts,
  maxAttempts: row.max_attempts,
  crashes: row.crashes,
  maxCrashes: row.max_crashes,
  cancelRequested: row.cancel_requested === 1,
  startedAt: row.started_at ?? row.now,
  expiredForMs: row.now - row.lease_expires_at,
})
