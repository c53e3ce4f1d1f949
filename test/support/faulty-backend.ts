/** Backends that misbehave as networks do, and one that only tells what it answers. */
import type { Backend } from '#dist/src/backends/backend.js'
import { everyHint } from '#dist/src/backends/local.js'
import type { MessageType } from '#dist/src/backends/protocol/index.js'
import { HoldfastError } from '#dist/src/errors.js'

/** The same store, with some members replaced. */
export function over(backend: Backend, changes: Partial<Backend>): Backend {
  return {
    name: backend.name,
    capabilities: backend.capabilities,
    limits: backend.limits,
    transactional: backend.transactional,
    overlapsTurns: backend.overlapsTurns,
    call: (type, request) => backend.call(type, request),
    subscribe: (...subscription) => backend.subscribe(...subscription),
    awaitEnds: (lane, listener) => backend.awaitEnds(lane, listener),
    onChange: (listener) => backend.onChange(listener),
    keepLeases: (terms) => backend.keepLeases(terms),
    close: () => backend.close(),
    ...changes,
  }
}

export const withoutHints = (backend: Backend): Backend =>
  over(backend, { subscribe: () => everyHint(() => {}), awaitEnds: () => () => {} })

/** Does what is asked, and loses the reply when `isLost` says so. */
export function losingReplies(backend: Backend, isLost: (type: MessageType) => boolean): Backend {
  return over(backend, {
    call: async (type, request) => {
      const reply = await backend.call(type, request)
      if (!isLost(type)) return reply
      throw new HoldfastError('STORE_TIMEOUT', 'the reply was lost', { details: { outcome: 'unknown' } })
    },
  })
}

/** Calls `onEmpty` whenever a claim was answered with nothing. */
export function tellingEmptyClaims(backend: Backend, onEmpty: () => void): Backend {
  return over(backend, {
    call: async (type, request) => {
      const reply = await backend.call(type, request)
      if ('grants' in reply && reply.grants.some(({ jobs }) => jobs.length === 0)) setImmediate(onEmpty)
      return reply
    },
  })
}

/** `isIdle`: the only worker of the store has no turn under way and waits to be woken. */
export function watchingIdleness(backend: Backend): { readonly backend: Backend; readonly isIdle: () => boolean } {
  let turns = 0
  let isWanted = false
  const watched = over(backend, {
    call: async (type, request) => {
      const count = type === 'job.turn' ? 1 : 0
      turns += count
      try {
        return await backend.call(type, request)
      } finally {
        turns -= count
      }
    },
    subscribe: (lanes, listener) => {
      const subscription = backend.subscribe(lanes, listener)
      return {
        want: (isNow) => {
          isWanted = isNow
          subscription.want(isNow)
        },
        get isReliable() {
          return subscription.isReliable
        },
        stop: () => subscription.stop(),
      }
    },
  })
  return { backend: watched, isIdle: () => isWanted && turns === 0 }
}
