/**
 * The memory store behind the backend interface. Stores opened under one name share their jobs within the process;
 * an unnamed store is private to its client.
 */
import type { Backend, BackendOptions, CancelListener, HintListener, HintSubscription } from '../backend.ts'
import type { Capabilities } from '../capabilities.ts'
import { EndListeners, lanesEnded } from '../end-listeners.ts'
import { freedLanes } from '../freed.ts'
import { everyHint, keepsNoLeases, neverChanges } from '../local.ts'
import type { MessageType, Reply, Request } from '../protocol/index.ts'
import { MemoryStore } from './store.ts'

export const MEMORY_CAPABILITIES: Capabilities = Object.freeze({
  durableJobs: false,
  durability: 'none',
  sameHostProcesses: false,
  distributedWorkers: false,
  transactionalEnqueue: false,
  notifications: 'process',
  ordering: Object.freeze(['fifo'] as const),
  retention: 'process',
  leaseKeeper: 'main',
  schedules: false,
  continuations: false,
  partitions: false,
  streams: false,
  rateLimits: true,
})

interface Shared {
  readonly store: MemoryStore
  readonly listeners: Set<HintListener>
  readonly cancelListeners: Set<CancelListener>
  readonly ends: EndListeners
}

/** Named stores of this process, by name and namespace. They live as long as the process, as a database would. */
const named = new Map<string, Shared>()

function share(name: string, { namespace, clock }: BackendOptions): Shared {
  const fresh = (): Shared => ({
    store: new MemoryStore(clock),
    listeners: new Set(),
    cancelListeners: new Set(),
    ends: new EndListeners(),
  })
  if (name === '') return fresh()
  const key = `${name}\n${namespace}`
  const known = named.get(key) ?? fresh()
  named.set(key, known)
  return known
}

export class MemoryBackend implements Backend {
  readonly name = 'memory'
  readonly overlapsTurns = false
  readonly capabilities = MEMORY_CAPABILITIES
  readonly transactional = null
  readonly limits = { enqueueJobs: 10_000, turnSettlements: 10_000, claimJobs: 10_000 }
  readonly onChange = neverChanges
  readonly keepLeases = keepsNoLeases
  private readonly shared: Shared

  constructor(name: string, options: BackendOptions) {
    this.shared = share(name, options)
  }

  call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>> {
    try {
      const handler = this.shared.store.handlers[type] as (request: Request<T>) => Reply<T>
      const reply = handler(request)
      if (this.shared.ends.isAwaited) this.shared.ends.tell(lanesEnded(type, request))
      if (type === 'job.enqueue' || type === 'job.promote' || type === 'queue.policy') this.hint(null)
      else {
        for (const lane of freedLanes(type, request, reply)) if (this.shared.store.isLimited(lane)) this.hint(lane)
      }
      if (type === 'job.cancel') for (const listener of this.shared.cancelListeners) listener()
      return Promise.resolve(reply)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  private hint(lane: string | null): void {
    for (const listener of this.shared.listeners) listener(lane)
  }

  subscribe(_lanes: readonly string[], listener: HintListener, onCancel?: CancelListener): HintSubscription {
    const { listeners, cancelListeners } = this.shared
    listeners.add(listener)
    if (onCancel !== undefined) cancelListeners.add(onCancel)
    const subscription = everyHint(() => {
      listeners.delete(listener)
      if (onCancel !== undefined) cancelListeners.delete(onCancel)
    })
    return { ...subscription, hearsCancels: true }
  }

  awaitEnds(lane: string, listener: () => void): () => void {
    return this.shared.ends.add(lane, listener)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
