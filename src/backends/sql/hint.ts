/** Which lanes may have become ready by a message, so that whoever waits can be told; null stands for some lane. */
import type { MessageType, Reply, Request } from '../protocol/index.ts'

const ANY: readonly null[] = [null]

export function hintsOf<T extends MessageType>(
  type: T,
  request: Request<T>,
  reply: Reply<T>,
): readonly (string | null)[] {
  if ('jobs' in request) return enqueuedLanes(request, reply as Reply<'job.enqueue'>)
  if (type === 'job.promote') return ANY
  if ('promoted' in reply && reply.promoted > 0) return ANY
  if ('changes' in request) return request.changes.filter(({ paused }) => paused !== true).map(({ lane }) => lane)
  return []
}

function enqueuedLanes({ jobs }: Request<'job.enqueue'>, { results }: Reply<'job.enqueue'>): readonly string[] {
  const lanes = new Set<string>()
  results.forEach((result, index) => {
    const lane = jobs[index]?.lane
    if (result.outcome === 'created' && result.state === 'queued' && lane !== undefined) lanes.add(lane)
  })
  return [...lanes]
}
