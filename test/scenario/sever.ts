/** How a scenario severs a connection at one of the requests to come: its reply is lost with it, or the request itself is. */
import type { FaultProxy } from '../support/proxy.ts'

export interface Place {
  /** Which of the requests that count, from 1. */
  readonly nth: number
  readonly counts: (request: Buffer) => boolean
}

export function severAt(
  proxy: FaultProxy,
  { nth, counts }: Place,
  lost: 'request' | 'reply',
  isAnswered: (reply: Buffer) => boolean = () => true,
): void {
  let seen = 0
  const isPlace = (request: Buffer): boolean => {
    if (!counts(request)) return false
    seen += 1
    return seen === nth
  }
  if (lost === 'reply') {
    proxy.set({ mode: 'cutReply', when: isPlace, until: isAnswered, times: 1 })
    return
  }
  const when = (request: Buffer): boolean => {
    const isHit = isPlace(request)
    if (isHit) setImmediate(() => proxy.reset())
    return isHit
  }
  proxy.set({ mode: 'dropRequests', when, times: 1 })
}
