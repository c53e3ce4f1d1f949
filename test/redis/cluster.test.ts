/** Calls in a Cluster go to the owner of their slot, follow it when it moves, and say what happened when they cannot. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { slotOf } from '#dist/src/backends/redis/slot-map.js'
import { eventually, within } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { RedisServer } from '../support/redis-server.ts'
import { ECHO, INCREMENT, open, scriptOf } from './opening.ts'
import { startThreeNodes, type ThreeNodes } from './three-nodes.ts'

let cluster: ThreeNodes

beforeAll(async () => {
  cluster = await startThreeNodes()
})

afterAll(() => cluster.stop())

const clients = async (node: RedisServer): Promise<number> =>
  String(await node.command('CLIENT', 'LIST')).split('name=holdfast:test').length - 1

/** A key of every node. */
const KEYS = ['{a}n', '{b}n', '{c}n']

async function otherThan(owner: RedisServer): Promise<RedisServer> {
  const other = cluster.nodes.find((node) => node !== owner)
  if (other === undefined) throw new Error('no other node')
  return other
}

test('keys are spread over three nodes', async () => {
  expect(new Set(await Promise.all(KEYS.map((key) => cluster.ownerOf(slotOf(key))))).size).toBe(3)
})

test('each call goes to the owner of its key, over one connection a node', async () => {
  const store = await open(cluster.url)
  expect(store.facts()).toMatchObject({ isCluster: true })
  await Promise.all(KEYS.map((key) => store.run(INCREMENT, [key], [])))
  for (const key of KEYS) {
    const owner = await cluster.ownerOf(slotOf(key))
    expect(await owner.command('GET', key)).toBe('1')
    expect(String(await store.command('GET', key, [key]))).toBe('1')
  }
  expect(await Promise.all(cluster.nodes.map(clients))).toEqual([1, 1, 1])
  await store.close()
  await eventually(
    async () => (await Promise.all(cluster.nodes.map(clients))).every((count) => count === 0),
    'no connection left',
  )
})

test('one known node is enough, and a dead one among them does no harm', async () => {
  const [, second] = cluster.nodes
  const store = await open(`redis+cluster://127.0.0.1:1,127.0.0.1:${second?.port}`)
  for (const key of KEYS) expect(Number(await store.run(INCREMENT, [key], []))).toBeGreaterThan(0)
})

test('a wait stands on the owner of its lists', async () => {
  const store = await open(cluster.url)
  const owner = await cluster.ownerOf(slotOf('{a}wake'))
  const wait = store.pop(['{a}wake:2', '{a}wake:1'], 5000)
  await eventually(() => store.isWaiting, 'the wait')
  await owner.command('LPUSH', '{a}wake:1', 'x')
  expect(await wait).toEqual({ list: '{a}wake:1', value: 'x' })
})

describe('a slot that moves', () => {
  test('is followed with ASK while it moves and with MOVED after', async () => {
    const store = await open(cluster.url)
    const slot = slotOf('{mv}n')
    const from = await cluster.ownerOf(slot)
    const to = await otherThan(from)
    let changes = 0
    store.onChange(async () => {
      changes += 1
    })
    expect(await store.run(INCREMENT, ['{mv}n'], [])).toBe(1)
    await cluster.beginMove(slot, to)
    await from.command('MIGRATE', '127.0.0.1', to.port, '{mv}n', 0, 1000)
    await to.command('SCRIPT', 'FLUSH')
    // Not there any more: the old owner says ASK; the new one has never seen the script.
    expect(await store.run(INCREMENT, ['{mv}n'], [])).toBe(2)
    expect(await store.run(INCREMENT, ['{mv}n'], [])).toBe(3)
    expect(String(await store.command('GET', '{mv}n', ['{mv}n']))).toBe('3')
    expect(changes).toBe(0)
    await cluster.endMove(slot, to)
    expect(await store.run(INCREMENT, ['{mv}n'], [])).toBe(4)
    expect(changes).toBe(1)
    const before = await redirects(from)
    expect(await store.run(INCREMENT, ['{mv}n'], [])).toBe(5)
    expect(await redirects(from)).toBe(before)
  })

  test('with keys on both sides is tried again until the deadline, and did nothing', async () => {
    const store = await open(cluster.url, { callTimeoutMs: 500 })
    const slot = slotOf('{try}1')
    const from = await cluster.ownerOf(slot)
    const to = await otherThan(from)
    const both = scriptOf("return redis.call('INCR', KEYS[1]) + redis.call('INCR', KEYS[2])")
    await store.run(both, ['{try}1', '{try}2'], [])
    await cluster.beginMove(slot, to)
    await from.command('MIGRATE', '127.0.0.1', to.port, '{try}1', 0, 1000)
    const startedMs = performance.now()
    expect(await failureOf(store.run(both, ['{try}1', '{try}2'], []))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      outcome: 'notDone',
      reply: 'TRYAGAIN',
    })
    expect(performance.now() - startedMs).toBeGreaterThan(300)
    expect(performance.now() - startedMs).toBeLessThan(700)
    const later = store.run(both, ['{try}1', '{try}2'], [])
    await from.command('MIGRATE', '127.0.0.1', to.port, '{try}2', 0, 1000)
    expect(await later).toBe(4)
    await cluster.endMove(slot, to)
  })

  test('takes the wait along', async () => {
    const store = await open(cluster.url)
    const slot = slotOf('{wait}l')
    const from = await cluster.ownerOf(slot)
    const to = await otherThan(from)
    expect(await store.pop(['{wait}l'], 1)).toBeNull()
    await cluster.beginMove(slot, to)
    await cluster.endMove(slot, to)
    const found = eventually(() => store.pop(['{wait}l'], 5000).catch(() => null), 'the element')
    await eventually(() => store.isWaiting, 'the wait')
    await eventually(async () => (await to.command('LPUSH', '{wait}l', 'x').catch(() => null)) !== null, 'the push')
    expect(await found).toEqual({ list: '{wait}l', value: 'x' })
  })
})

