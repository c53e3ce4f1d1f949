/** Settings that turn bad after the store was opened are found with the next connection, told once, and are in its facts. */
import { afterEach, expect, test } from 'vitest'
import { Cluster } from '#dist/src/backends/redis/cluster.js'
import type { RedisServers } from '#dist/src/backends/redis/servers.js'
import { SettingsCheck } from '#dist/src/backends/redis/settings-check.js'
import { parseRedisUrl } from '#dist/src/backends/redis/url.js'
import { systemClock, systemTimers } from '#dist/src/clock.js'
import { systemRandom } from '#dist/src/random.js'
import { eventually } from '../support/event.ts'
import { lookFor } from '../support/look.ts'
import { RedisCluster, slotOf } from '../support/redis-cluster.ts'
import { RedisServer } from '../support/redis-server.ts'
import { INCREMENT, open, type Warning } from './opening.ts'

const started: { stop(): Promise<void> }[] = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((each) => each.stop()))
})

/** Cuts the connections; resolves when there is another one. */
async function reconnect(store: RedisServers, server: RedisServer): Promise<void> {
  const idOf = async (): Promise<number | null> => Number(await store.command('CLIENT', '', ['ID']).catch(() => null))
  const before = await idOf()
  await server.command('CLIENT', 'KILL', 'TYPE', 'normal')
  await eventually(async () => {
    const now = await idOf()
    return now !== 0 && now !== before
  }, 'another connection')
}

const codes = (warnings: readonly Warning[]): unknown[] => warnings.map(({ code }) => code)

test('a server that evicts from now on is told of once, and again when it was good between', async () => {
  const server = await RedisServer.start({ appendOnly: true, maxMemory: '100mb', policy: 'noeviction' })
  started.push(server)
  const warnings: Warning[] = []
  const store = await open(server.url, {}, warnings)
  await reconnect(store, server)
  expect(warnings).toEqual([])
  await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
  for (const _ of [1, 2]) await reconnect(store, server)
  expect(codes(warnings)).toEqual(['EVICTION_POLICY'])
  expect(warnings[0]?.message).toContain(`127.0.0.1:${server.port} evicts keys`)
  expect(store.facts().maxmemoryPolicy).toBe('allkeys-lru')
  await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
  await reconnect(store, server)
  expect(store.facts().maxmemoryPolicy).toBe('noeviction')
  await server.command('CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru')
  await reconnect(store, server)
  expect(codes(warnings)).toEqual(['EVICTION_POLICY', 'EVICTION_POLICY'])
})

test('a server that no longer logs its writes is told of; what opening told is not repeated', async () => {
  const server = await RedisServer.start({ appendOnly: true, maxMemory: '100mb', policy: 'volatile-lru' })
  started.push(server)
  const warnings: Warning[] = []
  const store = await open(server.url, {}, warnings)
  await server.command('CONFIG', 'SET', 'appendonly', 'no')
  await server.command('CONFIG', 'SET', 'appendfsync', 'no')
  for (const _ of [1, 2]) await reconnect(store, server)
  expect(codes(warnings)).toEqual(['EVICTION_POLICY', 'NO_PERSISTENCE'])
  expect(store.facts()).toMatchObject({ isAofEnabled: false, appendFsync: 'no' })
})

test('the replica that takes over in a Cluster is looked at like any other', async () => {
  const cluster = await RedisCluster.start({ appendOnly: true, maxMemory: '100mb', nodeTimeoutMs: 500 })
  started.push(cluster)
  for (const node of cluster.nodes.slice(3)) await node.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
  const warnings: Warning[] = []
  const store = await open(cluster.url, {}, warnings)
  expect(warnings).toEqual([])
  expect(store.facts()).toMatchObject({ maxmemoryPolicy: 'noeviction', isCluster: true })
  const { promoted } = await cluster.failover(slotOf('{a}n'))
  await lookFor('a call after the failover', () => store.run(INCREMENT, ['{a}n'], []))
  expect(codes(warnings)).toEqual(['EVICTION_POLICY'])
  expect(warnings[0]?.message).toContain(`127.0.0.1:${promoted.port} evicts keys`)
  expect(store.facts().maxmemoryPolicy).toBe('allkeys-lru')
})

test('a Cluster is one also while none of its nodes is known', async () => {
  const location = parseRedisUrl('redis+cluster://127.0.0.1:1')
  const store = new Cluster(location, {
    clock: systemClock,
    timers: systemTimers,
    random: systemRandom,
    callTimeoutMs: 100,
    clientName: 'holdfast:test',
    settings: new SettingsCheck(location, () => {}),
  })
  expect(store.facts()).toMatchObject({ isCluster: true, isAofEnabled: false })
  await store.close()
})
