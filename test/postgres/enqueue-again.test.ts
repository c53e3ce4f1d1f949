/** An enqueue that is sent again while its job is just ending waits for that, and leaves no second job behind. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { Statements, valuesFor } from '#dist/src/backends/postgres/statement.js'
import { ENDING, endRow } from '#dist/src/backends/sql/ending.js'
import { eventually } from '../support/event.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { claimOne, put } from '../support/protocol.ts'
import { openBackend } from './stage.ts'

let server: PostgresServer
let backend: PostgresBackend

beforeAll(async () => {
  server = await PostgresServer.start()
  backend = await openBackend(server.url, 'again')
})
afterAll(async () => {
  await backend.close()
  await server.stop()
})

it.each([null, 'k'])('with the key %s', async (idempotencyKey) => {
  const lane = `lane-${idempotencyKey}`
  const job = await put(backend, { lane, idempotencyKey })
  const { id, token } = await claimOne(backend, { lanes: [lane] })
  const ending = await server.connect()
  const { rows } = await ending.query("SELECT ns FROM holdfast.namespace WHERE name = 'again'")
  const end = new Statements('holdfast').get('job_end')
  const row = endRow({ ...ENDING, id, from: 'running', token, to: 'completed', keepMs: null })
  await ending.query('BEGIN')
  await ending.query(end.text, valuesFor(end, rows[0].ns, { rows: [row] }) as unknown[])
  const again = backend.call('job.enqueue', { jobs: [job], resend: true })
  if (idempotencyKey === null) await eventually(isWaiting, 'the enqueue waits for the row')
  await ending.query('COMMIT')
  await ending.end()
  expect((await again).results).toEqual([{ outcome: 'created', id, state: expect.any(String) }])
  const { jobs } = await backend.call('job.list', { lane, states: null, type: null, limit: 10, cursor: null })
  expect(jobs.map((each) => [each.id, each.state])).toEqual([[id, 'completed']])
})

const isWaiting = async (): Promise<boolean> =>
  (await server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).length > 0
