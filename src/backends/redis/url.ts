/**
 * Reads the URLs of the Redis store: `redis://`, `redis+sentinel://`, `redis+cluster://`, each with `rediss` for TLS.
 * Throws INVALID_URL; the URL itself is never repeated in the message, since it may hold a password.
 */
import { decodeUrlPart, refuseUrl, splitUrl } from '../url-part.ts'
import type { Endpoint, RedisLocation, Topology } from './location.ts'

const SERVER_PORT = 6379
const SENTINEL_PORT = 26_379
const DATABASES_MAX = 65_536
const REPLICAS_MAX = 100

const SCHEMES: Readonly<Record<string, { readonly topology: Topology; readonly isTls: boolean }>> = {
  redis: { topology: 'single', isTls: false },
  rediss: { topology: 'single', isTls: true },
  'redis+sentinel': { topology: 'sentinel', isTls: false },
  'rediss+sentinel': { topology: 'sentinel', isTls: true },
  'redis+cluster': { topology: 'cluster', isTls: false },
  'rediss+cluster': { topology: 'cluster', isTls: true },
}

export function isRedisUrl(url: unknown): boolean {
  return typeof url === 'string' && Object.hasOwn(SCHEMES, schemeOf(url))
}

function schemeOf(url: string): string {
  return (/^([a-z+]+):\/\//i.exec(url)?.[1] ?? '').toLowerCase()
}

export function parseRedisUrl(url: string): RedisLocation {
  const scheme = SCHEMES[schemeOf(url)]
  if (scheme === undefined) throw refuseUrl(`expected one of ${Object.keys(SCHEMES).join('://, ')}://`)
  const { topology, isTls } = scheme
  const { userinfo, hosts, path, query } = splitUrl(url.slice(url.indexOf('://') + 3))
  const { name, database } = readPath(topology, path)
  const parameters = readQuery(query, isTls)
  if (topology === 'single' && hosts.includes(','))
    throw refuseUrl('several hosts need redis+cluster:// or redis+sentinel://')
  return {
    topology,
    endpoints: hosts.split(',').map((host) => readHost(host, topology === 'sentinel' ? SENTINEL_PORT : SERVER_PORT)),
    ...readUserinfo(userinfo),
    database,
    driver: {
      ...(isTls ? { tls: {} } : {}),
      ...(isTls && topology === 'sentinel' ? { sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
      ...(name === undefined ? {} : { name }),
    },
    ...parameters,
  }
}

function readUserinfo(userinfo: string | undefined): Pick<RedisLocation, 'username' | 'password'> {
  if (userinfo === undefined) return { username: undefined, password: undefined }
  const colon = userinfo.indexOf(':')
  const user = decodeUrlPart(colon === -1 ? userinfo : userinfo.slice(0, colon), 'the user')
  const password = colon === -1 ? '' : decodeUrlPart(userinfo.slice(colon + 1), 'the password')
  if (password === '') throw refuseUrl('a user needs a password: user:password@, or :password@ for the default user')
  return { username: user === '' ? undefined : user, password }
}

function readHost(text: string, defaultPort: number): Endpoint {
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:[\]\s]*))(?::(\d+))?$/.exec(text)
  const host = match?.[1] ?? match?.[2] ?? ''
  if (match === null || host === '') throw refuseUrl('expected host, host:port or [IPv6]:port, separated by commas')
  const port = match[3] === undefined ? defaultPort : Number(match[3])
  if (port < 1 || port > 65_535) throw refuseUrl('a port must be from 1 to 65535')
  return { host, port }
}

function readPath(topology: Topology, path: string): { readonly name: string | undefined; readonly database: number } {
  if (topology !== 'sentinel') return { name: undefined, database: readDatabase(path, topology) }
  const [name = '', database = '', ...more] = path.split('/')
  if (name === '' || more.length > 0) throw refuseUrl('a Sentinel URL ends in /MASTERNAME or /MASTERNAME/DATABASE')
  return { name: decodeUrlPart(name, 'the name of the primary'), database: readDatabase(database, topology) }
}

function readDatabase(text: string, topology: Topology): number {
  if (text === '') return 0
  const database = /^\d{1,5}$/.test(text) ? Number(text) : DATABASES_MAX
  if (database >= DATABASES_MAX) throw refuseUrl('the database must be a number such as /0')
  if (topology === 'cluster' && database !== 0) throw refuseUrl('a Cluster has database 0 only')
  return database
}

function readQuery(query: string, isTls: boolean): Pick<RedisLocation, 'caFile' | 'waitReplicas' | 'allowEviction'> {
  const parameters = new URLSearchParams(query)
  const known = ['waitReplicas', 'allowEviction', ...(isTls ? ['ca'] : [])]
  for (const name of parameters.keys()) {
    if (!known.includes(name)) throw refuseUrl(`unknown parameter '${name}'; known are ${known.join(', ')}`)
    if (parameters.getAll(name).length > 1) throw refuseUrl(`parameter '${name}' is given twice`)
  }
  const replicas = parameters.get('waitReplicas') ?? '0'
  if (!/^\d{1,3}$/.test(replicas) || Number(replicas) > REPLICAS_MAX) throw refuseUrl('waitReplicas must be 0 to 100')
  const eviction = parameters.get('allowEviction') ?? 'false'
  if (eviction !== 'true' && eviction !== 'false') throw refuseUrl('allowEviction must be true or false')
  const caFile = parameters.get('ca') ?? undefined
  if (caFile === '') throw refuseUrl('ca must be the path of a file')
  return { caFile, waitReplicas: Number(replicas), allowEviction: eviction === 'true' }
}
