/** Accepts jobs of lanes that count what they accept, entry by entry in the order of the call, inside a transaction that has the count. */
import type { JobDefinition } from '../../job.ts'
import { nextTokenInMs, taken, tokensAt } from '../limits.ts'
import type { EnqueueResult } from '../protocol/index.ts'
import { atomically, change, type Plan, read } from './plan.ts'
import { bucketOf, type GateRow, gateRateOf } from './policy-row.ts'

export type Results = ReadonlyMap<JobDefinition, EnqueueResult>

export interface Stored {
  readonly created: Results
  readonly left: readonly JobDefinition[]
}

/** How jobs are written, and how those are answered that were there before. */
interface Ways {
  store(jobs: readonly JobDefinition[], isAdmitted: boolean): Plan<Stored>
  findKnown(jobs: readonly JobDefinition[]): Plan<Results>
  readonly isAnySent: boolean
}

export function admit(jobs: readonly JobDefinition[], ways: Ways): Plan<Results> {
  return atomically(function* () {
    const results = new Map<JobDefinition, EnqueueResult>()
    const lanes = [...new Set(jobs.map(({ lane }) => lane))].sort()
    const gates = yield* read<GateRow>(
      'gate_lock',
      lanes.map((lane) => ({ lane })),
    )
    for (const lane of lanes) {
      const ofLane = jobs.filter((job) => job.lane === lane)
      const gate = gates.find((row) => row.lane === lane)
      for (const [job, result] of yield* admitTo(gate, ofLane, ways)) results.set(job, result)
    }
    return results
  })
}

/** What has the key of an earlier one is known by then, and not counted. */
function* admitTo(
  gate: GateRow | undefined,
  jobs: readonly JobDefinition[],
  { store, findKnown, isAnySent }: Ways,
): Plan<Results> {
  const results = new Map<JobDefinition, EnqueueResult>()
  if (gate === undefined) {
    // Nothing counts here, so a job of the very id was in the way: this enqueue, sent before, which has run and gone since.
    const gone = isAnySent ? jobs.filter(({ idempotencyKey }) => idempotencyKey === null) : []
    return new Map(gone.map((job) => [job, { outcome: 'created', id: job.id, state: 'queued' }]))
  }
  const keys = new Set<string>()
  const first = jobs.filter(({ idempotencyKey }) => {
    if (idempotencyKey === null) return true
    const isFirst = !keys.has(idempotencyKey)
    keys.add(idempotencyKey)
    return isFirst
  })
  let bucket = bucketOf(gate)
  const tokens = bucket === null ? first.length : tokensAt(gateRateOf(gate), bucket, gate.now)
  const { created } = yield* store(first.slice(0, tokens), true)
  for (const [job, result] of created) results.set(job, result)
  const rest = jobs.filter((job) => !results.has(job))
  for (const [job, result] of yield* findKnown(rest)) results.set(job, result)
  if (bucket === null) return results
  const rate = gateRateOf(gate)
  if (created.size > 0) {
    bucket = taken(rate, bucket, gate.now, created.size)
    yield* change('gate_set', [{ ...gate, rate_debt: bucket.debt, rate_at: bucket.at }])
  }
  const refused = jobs.filter((job) => !results.has(job))
  if (refused.length === 0) return results
  yield* change('throttle_add', [{ lane: gate.lane, reason: 'ENQUEUE_RATE_EXCEEDED', count: refused.length }])
  const retryAfterMs = Math.max(1, nextTokenInMs(rate, bucket, gate.now))
  for (const job of refused) results.set(job, { outcome: 'refused', id: job.id, retryAfterMs })
  return results
}
