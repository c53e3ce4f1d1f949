/** Renews leases of a Redis store on connections of its own: what the lease keeper's thread needs of the store. */
import { RENEWER_OPEN_MS, type Renewer, type RenewerOptions } from '../renewer.ts'
import { openServers } from './connect.ts'
import { renew } from './lease.ts'
import type { RedisLocation } from './location.ts'
import { RedisSession } from './session.ts'

/** Plain data. */
export interface RedisPlace {
  readonly kind: 'redis'
  readonly location: RedisLocation
  readonly namespace: string
}

export async function openRedisRenewer({ location, namespace }: RedisPlace, options: RenewerOptions): Promise<Renewer> {
  // What the server's settings promise, the main thread has said.
  const warn = (): void => {}
  const opening = { ...options, namespace, warn, openDeadlineMs: RENEWER_OPEN_MS, purpose: 'leases' }
  const servers = await openServers(location, opening)
  const session = new RedisSession(servers, namespace)
  return { renew: (request) => renew(session, request), close: () => servers.close() }
}
