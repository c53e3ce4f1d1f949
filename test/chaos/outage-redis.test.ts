/** One Redis that comes and goes for three minutes. */
import { miscounts } from '../redis/stage.ts'
import { RedisServer } from '../support/redis-server.ts'
import { redisOutages } from './faults.ts'
import { outageSuite } from './outage.suite.ts'

outageSuite({
  faults: 'F11-F18 F22',
  seconds: 180,
  ground: async () => {
    const server = await RedisServer.start({ appendOnly: true, appendFsync: 'always' })
    return {
      url: server.url,
      port: server.port,
      urlBehind: (proxy) => proxy.url,
      outages: (proxy) => redisOutages(server, proxy),
      miscounts: (namespace) => miscounts(server, namespace),
      stop: () => server.stop(),
    }
  },
})
