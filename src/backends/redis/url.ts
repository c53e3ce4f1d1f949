/**
 * Reads the URLs of the Redis store: `redis://`, `redis+sentinel://`, `redis+cluster://`, each with `rediss` for TLS.
 * Throws INVALID_URL; the URL itself is never repeated in the message, since it may hold a password.
 */
import { HoldfastError } from '../../errors.ts'
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

function refuse(problem: string): HoldfastError {
  return new HoldfastError('INVALID_URL', `url: ${problem}`, { details: { field: 'url' } })
}

export function isRedisUrl(url: unknown): boolean {
  return typeof url === 'string' && Object.hasOwn(SCHEMES, schemeOf(url))
}

function schemeOf(url: string): string {
  return (/^([a-z+]+):\/\//i.exec(url)?.[1] ?? '').toLowerCase()
}

export function parseRedisUrl(url: string): RedisLocation {
  const scheme = SCHEMES[schemeOf(url)]
  if (scheme === undefined) throw refuse(`expected one of ${Object.keys(SCHEMES).join('://, ')}://`)
  const { topology, isTls } = scheme
  const { userinfo, hosts, path, query } = split(url.slice(url.indexOf('://') + 3))
  const { name, database } = readPath(topology, path)
  const parameters = readQuery(query, isTls)
  if (topology === 'single' && hosts.includes(','))
    throw refuse('several hosts need redis+cluster:// or redis+sentinel://')
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

interface Parts {
  readonly userinfo: string | undefined
  readonly hosts: string
  readonly path: string
  readonly query: string
}

/** A password may hold any character but those that end the part; the last `@` divides, as lenient parsers do. */
function split(rest: string): Parts {
  if (rest.includes('#')) throw refuse("'#' must be written %23")
  const question = rest.indexOf('?')
  const before = question === -1 ? rest : rest.slice(0, question)
  const slash = before.indexOf('/', before.lastIndexOf('@') + 1)
  const authority = slash === -1 ? before : before.slice(0, slash)
  const at = authority.lastIndexOf('@')
  return {
    userinfo: at === -1 ? undefined : authority.slice(0, at),
    hosts: authority.slice(at + 1),
    path: slash === -1 ? '' : before.slice(slash + 1),
    query: question === -1 ? '' : rest.slice(question + 1),
  }
}

function decode(text: string, part: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw refuse(`${part} has a '%' that is no escape; write it %25`)
  }
}

function readUserinfo(userinfo: string | undefined): Pick<RedisLocation, 'username' | 'password'> {
  if (userinfo === undefined) return { username: undefined, password: undefined }
  const colon = userinfo.indexOf(':')
  const user = decode(colon === -1 ? userinfo : userinfo.slice(0, colon), 'the user')
  const password = colon === -1 ? '' : decode(userinfo.slice(colon + 1), 'the password')
  if (password === '') throw refuse('a user needs a password: user:password@, or :password@ for the default user')
  return { username: user === '' ? undefined : user, password }
}

function readHost(text: string, defaultPort: number): Endpoint {
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:[\]\s]*))(?::(\d+))?$/.exec(text)
  const host = match?.[1] ?? match?.[2] ?? ''
  if (match === null || host === '') throw refuse('expected host, host:port or [IPv6]:port, separated by commas')
  const port = match[3] === undefined ? defaultPort : Number(match[3])
  if (port < 1 || port > 65_535) throw refuse('a port must be from 1 to 65535')
  return { host, port }
}

function readPath(topology: Topology, path: string): { readonly name: string | undefined; readonly database: number } {
  if (topology !== 'sentinel') return { name: undefined, database: readDatabase(path, topology) }
  const [name = '', database = '', ...more] = path.split('/')
  if (name === '' || more.length > 0) throw refuse('a Sentinel URL ends in /MASTERNAME or /MASTERNAME/DATABASE')
  return { name: decode(name, 'the name of the primary'), database: readDatabase(database, topology) }
}

function readDatabase(text: string, topology: Topology): number {
  if (text === '') return 0
  const database = /^\d{1,5}$/.test(text) ? Number(text) : DATABASES_MAX
  if (database >= DATABASES_MAX) throw refuse('the database must be a number such as /0')
  if (topology === 'cluster' && database !== 0) throw refuse('a Cluster has database 0 only')
  return database
}

function readQuery(query: string, isTls: boolean): Pick<RedisLocation, 'caFile' | 'waitReplicas' | 'allowEviction'> {
  const parameters = new URLSearchParams(query)
  const known = ['waitReplicas', 'allowEviction', ...(isTls ? ['ca'] : [])]
  for (const name of parameters.keys()) {
    if (!known.includes(name)) throw refuse(`unknown parameter '${name}'; known are ${known.join(', ')}`)
    if (parameters.getAll(name).length > 1) throw refuse(`parameter '${name}' is given twice`)
  }
  const replicas = parameters.get('waitReplicas') ?? '0'
  if (!/^\d{1,3}$/.test(replicas) || Number(replicas) > REPLICAS_MAX) throw refuse('waitReplicas must be 0 to 100')
  const eviction = parameters.get('allowEviction') ?? 'false'
  if (eviction !== 'true' && eviction !== 'false') throw refuse('allowEviction must be true or false')
  const caFile = parameters.get('ca') ?? undefined
  if (caFile === '') throw refuse('ca must be the path of a file')
  return { caFile, waitReplicas: Number(replicas), allowEviction: eviction === 'true' }
}
