/** What an earlier sending of a claim was given: its answer was lost, its leases are not. */
import type { Claim, ClaimedJob } from '../protocol/index.ts'
import { type Plan, read } from './plan.ts'
import { readClaimed, type TimedRow } from './row.ts'

/** In the order in which they were granted. */
export function* heldBy({ workerId, nonce }: Claim): Plan<ClaimedJob[]> {
  const mark = `:${workerId}:${nonce}.`
  const jobs: ClaimedJob[] = []
  for (const row of yield* read<TimedRow>('lease_held', [{ worker_id: workerId }])) {
    const token = row[17]
    if (token?.includes(mark)) jobs.push(readClaimed(row, { token, attempt: row[5], now: row[18] }))
  }
  return jobs.sort((a, b) => ordinalOf(a.token) - ordinalOf(b.token))
}

const ordinalOf = (token: string): number => Number(token.slice(token.lastIndexOf('.') + 1))
