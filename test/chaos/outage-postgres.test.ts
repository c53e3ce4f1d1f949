/** One PostgreSQL that comes and goes: its own ways first, so that a short run has seen each of them. */
import { miscounts } from '../postgres/dump.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { postgresOutages } from './faults.ts'
import { outageSuite } from './outage.suite.ts'

outageSuite({
  faults: 'F11-F17 F22 F31 F32 C046',
  seconds: 25,
  ground: async () => {
    const server = await PostgresServer.start()
    return {
      url: server.url,
      port: server.port,
      urlBehind: ({ port }) => server.urlOf({ port }),
      outages: (proxy) => postgresOutages(server, proxy),
      miscounts: () => miscounts(server),
      stop: () => server.stop(),
    }
  },
})
