/** Where a Redis store is, as a URL or a caller's own client tells it, in the form that connections are made from. */
import type { RedisOptions } from 'ioredis'

export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** `single`: the server itself; `sentinel`: those who know the primary; `cluster`: some of the nodes. */
export type Topology = 'single' | 'sentinel' | 'cluster'

/** What the driver needs to know beside address and credentials: TLS, Sentinel's names, address translation. */
export type DriverOptions = Pick<
  RedisOptions,
  | 'tls'
  | 'path'
  | 'family'
  | 'keepAlive'
  | 'natMap'
  | 'name'
  | 'sentinelUsername'
  | 'sentinelPassword'
  | 'sentinelTLS'
  | 'enableTLSForSentinelMode'
>

export interface RedisLocation {
  readonly topology: Topology
  /** At least one. */
  readonly endpoints: readonly Endpoint[]
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  readonly driver: DriverOptions
  /** A file with the certificates to trust, read when the store is opened. */
  readonly caFile: string | undefined
  readonly waitReplicas: number
  readonly allowEviction: boolean
}

/** `host:port`, with brackets around an IPv6 address. */
export function addressOf({ host, port }: Endpoint): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Reads `host:port`, `[::1]:port` and Redis' own `::1:port`. */
export function endpointOf(address: string): Endpoint {
  const at = address.lastIndexOf(':')
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(address.slice(at + 1)) }
}
