/** Opens the connections of a Redis store for a test, and makes scripts for them. */
import { createHash } from 'node:crypto'
import { afterEach } from 'vitest'
import { openServers, type ServersOptions } from '#dist/src/backends/redis/connect.js'
import type { RedisLocation } from '#dist/src/backends/redis/location.js'
import type { RedisServers } from '#dist/src/backends/redis/servers.js'
import { parseRedisUrl } from '#dist/src/backends/redis/url.js'
import type { LuaScript } from '#dist/src/lua/script.js'
import { storeOptions } from '../support/store-options.ts'

export interface Warning {
  readonly code: unknown
  readonly message: string
}

const opened = new Set<RedisServers>()

afterEach(async () => {
  await Promise.all([...opened].map((servers) => servers.close()))
  opened.clear()
})

/** Closed after the test. */
export async function open(
  where: string | RedisLocation,
  options: Partial<ServersOptions> = {},
  warnings: Warning[] = [],
): Promise<RedisServers> {
  const location = typeof where === 'string' ? parseRedisUrl(where) : where
  const warn: ServersOptions['warn'] = ({ code }, message) => warnings.push({ code, message })
  const servers = await openServers(location, { ...storeOptions('test', { warn }), ...options })
  opened.add(servers)
  return servers
}

export function scriptOf(body: string, isWriting = true): LuaScript {
  const source = `#!lua\n${body}`
  const sha1 = createHash('sha1').update(source).digest('hex')
  return { name: 'test', source, sha1, optionalKey: null, keys: ['key'], args: [], isWriting }
}

/** Counts its runs at the key, so that a test sees whether it ran. */
export const INCREMENT = scriptOf("return redis.call('INCR', KEYS[1])")

/** Gives back what it was given. */
export const ECHO = scriptOf('return ARGV[1]', false)
