/** The PostgreSQL store passes every suite that its capabilities ask for, on a private server whose clock the tests move. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { POSTGRES_CAPABILITIES, PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { parsePostgresUrl } from '#dist/src/backends/postgres/url.js'
import { makeTables } from '../postgres/support.ts'
import { ServerClock } from '../support/clock/server-clock.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { describeBackend } from './harness.ts'

let clock: ServerClock
let server: PostgresServer

beforeAll(async () => {
  clock = await ServerClock.make()
  server = await PostgresServer.start({ env: clock.env })
  await makeTables(server)
})
afterAll(async () => {
  await server.stop()
  await clock.remove()
})

describeBackend({
  name: 'postgres',
  capabilities: POSTGRES_CAPABILITIES,
  open: async () => {
    const namespace = `test-${randomBytes(6).toString('hex')}`
    clock.set(0)
    return {
      url: server.url,
      namespace,
      backend: (options) => PostgresBackend.open({ ...options, location: parsePostgresUrl(server.url) }),
      reopen: () => server.restart(),
      advance: async (ms) => clock.advance(ms),
      damageState: async (jobId, state) => {
        await server.query('ALTER TABLE holdfast.job DROP CONSTRAINT IF EXISTS job_state_check')
        await server.query('UPDATE holdfast.job SET state = $1 WHERE id = $2', [state, jobId])
      },
      remove: async () => {},
    }
  },
})
