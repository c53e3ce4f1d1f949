/** Whether the settings of a server let it keep jobs: refuses those that lose them without a word, warns of those that may. */
import { unsupported } from './errors.ts'
import type { RedisLocation } from './location.ts'
import type { ServerReport } from './server-facts.ts'

export type Warn = (fields: Readonly<Record<string, unknown>>, message: string) => void

export function checkSettings(reports: readonly ServerReport[], location: RedisLocation, warn: Warn): void {
  const server = location.endpoints.map(({ host, port }) => `${host}:${port}`).join(', ')
  checkTopology(reports, location, server)
  checkEviction(reports, location, server, warn)
  if (reports.some(({ facts }) => !facts.isAofEnabled)) {
    const message = `Redis at ${server} does not log its writes: a restart loses jobs; set 'appendonly yes' and 'appendfsync always' (or 'everysec')`
    warn({ code: 'NO_PERSISTENCE', server }, message)
  }
}

/** A Cluster is opened as one, and nothing else is. */
export function checkTopology(reports: readonly ServerReport[], { topology }: RedisLocation, server: string): void {
  const isCluster = reports.some(({ facts }) => facts.isCluster)
  if (isCluster === (topology === 'cluster')) return
  const message = isCluster
    ? `Redis at ${server} is a node of a Cluster; use a redis+cluster:// URL`
    : `Redis at ${server} is no Cluster; use a redis:// URL`
  throw unsupported('TOPOLOGY', message, server)
}

/** Holdfast sets no expiry, so `volatile-*` evicts none of its keys, only those of others; `allkeys-*` evicts jobs. */
function checkEviction(reports: readonly ServerReport[], location: RedisLocation, server: string, warn: Warn): void {
  const evicting = reports.find(({ facts, maxmemory }) => maxmemory > 0 && facts.maxmemoryPolicy !== 'noeviction')
  if (evicting === undefined) return
  const policy = evicting.facts.maxmemoryPolicy
  const message = `Redis at ${server} evicts keys when it is full (maxmemory-policy ${policy}); set 'maxmemory-policy noeviction'`
  if (policy.startsWith('allkeys-') && !location.allowEviction) {
    throw unsupported('EVICTION_POLICY', `${message}, or open it with allowEviction=true and lose jobs`, server)
  }
  warn({ code: 'EVICTION_POLICY', server, policy }, message)
}
