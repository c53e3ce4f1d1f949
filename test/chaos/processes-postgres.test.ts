/** Processes under SIGKILL and SIGSTOP that share one PostgreSQL. */
import { miscounts } from '../postgres/dump.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { processesSuite } from './processes.suite.ts'

processesSuite({
  faults: 'F2 F3',
  jobs: 6_000,
  field: async () => {
    const server = await PostgresServer.start()
    return { url: server.url, miscounts: () => miscounts(server), stop: () => server.stop() }
  },
})
