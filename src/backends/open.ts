/** From a URL to a backend. A store's own code, and its driver, is loaded only when its URL is opened. */
import { HoldfastError, invalidArgument } from '../errors.ts'
import type { Backend, BackendOptions } from './backend.ts'
import { MemoryBackend } from './memory/backend.ts'
import type { PostgresLocation } from './postgres/location.ts'
import type { PoolOptions } from './postgres/pool-options.ts'
import { isPostgresUrl, parsePostgresUrl } from './postgres/url.ts'
import type { RedisLocation } from './redis/location.ts'
import { isRedisUrl, parseRedisUrl } from './redis/url.ts'

export type StoreLocation =
  | { readonly kind: 'memory'; readonly name: string }
  | { readonly kind: 'sqlite'; readonly path: string; readonly mode: SqliteMode }
  | { readonly kind: 'redis'; readonly location: RedisLocation }
  | { readonly kind: 'postgres'; readonly location: PostgresLocation }

/** `rwc` creates a missing file, `rw` does not, `ro` only reads. */
export type SqliteMode = 'rwc' | 'rw' | 'ro'

const SCHEMES =
  'memory:, sqlite:PATH, sqlite::memory:, postgres://HOST/DATABASE, redis://HOST:PORT, rediss:, redis+cluster://, redis+sentinel://'

function refuse(problem: string): HoldfastError {
  return new HoldfastError('INVALID_URL', `url: ${problem}; known are ${SCHEMES}`, { details: { field: 'url' } })
}

/** Reads a store URL. Throws INVALID_URL; the URL itself is never repeated in the message, since it may hold a password. */
export function parseStoreUrl(url: unknown): StoreLocation {
  if (typeof url !== 'string' || url === '') throw refuse('expected the URL of a store')
  if (url === 'memory' || url === 'in-memory') return { kind: 'memory', name: '' }
  if (isRedisUrl(url)) return { kind: 'redis', location: parseRedisUrl(url) }
  if (isPostgresUrl(url)) return { kind: 'postgres', location: parsePostgresUrl(url) }
  const scheme = /^([a-z+]+):/i.exec(url)?.[1]?.toLowerCase()
  if (scheme === undefined) throw refuse('no scheme')
  const rest = url.slice(scheme.length + 1)
  if (scheme === 'memory') return { kind: 'memory', name: rest.replace(/^\/\//, '') }
  if (scheme === 'sqlite') return parseSqlite(rest)
  throw refuse(`unknown scheme '${scheme}:'`)
}

function parseSqlite(rest: string): StoreLocation {
  const [location = '', query = ''] = splitOnce(rest, '?')
  const path = location.replace(/^\/\//, '')
  const parameters = new URLSearchParams(query)
  const mode = parameters.get('mode') ?? 'rwc'
  for (const name of parameters.keys()) if (name !== 'mode') throw refuse(`unknown parameter '${name}'`)
  if (mode !== 'rwc' && mode !== 'rw' && mode !== 'ro') throw refuse("mode must be one of 'rwc', 'rw', 'ro'")
  if (path === '') throw refuse('sqlite: needs a path, or sqlite::memory:')
  if (path.includes('\0')) throw refuse('the path has a NUL character')
  return { kind: 'sqlite', path, mode }
}

function splitOnce(text: string, separator: string): readonly string[] {
  const at = text.indexOf(separator)
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

/** Opens the store that the URL names, or that a client of ioredis or a pool of pg is for; neither is ever ended here. */
export async function openBackend(url: unknown, options: BackendOptions, pool?: PoolOptions): Promise<Backend> {
  if (typeof url === 'object') return openClient(url, options, pool)
  if (pool !== undefined) throw invalidArgument('pool', 'is for a pool of pg; a URL has these options as parameters')
  const location = parseStoreUrl(url)
  switch (location.kind) {
    case 'memory':
      return new MemoryBackend(location.name, options)
    case 'sqlite':
      return openSqlite(location, options)
    case 'redis':
      return openRedis(location.location, options)
    case 'postgres':
      return openPostgres(location.location, options)
    default:
      return location satisfies never
  }
}

async function openSqlite(
  { path, mode }: Extract<StoreLocation, { kind: 'sqlite' }>,
  options: BackendOptions,
): Promise<Backend> {
  const { SqliteBackend } = await import('./sqlite/backend.ts')
  return SqliteBackend.open({ ...options, path, readonly: mode === 'ro', create: mode === 'rwc' })
}

async function openRedis(location: RedisLocation, options: BackendOptions): Promise<Backend> {
  const { RedisBackend } = await import('./redis/backend.ts')
  return RedisBackend.open({ ...options, location })
}

async function openPostgres(location: PostgresLocation, options: BackendOptions): Promise<Backend> {
  const { PostgresBackend } = await import('./postgres/backend.ts')
  return PostgresBackend.open({ ...options, location })
}

async function openClient(client: unknown, options: BackendOptions, pool?: PoolOptions): Promise<Backend> {
  const { isPostgresPool, locationOfPool } = await import('./postgres/caller-pool.ts')
  if (isPostgresPool(client)) return openPostgres(locationOfPool(client, pool), options)
  const { isRedisClient, locationOfClient } = await import('./redis/client-location.ts')
  if (!isRedisClient(client)) throw refuse('expected the URL of a store, a client of ioredis, or a pool of pg')
  return openRedis(locationOfClient(client), options)
}
