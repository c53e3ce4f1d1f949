/** The Redis store passes the same suites on a private Cluster of three primaries with a replica each, whose clocks the tests move. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { REDIS_CAPABILITIES, RedisBackend } from '#dist/src/backends/redis/backend.js'
import { LaneKeys } from '#dist/src/backends/redis/key.js'
import { parseRedisUrl } from '#dist/src/backends/redis/url.js'
import { ServerClock } from '../support/clock/server-clock.ts'
import { RedisCluster, slotOf } from '../support/redis-cluster.ts'
import { describeBackend } from './harness.ts'

let clock: ServerClock
let cluster: RedisCluster

beforeAll(async () => {
  clock = await ServerClock.make()
  cluster = await RedisCluster.start({ appendOnly: true, appendFsync: 'always', env: clock.env })
})
afterAll(async () => {
  await cluster.stop()
  await clock.remove()
})

describeBackend({
  name: 'redis cluster',
  column: 'redis',
  capabilities: { ...REDIS_CAPABILITIES, durability: 'always' },
  open: async () => {
    const namespace = `test-${randomBytes(6).toString('hex')}`
    clock.set(0)
    return {
      url: cluster.url,
      namespace,
      backend: (options) => RedisBackend.open({ ...options, location: parseRedisUrl(cluster.url) }),
      reopen: async () => {
        await Promise.all(cluster.nodes.map((node) => node.restart()))
        await cluster.inOrder()
      },
      advance: async (ms) => clock.advance(ms),
      damageState: async (jobId, state) => {
        const [lane = '', id = ''] = jobId.split('/')
        const key = new LaneKeys(namespace, lane).key('defs')
        const master = await cluster.masterOf(slotOf(key))
        await master.command('HSET', key, id, state)
      },
      remove: async () => {},
    }
  },
})
