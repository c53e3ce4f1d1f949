/** The example of the shop, as a user runs it: killed between the order and its job it leaves neither, and so does an order that fails. */
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CliProcess, MAIN, startNode, temporaryFolder } from '../support/cli.ts'
import { eventually } from '../support/event.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { openDatabase } from './postgres-place.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const project = temporaryFolder()
const LINE = /open at (\S+)\n/

/** Ends the process without a word where it is about to write a job, which is after the order. */
const KILLING = `
  import { isMainThread } from 'node:worker_threads'
  import Database from 'better-sqlite3'
  const { prepare } = Database.prototype
  Database.prototype.prepare = function (text) {
    if (isMainThread && text.includes('INSERT INTO holdfast_job')) process.kill(process.pid, 'SIGKILL')
    return prepare.call(this, text)
  }
`

beforeAll(() => {
  cpSync(join(ROOT, 'examples'), join(project, 'examples'), { recursive: true })
  const modules = join(project, 'node_modules')
  mkdirSync(join(modules, 'holdfast'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(modules, 'holdfast/package.json'))
  symlinkSync(dirname(dirname(dirname(MAIN))), join(modules, 'holdfast/dist'))
  for (const name of ['better-sqlite3', 'pg']) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  writeFileSync(join(project, 'killing.mjs'), KILLING)
})

interface Shop {
  readonly process: CliProcess
  readonly said: () => string
  order(wanted: object): Promise<{ readonly status: number; readonly body: { readonly job?: string } }>
  orders(): Promise<readonly { readonly customer: string }[]>
}

async function openShop(databaseUrl: string, preload: readonly string[] = []): Promise<Shop> {
  const args = [
    ...preload.flatMap((file) => ['--import', join(project, file)]),
    'examples/transactional-outbox/server.mjs',
  ]
  const process = startNode(args, {
    cwd: project,
    env: { DATABASE_URL: databaseUrl, PORT: '0', HOLDFAST_LOG: 'silent' },
  })
  let said = ''
  process.child.stdout?.on('data', (text: string) => {
    said += text
  })
  const ready = eventually(() => LINE.exec(said)?.[1], 'the shop is open')
  const url = await Promise.race([ready, process.ended.then((run) => Promise.reject(new Error(JSON.stringify(run))))])
  return {
    process,
    said: () => said,
    order: async (wanted) => {
      const response = await fetch(url, { method: 'POST', body: JSON.stringify(wanted) })
      return { status: response.status, body: (await response.json()) as { job?: string } }
    },
    orders: async () => (await (await fetch(url)).json()) as { customer: string }[],
  }
}

async function close({ process }: Shop): Promise<void> {
  process.child.kill('SIGTERM')
  expect(await process.ended).toMatchObject({ code: 0, stderr: '' })
}

const ADA = { customer: 'ada', item: 'book', count: 2 }
const mails = ({ said }: Shop): readonly string[] => said().match(/^mail to .*/gm) ?? []

/** What holds on either database, once a shop was killed between the order and its job. */
async function expectNeitherThenBoth(databaseUrl: string, jobs: () => Promise<unknown> | unknown): Promise<void> {
  const shop = await openShop(databaseUrl)
  expect(await shop.orders()).toEqual([])
  expect(await jobs()).toBe(0)
  expect((await shop.order({ ...ADA, count: 99 })).status).toBe(409)
  expect(await shop.orders()).toEqual([])
  expect(await jobs()).toBe(0)
  const { status, body } = await shop.order(ADA)
  expect([status, body.job]).toEqual([201, expect.stringMatching(/^mail\//)])
  await eventually(() => mails(shop).length > 0, 'the mail is sent')
  expect(await shop.orders()).toEqual([{ id: expect.any(Number), ...ADA }])
  expect(await jobs()).toBe(1)
  await close(shop)
  expect(mails(shop)).toEqual([expect.stringMatching(/^mail to ada: thank you for order \d+, 2 × book$/)])
}

describe('the shop on SQLite', () => {
  it('keeps both or neither', async () => {
    const path = join(temporaryFolder(), 'shop.db')
    const doomed = await openShop(`sqlite:${path}`, ['killing.mjs'])
    await expect(doomed.order(ADA)).rejects.toThrow()
    expect(await doomed.process.ended).toMatchObject({ signal: 'SIGKILL' })
    await expectNeitherThenBoth(`sqlite:${path}`, () => {
      const db = new Database(path, { readonly: true })
      const count = `SELECT (SELECT count(*) FROM holdfast_job) + (SELECT count(*) FROM holdfast_archive)`
      const jobs = db.prepare(count).pluck().get()
      db.close()
      return jobs
    })
  })
})

describe('the shop on PostgreSQL', () => {
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

  it('keeps both or neither', async () => {
    const { client, location } = await database.place()
    await client.query('DROP TABLE orders')
    const count = async (sql: string): Promise<number> => (await client.query<{ n: number }>(sql)).rows[0]?.n ?? -1
    const lock = new Client({ connectionString: location })
    lock.on('error', () => {})
    await lock.connect()
    const doomed = await openShop(location)
    await lock.query('BEGIN; LOCK TABLE holdfast.job IN EXCLUSIVE MODE')
    const asked = doomed.order(ADA).then(
      () => 'answered',
      () => 'cut off',
    )
    const waiting = `SELECT count(DISTINCT pid)::integer AS n FROM pg_locks AS held JOIN pg_locks AS wanted USING (pid)
      WHERE held.relation = 'orders'::regclass AND held.mode = 'RowExclusiveLock'
        AND wanted.relation = 'holdfast.job'::regclass AND NOT wanted.granted`
    await eventually(async () => (await count(waiting)) === 1, 'the order is written and the job waits')
    doomed.process.child.kill('SIGKILL')
    expect(await asked).toBe('cut off')
    await lock.query('COMMIT')
    await eventually(async () => (await count(waiting)) === 0, 'the server has heard of it')
    await lock.end()
    await expectNeitherThenBoth(location, () => count('SELECT count(*)::integer AS n FROM holdfast.jobs'))
  })
})
