/**
 * The thread of the SQLite store. It takes all messages that wait, runs them as one group, and answers; neither a slow
 * disk nor a locked file ever stops the main loop. The one file of `workers/` that may import `src/backends/sqlite`.
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { LeaseStandIn } from '../src/backends/lease-stand-in.ts'
import { storeError, toWire } from '../src/backends/sqlite/errors.ts'
import { type NumberedCall, StoreHost } from '../src/backends/sqlite/host.ts'
import type { FromThread, ThreadData, ToThread } from '../src/backends/sqlite/thread-messages.ts'
import { sharedMonotonic, systemClock, systemTimers } from '../src/clock.ts'
import { systemRandom } from '../src/random.ts'

/**
 * Messages in one transaction at most. Measured 2026-11-29 with 256 single enqueues in flight on a busy 2-core machine:
 * 1: 390/s, 8: 2.8 k/s, 64: 14 k/s, 256: 15-22 k/s.
 */
const GROUP_MAX = 256
/** How often the file is looked at for commits of others while somebody listens. */
const WATCH_MS = 25

const sleeper = new Int32Array(new SharedArrayBuffer(4))
const surroundings = {
  clock: systemClock,
  random: systemRandom,
  pause: (durationMs: number): void => {
    Atomics.wait(sleeper, 0, 0, durationMs)
  },
}

class StoreWorker {
  private readonly port: MessagePort
  private readonly host: StoreHost
  private readonly standIn: LeaseStandIn
  private watch: NodeJS.Timeout | undefined

  constructor(port: MessagePort, { store, boards, originMs }: ThreadData) {
    this.port = port
    this.host = new StoreHost(store, surroundings, (message: FromThread) => port.postMessage(message))
    this.standIn = new LeaseStandIn({
      clock: { monotonic: () => sharedMonotonic() - originMs },
      timers: systemTimers,
      renew: async (request) => this.host.renew(request),
    })
    for (const { id, terms, pages } of boards) this.standIn.add(id, terms, pages)
  }

  listen(): void {
    this.port.postMessage({ kind: 'opened' } satisfies FromThread)
    this.port.on('message', (first: ToThread) => this.runAll(this.drain(first)))
  }

  private drain(first: ToThread): readonly ToThread[] {
    const batch = [first]
    while (batch.length < GROUP_MAX) {
      const next: { readonly message: ToThread } | undefined = receiveMessageOnPort(this.port)
      if (next === undefined) break
      batch.push(next.message)
    }
    return batch
  }

  /** In order: what came before the end is done before it. After a gap the renewals that were missed come first. */
  private runAll(batch: readonly ToThread[]): void {
    this.standIn.first()
    let calls: NumberedCall[] = []
    for (const message of batch) {
      if (message.kind === 'call') {
        calls.push(message)
        continue
      }
      this.host.run(calls)
      calls = []
      if (message.kind === 'close') {
        this.close()
        return
      }
      this.obey(message)
    }
    this.host.run(calls)
  }

  private obey(message: Exclude<ToThread, { readonly kind: 'call' | 'close' }>): void {
    switch (message.kind) {
      case 'watch':
        this.setWatch(message.isWatching)
        return
      case 'board':
        this.standIn.add(message.id, message.terms, message.pages)
        return
      case 'page':
        this.standIn.addPage(message.id, message.memory)
        return
      case 'end':
        this.standIn.remove(message.id)
        return
      default:
        message satisfies never
    }
  }

  private setWatch(isWatching: boolean): void {
    clearInterval(this.watch)
    // From here on, not from the first tick: a commit in between would be taken for the start and not be told.
    if (isWatching) this.host.look()
    this.watch = isWatching ? setInterval(() => this.host.look(), WATCH_MS).unref() : undefined
  }

  private close(): void {
    clearInterval(this.watch)
    this.standIn.stop()
    this.host.close()
    this.port.close()
  }
}

const port = parentPort
if (port === null) throw new Error('this file runs as a worker thread only')
try {
  new StoreWorker(port, workerData as ThreadData).listen()
} catch (error) {
  const { path } = (workerData as ThreadData).store
  port.postMessage({ kind: 'openFailed', error: toWire(storeError(error, path, 'open')) } satisfies FromThread)
  port.close()
}
