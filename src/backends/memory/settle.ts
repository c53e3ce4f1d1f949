/** Applies one settlement to a row of the memory store, guarded by the whole lease token. */
import type { Note, Settlement, Verdict } from '../protocol/index.ts'
import { STATES_AFTER } from '../rules.ts'
import type { JobRow } from './row.ts'

/** What the holder of the lease says. Lines that came before are known by their numbers. */
export function takeNote({ run }: JobRow, { progress, lines, keepLines }: Note): void {
  if (progress !== null) run.progress = progress
  if (lines.length === 0) return
  const { leaseEpoch } = run
  const last = run.log?.at(-1)
  const known = last?.leaseEpoch === leaseEpoch ? last.number : 0
  const fresh = lines.filter(({ number }) => number > known).map((line) => ({ leaseEpoch, ...line }))
  run.log = keepLines === 0 ? null : [...(run.log ?? []), ...fresh].slice(-keepLines)
}

export function settle(row: JobRow, settlement: Settlement, now: number): Verdict {
  if (!row.isHeldBy(settlement.token)) {
    return row.run.token === settlement.token && STATES_AFTER[settlement.kind].includes(row.state)
      ? 'alreadyApplied'
      : 'leaseLost'
  }
  const { kind } = settlement
  if (settlement.note !== undefined) takeNote(row, settlement.note)
  // A reaper may have decided to requeue before the cancellation was asked for.
  if (row.run.cancelRequested && (kind === 'retry' || kind === 'release' || kind === 'requeue')) {
    const failure = kind === 'release' ? { code: 'CANCELLED', message: 'cancelled on request' } : settlement.failure
    end(row, { ...settlement, kind: 'cancel', failure }, now)
    return 'cancelled'
  }
  if (settlement.kind === 'release') release(row, settlement, now)
  else if (settlement.kind === 'retry') putBack(row, settlement, now)
  else if (settlement.kind === 'requeue') requeue(row, settlement, now)
  else end(row, settlement, now)
  return 'applied'
}

type Kind<K extends Settlement['kind']> = Extract<Settlement, { kind: K }>

function release(row: JobRow, settlement: Kind<'release'>, now: number): void {
  if (settlement.started) row.record('released', now, settlement.durationMs, null)
  row.move('release', now)
  row.run.attempts -= 1
}

function putBack(row: JobRow, settlement: Kind<'retry'>, now: number): void {
  row.record(settlement.failure.code === 'PANIC' ? 'crashed' : 'failed', now, settlement.durationMs, settlement.failure)
  row.move('retry', now)
  row.runAt = now + settlement.delayMs
  row.run.lastFailure = settlement.failure
  row.run.crashes = settlement.crashes
  row.run.retry = settlement.retry
  row.run.maxAttempts = settlement.maxAttempts
}

function requeue(row: JobRow, settlement: Kind<'requeue'>, now: number): void {
  row.record('crashed', now, null, settlement.failure)
  row.move('expire', now)
  row.run.lastFailure = settlement.failure
  row.run.crashes = settlement.crashes
}

function end(row: JobRow, settlement: Kind<'complete' | 'dead' | 'cancel'>, now: number): void {
  if (settlement.kind === 'complete') {
    row.move('complete', now)
    row.run.output = settlement.output
    row.run.durationMs = settlement.durationMs
    row.run.outputUntil =
      settlement.output === null || settlement.keepOutputMs === null ? null : now + settlement.keepOutputMs
  } else {
    const isDead = settlement.kind === 'dead'
    const { failure } = settlement
    const hasCrashed = failure.code === 'PANIC' || failure.code === 'LEASE_EXPIRED'
    row.record(isDead ? (hasCrashed ? 'crashed' : 'failed') : 'cancelled', now, settlement.durationMs, failure)
    row.move(isDead ? 'die' : 'cancel', now)
    row.run.lastFailure = failure
    if (isDead) {
      row.run.dlqCode = settlement.code
      row.run.crashes = settlement.crashes
    }
  }
  row.run.finishedAt = now
  row.run.keepUntil = settlement.keepMs === null ? null : now + settlement.keepMs
}

/** Ends a job that was not started before its deadline. */
export function bury(row: JobRow, now: number, keepMs: number | null): void {
  row.move('die', now)
  row.run.dlqCode = 'DEADLINE_EXCEEDED'
  row.run.lastFailure ??= { code: 'DEADLINE_EXCEEDED', message: 'the deadline passed before the job could start' }
  row.run.finishedAt = now
  row.run.keepUntil = keepMs === null ? null : now + keepMs
}
