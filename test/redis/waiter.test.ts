/** The blocking wait: what it gives, when it ends, and that it comes back by itself after every loss. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { RedisServers } from '#dist/src/backends/redis/servers.js'
import { eventually, within } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { FaultProxy } from '../support/proxy.ts'
import { RedisServer } from '../support/redis-server.ts'
import { open } from './opening.ts'

let server: RedisServer
let proxy: FaultProxy
let store: RedisServers

beforeAll(async () => {
  server = await RedisServer.start()
})

afterAll(() => server.stop())

beforeEach(async () => {
  await server.command('FLUSHALL')
  proxy = await FaultProxy.start({ upstream: server.port })
  store = await open(proxy.url, { callTimeoutMs: 500 })
})

afterEach(async () => {
  await store.close()
  await proxy.close()
})

const waiting = (): Promise<unknown> => eventually(() => store.isWaiting, 'the wait')

/** The next element, by as many waits as it takes. */
const next = (): Promise<unknown> => eventually(() => store.pop(['l'], 5000).catch(() => null), 'an element')

describe('a wait', () => {
  test('gives what is there at once, and what comes later', async () => {
    await server.command('RPUSH', 'l', 'first')
    expect(await store.pop(['k', 'l'], 1000)).toEqual({ list: 'l', value: 'first' })
    expect(store.isWaiting).toBe(false)
    const wait = store.pop(['k', 'l'], 5000)
    await waiting()
    await server.command('RPUSH', 'k', 'second')
    expect(await wait).toEqual({ list: 'k', value: 'second' })
    expect(store.isWaiting).toBe(false)
  })

  test.each([0, 1, 50])('of %i ms ends with nothing', async (timeoutMs) => {
    expect(await within(store.pop(['l'], timeoutMs), 'the end', 1000)).toBeNull()
  })

  test('that the server ends gives nothing', async () => {
    for (const how of ['TIMEOUT', 'ERROR']) {
      const wait = store.pop(['l'], 5000)
      await waiting()
      await server.command('CLIENT', 'UNBLOCK', await blockedId(), how)
      expect(await wait).toBeNull()
    }
  })

  test('stands beside calls, which it does not hold up', async () => {
    const wait = store.pop(['l'], 5000)
    await waiting()
    expect(String(await store.command('PING', '', []))).toBe('PONG')
    await store.command('LPUSH', 'l', ['l', 'x'])
    expect(await wait).toEqual({ list: 'l', value: 'x' })
  })

  test('is one at a time', async () => {
    const wait = store.pop(['l'], 200)
    expect(await failureOf(store.pop(['l'], 200))).toMatchObject({ code: 'INTERNAL' })
    expect(await wait).toBeNull()
  })

  test('whose connection is cut rejects, and the next one stands again', async () => {
    const wait = failureOf(store.pop(['l'], 30_000))
    await waiting()
    proxy.reset()
    expect(await wait).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(store.isWaiting).toBe(false)
    const element = next()
    await waiting()
    await server.command('RPUSH', 'l', 'x')
    expect(await element).toEqual({ list: 'l', value: 'x' })
  })

  test('in a blackhole ends two seconds after its time, and drops the connection', async () => {
    const wait = store.pop(['l'], 100)
    const failure = failureOf(wait)
    await waiting()
    proxy.set('blackhole')
    const startedMs = performance.now()
    expect(await failure).toMatchObject({ code: 'STORE_TIMEOUT' })
    expect(performance.now() - startedMs).toBeGreaterThan(1500)
    expect(performance.now() - startedMs).toBeLessThan(2500)
    proxy.set('pass')
    await server.command('RPUSH', 'l', 'x')
    expect(await next()).toEqual({ list: 'l', value: 'x' })
  })

  test('comes back after a restart of the server', async () => {
    const wait = failureOf(store.pop(['l'], 30_000))
    await waiting()
    await server.restart()
    expect(await wait).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    const element = next()
    await waiting()
    await server.command('RPUSH', 'l', 'x')
    expect(await element).toEqual({ list: 'l', value: 'x' })
  })

  test('ends at once when the store is closed', async () => {
    const wait = failureOf(store.pop(['l'], 30_000))
    await waiting()
    const startedMs = performance.now()
    await store.close()
    expect(await wait).toMatchObject({ code: 'CLOSED' })
    expect(performance.now() - startedMs).toBeLessThan(200)
    expect(await failureOf(store.pop(['l'], 100))).toMatchObject({ code: 'CLOSED' })
  })
})

async function blockedId(): Promise<string> {
  return /id=(\d+) [^\n]*cmd=blpop/.exec(String(await server.command('CLIENT', 'LIST')))?.[1] ?? ''
}
