/**
 * The memory store behind the backend interface. Stores opened under one name share their jobs within the process;
 * an unnamed store is private to its client.
 */
import type { Backend, BackendOptions, HintListener, HintSubscription } from '../backend.ts'
import type { Capabilities } from '../capabilities.ts'
import { freedLanes } from '../freed.ts'
import { everyHint, neverChanges } from '../local.ts'
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
  schedules: false,
  continuations: false,
  partitions: false,
  streams: false,
  rateLimits: true,
})

interface Shared {
  readonly store: MemoryStore
  readonly listeners: Set<HintListener>
}

/** Named stores of this process, by name and namespace. They live as long as the process, as a database would. */
const named = new Map<string, Shared>()

function share(name: string, { namespace, clock }: BackendOptions): Shared {
  const fresh = (): Shared => ({ store: new MemoryStore(clock), listeners: new Set() })
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
  private readonly shared: Shared

  constructor(name: string, options: BackendOptions) {
    this.shared = share(name, options)
  }

  call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>> {
    try {
      const handler = this.shared.store.handlers[type] as (request: Request<T>) => Reply<T>
      const reply = handler(request)
      if (type === 'job.enqueue' || type === 'job.promote' || type === 'queue.policy') this.hint(null)
      else {
        for (const lane of freedLanes(type, request, reply)) if (this.shared.store.isLimited(lane)) this.hint(lane)
      }
      return Promise.resolve(reply)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  private hint(lane: string | null): void {
    for (const listener of this.shared.listeners) listener(lane)
  }

  subscribe(_lanes: readonly string[], listener: HintListener): HintSubscription {
    this.shared.listeners.add(listener)
    return everyHint(() => this.shared.listeners.delete(listener))
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
