/** The view for people can be read whatever a job holds: what the server cannot show is null, and the rest is there. */
import { defineJob, handle, retry } from 'holdfast'
import { afterEach, expect, it } from 'vitest'
import { migrate, readMigrations } from '#dist/src/backends/postgres/migrate.js'
import { parsePostgresUrl } from '#dist/src/backends/postgres/url.js'
import { open, optionsOf } from './opening.ts'
import { PostgresStage } from './stage.ts'

const stage = new PostgresStage()
afterEach(() => stage.clear())

const mail = defineJob<{ readonly to: string }>('mail', { queue: 'mail', retry: retry.none() })
const READ = `SELECT payload->>'to' AS to, metadata->>'of' AS of, last_failure->>'message' AS message
  FROM holdfast.jobs WHERE lane = 'mail' AND state = 'dlq' ORDER BY id`

it('jobs with a NUL character, half a surrogate pair or times before all time hide nothing of the others', async () => {
  const server = await stage.server()
  const database = await server.createDatabase()
  const url = server.urlOf({ database })
  // As a release before made them.
  const before = { ...optionsOf(), location: parsePostgresUrl(url), migrations: readMigrations().slice(0, 5) }
  await migrate(await open(url), before)
  const hf = await stage.client(url)
  const shown = ['ada', '\u{1F600}', 'C:\\u0000', '\\\\ud800', '\u0001']
  const hidden = ['a\u0000b', '\ud800', '\\\udc00', '\\\\\u0000']
  const query = <Row>(text: string, values: unknown[] = []) => server.query<Row>(text, values, { database })
  for (const to of [...shown, ...hidden]) await hf.enqueue(mail, { to }, { metadata: { of: to } })
  await hf.runUntilEmpty({ handlers: [handle(mail, ({ to }) => Promise.reject(new Error(to)))] })
  // Half pairs in messages of errors are replaced before.
  const messageOf = (to: string) => (to.includes('\u0000') ? null : expect.any(String))
  expect(await query(READ)).toEqual([
    ...shown.map((to) => ({ to, of: to, message: to })),
    ...hidden.map((to) => ({ to: null, of: null, message: messageOf(to) })),
  ])

  for (const runAt of [new Date(-8.64e15), new Date(8.64e15)])
    await hf.enqueue('times', '\ud800', { runAt, deadline: new Date(8.64e15), queue: 'times' })
  await hf.enqueue('times', '\ud800', { deadline: new Date(-8.64e15), queue: 'times' })
  const years =
    "payload#>>'{}' AS text, extract(year FROM run_at)::integer AS run, extract(year FROM deadline_at)::integer AS deadline"
  expect(await query(`SELECT ${years} FROM holdfast.jobs WHERE lane = 'times' ORDER BY id`)).toEqual([
    { text: null, run: expect.any(Number), deadline: 275_760 },
    { text: null, run: 275_760, deadline: 275_760 },
    { text: null, run: expect.any(Number), deadline: null },
  ])
})
