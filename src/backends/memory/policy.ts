/** Policies of the lanes of the memory store, as they are set and read. */
import { changed, isLimited, NO_LIMITS } from '../limits.ts'
import type { LanePolicy, LaneUsage, PolicyChange } from '../protocol/index.ts'
import type { Lane } from './lane.ts'
import { Limiter } from './limiter.ts'
import type { JobRow } from './row.ts'

/** What is not named stays as it is. */
export function changePolicy(lane: Lane, { paused, ...limits }: PolicyChange): void {
  if (paused !== undefined) lane.isPaused = paused
  lane.limit(changed(lane.limiter?.limits ?? NO_LIMITS, limits))
}

/** None for a lane that has no policy. */
export function policyOf({ name, isPaused, limiter }: Lane): LanePolicy[] {
  const limits = limiter?.limits ?? NO_LIMITS
  return isPaused || isLimited(limits) ? [{ lane: name, paused: isPaused, ...limits }] : []
}

export function usageOf(
  name: string,
  lane: Lane | undefined,
  content: { running: readonly JobRow[]; now: number },
): LaneUsage {
  const running = content.running.filter(({ definition }) => definition.lane === name)
  return (lane?.limiter ?? new Limiter(NO_LIMITS)).usage(name, running, content.now)
}
