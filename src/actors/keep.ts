/** Retention as a store is told of it. Pure; nothing is said of lanes where none has its own. */
import type { KeepCounts, KeepDead, StateCounts } from '../backends/protocol/index.ts'
import type { LaneRetention, Retention } from '../retention.ts'

export function keepDeadOf({ deadMs, lanes }: Retention): KeepDead {
  const own = [...lanes].filter(([, lane]) => lane.deadMs !== deadMs).map(([name, lane]) => [name, lane.deadMs])
  return own.length === 0 ? { keepDeadMs: deadMs } : { keepDeadMs: deadMs, keepDeadMsOf: Object.fromEntries(own) }
}

/** undefined: nothing is limited anywhere, so that a store need not look. */
export function keepCountsOf(retention: Retention): KeepCounts | undefined {
  const all = countsOf(retention)
  const lanes = [...retention.lanes].map(([name, lane]): [string, StateCounts] => [name, countsOf(lane)])
  if (![all, ...lanes.map(([, counts]) => counts)].some(isLimited)) return undefined
  return { all, lanes: Object.fromEntries(lanes) }
}

const countsOf = ({ completedCount, cancelledCount, deadCount }: LaneRetention): StateCounts => ({
  completed: completedCount,
  cancelled: cancelledCount,
  dlq: deadCount,
})

const isLimited = (counts: StateCounts): boolean => Object.values(counts).some((count) => count !== null)
