/** Processes under SIGKILL and SIGSTOP that share one Redis. */
import { miscounts } from '../redis/stage.ts'
import { RedisServer } from '../support/redis-server.ts'
import { processesSuite } from './processes.suite.ts'

processesSuite({
  faults: 'F2 F3',
  jobs: 10_000,
  field: async () => {
    const server = await RedisServer.start({ appendOnly: true, appendFsync: 'always' })
    return { url: server.url, miscounts: (namespace) => miscounts(server, namespace), stop: () => server.stop() }
  },
})
