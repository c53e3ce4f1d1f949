/** The version of a keyspace: the first start, many at once, newer and older ones, and a migrator that dies. */
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openServers } from '#dist/src/backends/redis/connect.js'
import { type KeyspaceStep, openKeyspace } from '#dist/src/backends/redis/keyspace.js'
import type { RedisServers } from '#dist/src/backends/redis/servers.js'
import { parseRedisUrl } from '#dist/src/backends/redis/url.js'
import { systemClock, systemTimers } from '#dist/src/clock.js'
import { HoldfastError } from '#dist/src/errors.js'
import { systemRandom } from '#dist/src/random.js'
import { gate, rejection, within } from '../support/event.ts'
import { RedisServer } from '../support/redis-server.ts'
import { openBackend } from './support.ts'

const NAMESPACE = 'versions'
const KEY = `hf:{${NAMESPACE}}:keyspace`
const LOCK = `${KEY}:lock`

let server: RedisServer
let pool: readonly RedisServers[]

beforeAll(async () => {
  server = await RedisServer.start()
  pool = await Promise.all(
    Array.from({ length: 20 }, () =>
      openServers(parseRedisUrl(server.url), {
        namespace: NAMESPACE,
        clock: systemClock,
        random: systemRandom,
        warn: () => {},
        openDeadlineMs: 10_000,
      }),
    ),
  )
})
afterAll(async () => {
  await Promise.all(pool.map((servers) => servers.close()))
  await server.stop()
})
beforeEach(() => server.command('FLUSHALL'))

const first = (): RedisServers => pool[0] as RedisServers
const open = (servers: RedisServers, steps?: readonly KeyspaceStep[]): Promise<void> =>
  openKeyspace(servers, {
    namespace: NAMESPACE,
    timers: systemTimers,
    random: systemRandom,
    ...(steps === undefined ? {} : { steps }),
  })

/** Steps that say that they ran, by appending to a list in the server. */
const noting =
  (name: string): KeyspaceStep =>
  async (servers) => {
    await servers.command('RPUSH', 'ran', ['ran', `${name} begins`])
    await setImmediate()
    await servers.command('RPUSH', 'ran', ['ran', `${name} ends`])
  }
const ran = () => server.command('LRANGE', 'ran', 0, -1)

describe('the first start', () => {
  test('writes the version, and nothing else', async () => {
    await open(first())
    expect(await server.command('KEYS', '*')).toEqual([KEY])
    expect(await server.command('GET', KEY)).toBe('1')
  })

  test('of 20 processes at once writes it once', async () => {
    await Promise.all(pool.map((servers) => open(servers)))
    expect(await server.command('KEYS', '*')).toEqual([KEY])
    expect(await server.command('GET', KEY)).toBe('1')
  })

  test('with a later release has nothing to migrate', async () => {
    await open(first(), [noting('one')])
    expect(await server.command('GET', KEY)).toBe('2')
    expect(await ran()).toEqual([])
  })
})

describe('another version', () => {
  test.each(['2', '99', 'x', '1.5'])('%s that this release does not know is refused and left', async (version) => {
    await server.command('SET', KEY, version)
    const error = await rejection(openBackend(server.url, NAMESPACE))
    expect(error.code).toBe('STORE_SCHEMA_TOO_NEW')
    expect((error as HoldfastError).details.outcome).toBe('refused')
    expect(await server.command('GET', KEY)).toBe(version)
    expect(await server.command('KEYS', '*')).toEqual([KEY])
  })

  test('is brought up to date by one of ten openers, each step once, in order', async () => {
    await server.command('SET', KEY, 1)
    const steps = [noting('one'), noting('two'), noting('three')]
    await Promise.all(pool.slice(0, 10).map((servers) => open(servers, steps)))
    expect(await ran()).toEqual(['one begins', 'one ends', 'two begins', 'two ends', 'three begins', 'three ends'])
    expect(await server.command('GET', KEY)).toBe('4')
    expect(await server.command('EXISTS', LOCK)).toBe(0)
  })

  test('a release that knows less refuses after that', async () => {
    await server.command('SET', KEY, 1)
    await open(first(), [noting('one')])
    expect((await rejection(open(first()))).code).toBe('STORE_SCHEMA_TOO_NEW')
  })
})

describe('a step that does not end', () => {
  test('keeps others waiting, and what it left undone is done by the next when its lock runs out', async () => {
    await server.command('SET', KEY, 1)
    // A process that died with the lock: half of its step is done.
    await server.command('SET', LOCK, 'of the dead', 'PX', 600)
    await server.command('RPUSH', 'ran', 'half')
    const opening = open(first(), [noting('one')])
    expect(await ran()).toEqual(['half'])
    await within(opening, 'the next migrator')
    expect(await ran()).toEqual(['half', 'one begins', 'one ends'])
    expect(await server.command('EXISTS', LOCK)).toBe(0)
  })

  test('and fails leaves the version, and lets go of the lock', async () => {
    await server.command('SET', KEY, 1)
    const failing: KeyspaceStep = () => Promise.reject(new HoldfastError('STORE_UNAVAILABLE', 'away'))
    expect((await rejection(open(first(), [failing]))).code).toBe('STORE_UNAVAILABLE')
    expect(await server.command('GET', KEY)).toBe('1')
    expect(await server.command('EXISTS', LOCK)).toBe(0)
    await open(first(), [noting('one')])
    expect(await server.command('GET', KEY)).toBe('2')
  })

  test('and comes back after its lock was taken over changes neither version nor lock', async () => {
    await server.command('SET', KEY, 1)
    const [slow, other] = [pool[1] as RedisServers, pool[2] as RedisServers]
    const [begun, goOn] = [gate(), gate()]
    const held: KeyspaceStep = async () => {
      begun.open()
      await goOn.passed
    }
    const late = open(slow, [held, noting('two')])
    await begun.passed
    // Its lock runs out; another process does both steps, and a third is about to do something else.
    await server.command('DEL', LOCK)
    await open(other, [noting('one'), noting('two')])
    expect(await server.command('GET', KEY)).toBe('3')
    await server.command('SET', LOCK, 'of a third', 'PX', 60_000)
    goOn.open()
    await within(late, 'the slow migrator')
    expect(await server.command('GET', KEY)).toBe('3')
    expect(await server.command('GET', LOCK)).toBe('of a third')
    expect(await ran()).toEqual(['one begins', 'one ends', 'two begins', 'two ends'])
  })
})
