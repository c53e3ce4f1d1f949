/** What is left after a store is closed, or was never opened: no connection, no timer, no rejection that nobody heard. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { locationOfClient } from '#dist/src/backends/redis/client-location.js'
import { openServers } from '#dist/src/backends/redis/connect.js'
import { systemClock } from '#dist/src/clock.js'
import { systemRandom } from '#dist/src/random.js'
import { eventually } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { FaultProxy } from '../support/proxy.ts'
import { RedisServer } from '../support/redis-server.ts'
import { INCREMENT, open } from './opening.ts'

let server: RedisServer
const proxies: FaultProxy[] = []

beforeAll(async () => {
  server = await RedisServer.start()
})

afterAll(() => server.stop())

afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()))
})

async function startProxy(): Promise<FaultProxy> {
  const proxy = await FaultProxy.start({ upstream: server.port })
  proxies.push(proxy)
  return proxy
}

const connections = async (): Promise<number> =>
  String(await server.command('CLIENT', 'LIST')).split('name=holdfast:').length - 1

test('opened and closed a thousand times, no connection is left', async () => {
  for (let round = 0; round < 50; round += 1) {
    const stores = await Promise.all(Array.from({ length: 20 }, () => open(server.url)))
    await Promise.all(
      stores.map(async (store, index) => {
        if (index % 4 === 0) store.pop(['l'], 30_000).catch(() => {})
        await store.close()
      }),
    )
  }
  await eventually(async () => (await connections()) === 0, 'no connection left')
})

test.each(['blackhole', 'stall'] as const)(
  'in a %s it closes within two seconds, and what is under way ends',
  async (fault) => {
    const proxy = await startProxy()
    const store = await open(proxy.url)
    const wait = failureOf(store.pop(['l'], 30_000))
    await eventually(() => store.isWaiting, 'the wait')
    proxy.set(fault)
    const call = failureOf(store.run(INCREMENT, ['n'], []))
    const startedMs = performance.now()
    await store.close()
    expect(performance.now() - startedMs).toBeLessThan(500)
    expect(await wait).toMatchObject({ code: 'CLOSED' })
    expect(await call).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'unknown' })
    expect(await failureOf(store.run(INCREMENT, ['n'], []))).toMatchObject({ code: 'CLOSED', outcome: 'notDone' })
    await store.close()
  },
)

test('while it connects it closes at once', async () => {
  const proxy = await startProxy()
  const store = await open(proxy.url)
  proxy.set('blackhole')
  proxy.reset()
  await eventually(() => proxy.connections > 0, 'the next try')
  const startedMs = performance.now()
  await store.close()
  expect(performance.now() - startedMs).toBeLessThan(200)
})

test('between two tries it closes at once', async () => {
  const proxy = await startProxy()
  const random = { next: () => 0.999, bytes: (count: number) => new Uint8Array(count) }
  const store = await open(proxy.url, { random })
  proxy.set('refuse')
  proxy.reset()
  // The pause after the fifth failure is a second long.
  await eventually(() => proxy.counters.refused >= 5, 'five failures')
  const failedMs = performance.now()
  await eventually(() => performance.now() - failedMs > 100, 'the pause')
  const startedMs = performance.now()
  await store.close()
  expect(performance.now() - startedMs).toBeLessThan(400)
})

test("a caller's client is neither used nor closed", async () => {
  const client = new Redis({ port: server.port, host: '127.0.0.1', db: 2 })
  await client.set('x', '1')
  const location = locationOfClient(client)
  const options = {
    namespace: 'test',
    clock: systemClock,
    random: systemRandom,
    openDeadlineMs: 10_000,
    warn: () => {},
  }
  const store = await openServers(location, options)
  const before = String(await client.info('stats'))
  await store.run(INCREMENT, ['x'], [])
  await store.close()
  expect(before).toContain('total_commands_processed')
  expect(client.status).toBe('ready')
  expect(await client.get('x')).toBe('2')
  client.disconnect()
})

test('a process can end after it closed, though the server hangs, and heard of no unhandled rejection', async () => {
  const proxy = await startProxy()
  const dist = fileURLToPath(new URL('../../dist/src/', import.meta.url))
  const script = `
    import { openServers } from '${dist}backends/redis/connect.js'
    import { parseRedisUrl } from '${dist}backends/redis/url.js'
    import { systemClock } from '${dist}clock.js'
    import { systemRandom } from '${dist}random.js'
    const options = { namespace: 'child', clock: systemClock, random: systemRandom, warn() {}, callTimeoutMs: 300, openDeadlineMs: 10_000 }
    const away = openServers(parseRedisUrl('redis://127.0.0.1:1'), { ...options, openDeadlineMs: 200 }).catch((e) => e.code)
    const store = await openServers(parseRedisUrl('${proxy.url}'), options)
    store.onChange(() => Promise.reject(new Error('nobody listens')))
    const wait = store.pop(['l'], 30000).catch((e) => e.code)
    process.stdin.once('data', async () => {
      const call = store.command('PING', '', []).catch((e) => e.code)
      const outcomes = [await away, await call]
      await store.close()
      process.stdin.destroy()
      console.log(JSON.stringify([...outcomes, await wait]))
    })
    while (!store.isWaiting) await new Promise(setImmediate)
    console.log('ready')
  `
  const child = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { timeout: 10_000 })
  let said = ''
  child.child.stdout?.on('data', (piece) => {
    said += String(piece)
  })
  await eventually(() => said.includes('ready'), 'the child')
  proxy.set('blackhole')
  child.child.stdin?.write('go\n')
  const { stdout, stderr } = await child
  expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toEqual(['STORE_UNAVAILABLE', 'STORE_TIMEOUT', 'CLOSED'])
  expect(stderr).toBe('')
})
