/** Every library that holds a transaction of PostgreSQL enqueues in it. */
import { afterAll, beforeAll } from 'vitest'
import { PostgresServer } from '../support/postgres-server.ts'
import { describeLibraries } from './library.suite.ts'
import { POSTGRES_LIBRARIES } from './postgres-libraries.ts'
import { openDatabase } from './postgres-place.ts'

let server: PostgresServer
let database: Awaited<ReturnType<typeof openDatabase>>

beforeAll(async () => {
  server = await PostgresServer.start()
  database = await openDatabase(server)
})

afterAll(async () => {
  await database.close()
  await server.stop()
})

describeLibraries('enqueueTx on PostgreSQL', POSTGRES_LIBRARIES, () => database.place())
