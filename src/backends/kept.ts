/** What a store is told of retention, resolved for one of its lanes. Pure. */
import type { KeepCounts, KeepDead, StateCounts } from './protocol/index.ts'

/** How long a dead letter of the lane is kept. */
export function keepDeadIn({ keepDeadMs, keepDeadMsOf }: KeepDead, lane: string): number | null {
  if (keepDeadMsOf === undefined || !Object.hasOwn(keepDeadMsOf, lane)) return keepDeadMs
  return keepDeadMsOf[lane] ?? null
}

/** The most of each state that the lane keeps; null: nothing is limited. */
export function countsIn(counts: KeepCounts | undefined, lane: string): StateCounts | null {
  if (counts === undefined) return null
  return Object.hasOwn(counts.lanes, lane) ? (counts.lanes[lane] ?? null) : counts.all
}

/** The lane that an id begins with. */
export const laneOf = (id: string): string => id.slice(0, id.indexOf('/'))
