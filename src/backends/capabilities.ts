/**
 * What a store can do, as frozen data that an application can check at start-up.
 * Every false flag has a call that refuses with UNSUPPORTED; `docs/backends.md` prints the same table (a test compares them).
 */
import { HoldfastError, invalidArgument } from '../errors.ts'

export interface Capabilities {
  /** Accepted jobs survive the end of the process. */
  readonly durableJobs: boolean
  /**
   * What an acknowledged write survives. `none`: nothing is kept for sure. `process`: the end of the process. `everysec`: all but a
   * crash of the server within the next second or two. `always`: was flushed to the server's disk first. `replicated`: the loss of the
   * server, once its replicas have it. `power`: a power cut.
   */
  readonly durability: 'none' | 'process' | 'everysec' | 'always' | 'replicated' | 'power'
  /** Several processes on one machine may share the store. */
  readonly sameHostProcesses: boolean
  /** Several machines may share the store. */
  readonly distributedWorkers: boolean
  /** Jobs can be enqueued inside the caller's own transaction. */
  readonly transactionalEnqueue: boolean
  /** Who hears of a new job at once; everybody else polls. */
  readonly notifications: 'process' | 'sameHost' | 'network'
  /** Orders in which a worker can ask for jobs. */
  readonly ordering: readonly 'fifo'[]
  /** Where retention is applied. */
  readonly retention: 'process' | 'stored'
  /** Who renews leases while the main loop is blocked: a `thread`, or nobody, because only the `main` loop can. */
  readonly leaseKeeper: 'thread' | 'main'
  readonly schedules: boolean
  readonly continuations: boolean
  readonly partitions: boolean
  readonly streams: boolean
  readonly rateLimits: boolean
}

export type CapabilityName = keyof Capabilities

/** Throws CAPABILITY_MISSING naming every requirement that is not met. */
export function requireCapabilities(have: Capabilities, want: Partial<Capabilities>): void {
  if (typeof want !== 'object' || want === null) throw invalidArgument('wanted', 'expected an object')
  for (const name of Object.keys(want)) {
    if (!Object.hasOwn(have, name)) {
      const known = Object.keys(have).sort().join(', ')
      throw new HoldfastError('CAPABILITY_MISSING', `${name}: no such capability; known are ${known}`, {
        details: { missing: [name] },
      })
    }
  }
  const missing = Object.entries(want).filter(([name, value]) => {
    const actual: unknown = Object.hasOwn(have, name) ? have[name as CapabilityName] : undefined
    return Array.isArray(value) && Array.isArray(actual)
      ? !value.every((item) => actual.includes(item))
      : actual !== value
  })
  if (missing.length === 0) return
  const names = missing.map(([name]) => name)
  throw new HoldfastError(
    'CAPABILITY_MISSING',
    `this store does not offer ${missing.map(([name, value]) => `${name}: ${String(value)}`).join(', ')}`,
    {
      details: { missing: names },
    },
  )
}