async function redirects(node: RedisServer): Promise<number> {
  return Number(/errorstat_MOVED:count=(\d+)/.exec(String(await node.command('INFO', 'errorstats')))?.[1] ?? 0)
}

test('a node that does not know the slot says so until the deadline', async () => {
  const store = await open(cluster.url, { callTimeoutMs: 400 })
  const slot = slotOf('{down}n')
  const owner = await cluster.ownerOf(slot)
  await store.run(INCREMENT, ['{down}n'], [])
  await owner.command('CLUSTER', 'DELSLOTS', slot)
  const failure = await failureOf(store.run(INCREMENT, ['{down}n'], []))
  expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone', reply: 'CLUSTERDOWN' })
  const later = eventually(() => store.run(INCREMENT, ['{down}n'], []).catch(() => null), 'the slot')
  await owner.command('CLUSTER', 'ADDSLOTS', slot)
  expect(await later).toBe(2)
})

test('many calls to several nodes keep their replies', async () => {
  const store = await open(cluster.url)
  const replies = await Promise.all(
    Array.from({ length: 500 }, (_, number) => store.run(ECHO, [`{${number}}`], [number])),
  )
  expect(replies.map(Number)).toEqual(Array.from({ length: 500 }, (_, number) => number))
})

test('a Cluster is not opened as one server, nor the other way round', async () => {
  const [first] = cluster.nodes
  expect(await failureOf(open(`redis://127.0.0.1:${first?.port}`))).toMatchObject({ code: 'UNSUPPORTED' })
  const single = await RedisServer.start()
  expect(await failureOf(open(`redis+cluster://127.0.0.1:${single.port}`))).toMatchObject({ code: 'UNSUPPORTED' })
  await single.stop()
})

test('nodes that are all away are named when the time is up', async () => {
  const failure = await failureOf(open('redis+cluster://127.0.0.1:1,127.0.0.1:2', { openDeadlineMs: 300 }))
  expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
  expect(failure.message).toMatch(/127\.0\.0\.1:[12].*ECONNREFUSED/)
})

test('a primary that dies is replaced by its replica, and that is told as a change', async () => {
  const own = await startThreeNodes(1, 500)
  const [, , third, replica] = own.nodes
  if (third === undefined || replica === undefined) throw new Error('too few nodes')
  await replica.command('CLUSTER', 'REPLICATE', String(await third.command('CLUSTER', 'MYID')))
  await eventually(
    async () => String(await replica.command('INFO', 'replication')).includes('master_link_status:up'),
    'the replica',
  )
  const key = await keyOf(own, third)
  const store = await open(`redis+cluster://127.0.0.1:${replica.port}`, { callTimeoutMs: 500 })
  expect(await store.run(INCREMENT, [key], [])).toBe(1)
  let changes = 0
  store.onChange(async () => {
    changes += 1
  })
  await third.kill()
  await within(
    eventually(() => store.run(INCREMENT, [key], []).catch(() => null), 'the new primary'),
    'the failover',
  )
  expect(Number(await replica.command('GET', key))).toBeGreaterThanOrEqual(1)
  await eventually(() => changes > 0, 'the change')
  await store.close()
  await own.stop()
})

async function keyOf({ ownerOf }: ThreeNodes, node: RedisServer): Promise<string> {
  for (let number = 0; ; number += 1) if ((await ownerOf(slotOf(`{${number}}`))) === node) return `{${number}}`
}
