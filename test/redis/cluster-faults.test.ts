/** A Cluster of which one node is behind a network that fails: its calls say so in time, those of the others go on. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { RedisServers } from '#dist/src/backends/redis/servers.js'
import { slotOf } from '#dist/src/backends/redis/slot-map.js'
import { parseRedisUrl } from '#dist/src/backends/redis/url.js'
import { eventually } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { FaultProxy } from '../support/proxy.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { INCREMENT, open } from './opening.ts'
import { startThreeNodes, type ThreeNodes } from './three-nodes.ts'

const CALL_MS = 400
const KEY = '{a}n'
const OTHERS = ['{b}n', '{c}n']

let cluster: ThreeNodes
let owner: RedisServer
let proxy: FaultProxy
let store: RedisServers

beforeAll(async () => {
  cluster = await startThreeNodes()
  owner = await cluster.ownerOf(slotOf(KEY))
})

afterAll(() => cluster.stop())

beforeEach(async () => {
  proxy = await FaultProxy.start({ upstream: owner.port })
  const location = parseRedisUrl(cluster.url)
  const natMap = { [`127.0.0.1:${owner.port}`]: { host: '127.0.0.1', port: proxy.port } }
  store = await open({ ...location, driver: { natMap } }, { callTimeoutMs: CALL_MS })
  await owner.command('DEL', KEY)
})

afterEach(async () => {
  await store.close()
  await proxy.close()
})

const increment = (key = KEY): Promise<unknown> => store.run(INCREMENT, [key], [])

const healed = (): Promise<unknown> => eventually(() => increment().catch(() => null), 'a call that comes through')

test('a cut reply is unknown and the call is not sent again', async () => {
  await increment()
  proxy.set({ mode: 'cutReply', times: 1 })
  expect(await failureOf(increment())).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'unknown' })
  expect(await healed()).toBe(3)
})

test.each(['blackhole', 'stall'] as const)('a node in a %s holds up its own calls only', async (fault) => {
  await increment()
  proxy.set(fault)
  const failure = failureOf(increment())
  const startedMs = performance.now()
  await Promise.all(OTHERS.map(increment))
  expect(performance.now() - startedMs).toBeLessThan(CALL_MS / 2)
  expect(await failure).toMatchObject({ code: 'STORE_TIMEOUT', outcome: 'unknown' })
  // From here on nothing is sent to it, so nothing is done.
  for (let call = 0; call < 3; call += 1) {
    const { code, outcome } = await failureOf(increment())
    expect([code, outcome]).toEqual(['STORE_UNAVAILABLE', 'notDone'])
    await Promise.all(OTHERS.map(increment))
  }
  proxy.set('pass')
  await healed()
})

test('a node that refuses is found again', async () => {
  await increment()
  proxy.set('refuse')
  proxy.reset()
  await eventually(async () => (await failureOf(increment())).outcome === 'notDone', 'the loss')
  await Promise.all(OTHERS.map(increment))
  proxy.set('pass')
  expect(await healed()).toBe(2)
})

test('a wait at a node that hangs is ended by close', async () => {
  const wait = failureOf(store.pop(['{a}l'], 30_000))
  await eventually(() => store.isWaiting, 'the wait')
  proxy.set('blackhole')
  const call = failureOf(increment())
  const startedMs = performance.now()
  await store.close()
  expect(performance.now() - startedMs).toBeLessThan(200)
  expect(await wait).toMatchObject({ code: 'CLOSED' })
  expect(await call).toMatchObject({ outcome: 'unknown' })
})
