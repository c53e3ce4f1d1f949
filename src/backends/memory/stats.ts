/** Counts the jobs of the memory store by lane and state. Looks at every row: this store is for tests and small work. */
import { JOB_STATES, type JobState } from '../../job.ts'
import type { LaneStats } from '../protocol/index.ts'
import type { Lane } from './lane.ts'
import type { JobRow } from './row.ts'

interface Content {
  readonly jobs: Iterable<JobRow>
  readonly now: number
}

/** `wanted` null: all lanes. */
export function statsOf(
  wanted: readonly string[] | null,
  lanes: ReadonlyMap<string, Lane>,
  content: Content,
): LaneStats[] {
  const counts = new Map<string, Record<JobState, number>>()
  for (const name of wanted ?? lanes.keys()) counts.set(name, noJobs())
  const oldestAt = new Map<string, number>()
  for (const { definition, state, runAt } of content.jobs) {
    const lane = counts.get(definition.lane)
    if (lane === undefined) continue
    lane[state] += 1
    if (state === 'queued') oldestAt.set(definition.lane, Math.min(oldestAt.get(definition.lane) ?? runAt, runAt))
  }
  const stats = [...counts].map(([name, states]): LaneStats => {
    const oldest = oldestAt.get(name)
    return {
      lane: name,
      paused: lanes.get(name)?.isPaused ?? false,
      counts: states,
      oldestReadyMs: oldest === undefined ? null : content.now - oldest,
    }
  })
  return stats.sort((a, b) => (a.lane < b.lane ? -1 : 1))
}

function noJobs(): Record<JobState, number> {
  return Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>
}
