/** The Redis store passes every suite that its capabilities ask for, on a private server whose clock the tests move. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { REDIS_CAPABILITIES, RedisBackend } from '#dist/src/backends/redis/backend.js'
import { LaneKeys } from '#dist/src/backends/redis/key.js'
import { parseRedisUrl } from '#dist/src/backends/redis/url.js'
import { ServerClock } from '../support/clock/server-clock.ts'
import { RedisServer } from '../support/redis-server.ts'
import { describeBackend } from './harness.ts'

let clock: ServerClock
let server: RedisServer

beforeAll(async () => {
  clock = await ServerClock.make()
  server = await RedisServer.start({ appendOnly: true, appendFsync: 'always', env: clock.env })
})
afterAll(async () => {
  await server.stop()
  await clock.remove()
})

describeBackend({
  name: 'redis',
  capabilities: { ...REDIS_CAPABILITIES, durability: 'always' },
  open: async () => {
    const namespace = `test-${randomBytes(6).toString('hex')}`
    clock.set(0)
    return {
      url: server.url,
      namespace,
      backend: (options) => RedisBackend.open({ ...options, location: parseRedisUrl(server.url) }),
      reopen: () => server.restart(),
      advance: async (ms) => clock.advance(ms),
      damageState: async (jobId, state) => {
        const [lane = '', id = ''] = jobId.split('/')
        await server.command('HSET', new LaneKeys(namespace, lane).key('defs'), id, state)
      },
      remove: async () => {},
    }
  },
})
