/**
 * The thread that renews leases of a Redis or PostgreSQL store while a main loop cannot: a host of `LeaseStandIn`, with a connection
 * of its own. It is told of boards and pages, and finds what is held in memory that it shares with the main loop.
 * What can go wrong is left to end the thread; the main thread starts another.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { LeaseStandIn } from '../src/backends/lease-stand-in.ts'
import type { FromKeeper, KeeperData, LeasePlace, ToKeeper } from '../src/backends/lease-thread-messages.ts'
import type { Renewer, RenewerOptions } from '../src/backends/renewer.ts'
import { sharedMonotonic, systemTimers } from '../src/clock.ts'
import { isHoldfastError } from '../src/errors.ts'
import { systemRandom } from '../src/random.ts'

async function openRenewer(place: LeasePlace, options: RenewerOptions): Promise<Renewer> {
  switch (place.kind) {
    case 'redis': {
      const { openRedisRenewer } = await import('../src/backends/redis/renewer.ts')
      return openRedisRenewer(place, options)
    }
    case 'postgres': {
      const { openPostgresRenewer } = await import('../src/backends/postgres/renewer.ts')
      return openPostgresRenewer(place, options)
    }
    default:
      return place satisfies never
  }
}

/** A store that is away is waited for, however long; one that refuses is not. */
async function reach(place: LeasePlace, options: RenewerOptions): Promise<Renewer> {
  for (;;) {
    try {
      return await openRenewer(place, options)
    } catch (error) {
      if (!isHoldfastError(error) || !error.retryable) throw error
    }
  }
}

function run(port: MessagePort, { place, originMs, boards }: KeeperData): void {
  const clock = { now: () => Date.now(), monotonic: () => sharedMonotonic() - originMs }
  const opening = reach(place, { clock, timers: systemTimers, random: systemRandom })
  let renewer: Renewer | null = null
  const standIn = new LeaseStandIn({
    clock,
    timers: systemTimers,
    renew: async (request) => (await opening).renew(request),
  })
  for (const { id, terms, pages } of boards) standIn.add(id, terms, pages)
  const tell = (message: FromKeeper): void => port.postMessage(message)
  const close = async (): Promise<void> => {
    standIn.stop()
    // Without a connection there is nothing to close, and nothing to wait for.
    await renewer?.close()
  }
  opening.then(
    (opened) => {
      renewer = opened
      tell({ kind: 'ready' })
    },
    (error: unknown) => {
      if (!isHoldfastError(error)) throw error
      tell({ kind: 'refused', message: error.message })
      process.exit()
    },
  )
  port.on('message', (message: ToKeeper) => {
    switch (message.kind) {
      case 'board':
        standIn.add(message.id, message.terms, message.pages)
        return
      case 'page':
        standIn.addPage(message.id, message.memory)
        return
      case 'end':
        standIn.remove(message.id)
        return
      case 'close':
        void close().finally(() => process.exit())
        return
      default:
        message satisfies never
    }
  })
}

if (parentPort === null) throw new Error('this file runs as a worker thread only')
run(parentPort, workerData as KeeperData)
