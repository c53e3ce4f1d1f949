/**
 * Reads where a caller's own ioredis client connects to. Only its options are used: the store opens connections of its own
 * and neither uses nor closes the caller's.
 */
import type { RedisOptions } from 'ioredis'
import { invalidArgument } from '../../errors.ts'
import { type DriverOptions, type Endpoint, endpointOf, type RedisLocation } from './location.ts'

/** What is read of a client; told apart by shape, since it may come from another copy of ioredis. */
export interface RedisClient {
  readonly options: object
  duplicate(...override: readonly never[]): unknown
}

export function isRedisClient(value: unknown): value is RedisClient {
  if (typeof value !== 'object' || value === null || !('options' in value) || !('duplicate' in value)) return false
  return typeof value.options === 'object' && value.options !== null && typeof value.duplicate === 'function'
}

const DRIVER_OPTIONS = [
  'tls',
  'path',
  'family',
  'keepAlive',
  'natMap',
  'name',
  'sentinelUsername',
  'sentinelPassword',
  'sentinelTLS',
  'enableTLSForSentinelMode',
] as const satisfies readonly (keyof DriverOptions)[]

export function locationOfClient(client: RedisClient): RedisLocation {
  if ('startupNodes' in client && Array.isArray(client.startupNodes))
    return clusterLocation(client.startupNodes, client)
  const options: RedisOptions = client.options
  refusePrefix(options.keyPrefix)
  const sentinels = options.sentinels ?? []
  return {
    ...settingsOf(options),
    topology: sentinels.length > 0 ? 'sentinel' : 'single',
    endpoints:
      sentinels.length > 0
        ? sentinels.map(({ host = 'localhost', port = 26_379 }) => ({ host, port }))
        : [{ host: options.host ?? 'localhost', port: options.port ?? 6379 }],
    database: options.db ?? 0,
  }
}

function clusterLocation(nodes: readonly unknown[], client: RedisClient): RedisLocation {
  const options: { redisOptions?: RedisOptions; natMap?: RedisOptions['natMap']; keyPrefix?: string } = client.options
  refusePrefix(options.keyPrefix ?? options.redisOptions?.keyPrefix)
  const { driver, ...settings } = settingsOf(options.redisOptions ?? {})
  return {
    ...settings,
    topology: 'cluster',
    endpoints: nodes.map(startupNode),
    database: 0,
    driver: { ...driver, ...(options.natMap ? { natMap: options.natMap } : {}) },
  }
}

function settingsOf(options: RedisOptions): Omit<RedisLocation, 'topology' | 'endpoints' | 'database'> {
  const driver = Object.fromEntries(
    DRIVER_OPTIONS.map((name) => [name, options[name]]).filter(([, value]) => value !== undefined && value !== null),
  )
  return {
    username: options.username ?? undefined,
    password: options.password ?? undefined,
    driver,
    caFile: undefined,
    waitReplicas: 0,
    allowEviction: false,
  }
}

/** A node is given as a port, as `host:port` or a URL, or as an object. */
function startupNode(node: unknown): Endpoint {
  if (typeof node === 'number') return { host: '127.0.0.1', port: node }
  if (typeof node === 'string') {
    const address = node
      .replace(/^rediss?:\/\//, '')
      .replace(/^.*@/, '')
      .replace(/[/?].*$/, '')
    return /:\d+$/.test(address) ? endpointOf(address) : { host: address, port: 6379 }
  }
  const { host, port } = (node ?? {}) as { host?: unknown; port?: unknown }
  return { host: typeof host === 'string' ? host : '127.0.0.1', port: Number(port ?? 6379) }
}

function refusePrefix(prefix: string | undefined): void {
  if (prefix) throw invalidArgument('store', 'a client with keyPrefix is not taken; keys are divided by namespace')
}
