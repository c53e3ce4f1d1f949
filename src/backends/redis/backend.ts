/**
 * The Redis store behind the backend interface: opens the connections, checks the keyspace, routes messages, and wakes idle workers.
 * Nothing here needs a restart after an outage: connections come back by themselves, and every call says what became of it.
 */
import { systemTimers, withDeadline } from '../../clock.ts'
import { HoldfastError } from '../../errors.ts'
import type { Backend, BackendOptions, HintListener, HintSubscription, LeaseKeeping } from '../backend.ts'
import type { Capabilities } from '../capabilities.ts'
import type { LeaseTerms } from '../lease-policy.ts'
import { type LeaseThread, openLeaseThread } from '../lease-thread.ts'
import type { MessageType, Reply, Request } from '../protocol/index.ts'
import { openServers } from './connect.ts'
import { Ends } from './ends.ts'
import { openKeyspace } from './keyspace.ts'
import type { RedisLocation } from './location.ts'
import type { RedisServers, ServerFacts } from './servers.ts'
import { BATCH, RedisSession } from './session.ts'
import { RedisStore } from './store.ts'
import { Wake } from './wake.ts'

/** What every Redis offers; how durable it is depends on the server. */
export const REDIS_CAPABILITIES: Capabilities = Object.freeze({
  durableJobs: true,
  durability: 'everysec',
  sameHostProcesses: true,
  distributedWorkers: true,
  transactionalEnqueue: false,
  notifications: 'network',
  ordering: Object.freeze(['fifo'] as const),
  retention: 'stored',
  leaseKeeper: 'thread',
  schedules: false,
  continuations: false,
  partitions: false,
  streams: false,
  rateLimits: true,
})

/** What this server promises: jobs outlive it only if it writes them down, and evicts none. */
function capabilitiesOf({ isAofEnabled, appendFsync, maxmemoryPolicy, waitReplicas }: ServerFacts): Capabilities {
  const isKept = isAofEnabled && (maxmemoryPolicy === 'noeviction' || maxmemoryPolicy.startsWith('volatile-'))
  const onDisk = appendFsync === 'always' ? 'always' : appendFsync === 'no' ? 'none' : 'everysec'
  const durability = !isKept ? 'none' : waitReplicas > 0 ? 'replicated' : onDisk
  return Object.freeze({ ...REDIS_CAPABILITIES, durableJobs: durability !== 'none', durability })
}

export interface RedisBackendOptions extends BackendOptions {
  readonly location: RedisLocation
}

function notMigrated(namespace: string): HoldfastError {
  const message = `another process is bringing namespace '${namespace}' to this release's keyspace; try again`
  return new HoldfastError('STORE_UNAVAILABLE', message, { details: { outcome: 'notDone' } })
}

interface Parts {
  readonly servers: RedisServers
  readonly store: RedisStore
  readonly wake: Wake
  readonly ends: Ends
  readonly leases: LeaseThread | null
}

export class RedisBackend implements Backend {
  readonly name = 'redis'
  readonly overlapsTurns = true
  readonly capabilities: Capabilities
  readonly transactional = null
  readonly limits = {
    enqueueJobs: BATCH.enqueueJobs * 4,
    turnSettlements: BATCH.settlements,
    claimJobs: BATCH.claimJobs,
  }
  private readonly parts: Parts
  private isClosed = false

  private constructor(parts: Parts) {
    this.parts = parts
    this.capabilities = Object.freeze({
      ...capabilitiesOf(parts.servers.facts()),
      leaseKeeper: parts.leases === null ? 'main' : 'thread',
    })
    parts.servers.onChange(() => {
      parts.store.registry.forget()
      return Promise.resolve()
    })
  }

  /** Rejects with STORE_UNAVAILABLE, STORE_DENIED, UNSUPPORTED or STORE_SCHEMA_TOO_NEW, naming the server, never its password. */
  static async open(options: RedisBackendOptions): Promise<RedisBackend> {
    const { location, namespace, clock, random } = options
    const timers = systemTimers
    const servers = await openServers(location, { ...options, timers })
    try {
      const opening = openKeyspace(servers, { namespace, timers, random })
      await withDeadline(opening, options.openDeadlineMs, timers, () => notMigrated(namespace))
    } catch (error) {
      await servers.close()
      throw error
    }
    const session = new RedisSession(servers, namespace)
    const wake = new Wake({ session, clock, timers, random })
    const ends = new Ends({ session, clock, timers })
    const store = new RedisStore(session, { clock, lanes: wake, onEnded: (lane) => ends.ended(lane) })
    const leases = openLeaseThread({ kind: 'redis', location, namespace }, { ...options, timers })
    return new RedisBackend({ servers, store, wake, ends, leases })
  }

  call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>> {
    if (this.isClosed)
      return Promise.reject(new HoldfastError('CLOSED', 'the store was closed', { details: { outcome: 'refused' } }))
    const handler = this.parts.store.handlers[type] as (request: Request<T>) => Promise<Reply<T>>
    return handler(request)
  }

  subscribe(lanes: readonly string[], listener: HintListener): HintSubscription {
    return this.parts.wake.subscribe(lanes, listener)
  }

  awaitEnds(lane: string, listener: () => void): () => void {
    return this.parts.ends.add(lane, listener)
  }

  onChange(listener: () => Promise<void>): () => void {
    return this.parts.servers.onChange(listener)
  }

  keepLeases(terms: LeaseTerms): LeaseKeeping | null {
    return this.parts.leases?.keep(terms) ?? null
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.parts.wake.close()
    this.parts.ends.close()
    await Promise.all([this.parts.leases?.close(), this.parts.servers.close()])
  }
}
