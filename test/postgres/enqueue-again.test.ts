/** An enqueue that is sent again while its job is just ending waits for that, and leaves no second job behind. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { Statements, valuesFor } from '#dist/src/backends/postgres/statement.js'
import { ENDING, endRow } from '#dist/src/backends/sql/ending.js'
import type { JobDefinition } from '#dist/src/job.js'
import { claim, job } from '../sqlite/support.ts'
import { eventually } from '../support/event.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { claimOne, put } from '../support/protocol.ts'
import { openBackend } from './support.ts'

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
  const sent = await put(backend, { lane, idempotencyKey })
  const { id, token } = await claimOne(backend, { lanes: [lane] })
  const ending = await server.connect()
  const { rows } = await ending.query("SELECT ns FROM holdfast.namespace WHERE name = 'again'")
  const end = new Statements('holdfast').get('job_end')
  const row = endRow({ ...ENDING, id, from: 'running', token, to: 'completed', keepMs: null })
  await ending.query('BEGIN')
  await ending.query(end.text, valuesFor(end, rows[0].ns, { rows: [row] }) as unknown[])
  const again = backend.call('job.enqueue', { jobs: [sent], resend: true })
  if (idempotencyKey === null) await eventually(isWaiting, 'the enqueue waits for the row')
  await ending.query('COMMIT')
  await ending.end()
  expect((await again).results).toEqual([{ outcome: 'created', id, state: expect.any(String) }])
  const { jobs } = await backend.call('job.list', { lane, states: null, type: null, limit: 10, cursor: null })
  expect(jobs.map((each) => [each.id, each.state])).toEqual([[id, 'completed']])
})

const isWaiting = async (): Promise<boolean> =>
  (await server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).length > 0

it('a batch that was never sent before is written in its order; one of an id that is known after all is told so, and the rest is written', async () => {
  const lane = 'batch'
  const jobs = Array.from({ length: 50 }, (_, n) =>
    job(String(n), { id: `${lane}/${n}`, lane, delayMs: n % 7 === 0 ? 60_000 : 0 }),
  )
  const [known, fresh] = [jobs.slice(0, 10), jobs.slice(10)]
  const first = await backend.call('job.enqueue', { jobs: known, resend: false })
  expect(first.results).toEqual(known.map((each) => created(each)))
  const held = await claimOne(backend, { lanes: [lane] })
  const { results } = await backend.call('job.enqueue', { jobs: [...fresh, ...known], resend: false })
  const running = { outcome: 'created', id: held.id, state: 'running' }
  expect(results).toEqual([...fresh, ...known].map((each) => (each.id === held.id ? running : created(each))))
  const claims = [claim({ lanes: [lane], limit: 100, nonce: 'rest' })]
  const { grants } = await backend.call('job.turn', { settlements: [], claims, resend: false })
  const ready = jobs.filter(({ id, delayMs }) => id !== held.id && delayMs === 0)
  expect(grants[0]?.jobs.map(({ id }) => id)).toEqual(ready.map(({ id }) => id))
})

const created = ({ id, delayMs }: JobDefinition) => ({
  outcome: 'created',
  id,
  state: delayMs > 0 ? 'scheduled' : 'queued',
})
