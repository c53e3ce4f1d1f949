/** What a test of faults on PostgreSQL needs, all of it gone at its end. */
import { PostgresServer, type PostgresServerOptions } from '../support/postgres-server.ts'
import { Stage } from '../support/stage.ts'

export class PostgresStage extends Stage {
  async server(options: PostgresServerOptions = {}): Promise<PostgresServer> {
    const server = await PostgresServer.start(options)
    this.defer(() => server.stop())
    return server
  }
}
