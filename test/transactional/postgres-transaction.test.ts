/** What a transaction of PostgreSQL may do between its beginning and its end, and what becomes of its job then. */
import { defineJob, type Holdfast, handle, type JobHandle } from 'holdfast'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually, rejection } from '../support/event.ts'
import { TransactionPooler } from '../support/pooler.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { connectPostgres, openDatabase, type PostgresPlace } from './postgres-place.ts'

const task = defineJob<number>('task')

describe('enqueueTx in a transaction of PostgreSQL', () => {
  let server: PostgresServer
  let database: Awaited<ReturnType<typeof openDatabase>>
  let place: PostgresPlace
  let hf: Holdfast
  let client: Client

  beforeAll(async () => {
    server = await PostgresServer.start()
    database = await openDatabase(server)
  })

  afterAll(async () => {
    await database.close()
    await server.stop()
  })

  beforeEach(async () => {
    place = await database.place()
    hf = await place.connect()
    client = await another()
  })

  afterEach(async () => {
    await client.end()
    await hf.close()
  })

  async function another(connectionString = place.location): Promise<Client> {
    const made = new Client({ connectionString })
    made.on('error', () => {})
    await made.connect()
    return made
  }

  const total = async (): Promise<number> => (await hf.stats()).total
  const order = (id = 1): Promise<unknown> => client.query('INSERT INTO orders (id) VALUES ($1)', [id])

  it('74 a constraint that fails at the commit leaves neither', async () => {
    await client.query(`CREATE TABLE IF NOT EXISTS item (
      order_id integer REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)`)
    await client.query('BEGIN')
    await client.query('INSERT INTO item VALUES (99)')
    await hf.enqueueTx(client, task, 1)
    expect(await rejection(client.query('COMMIT'))).toMatchObject({ code: '23503' })
    expect(await total()).toBe(0)
    await client.query('DROP TABLE item')
  })

  it('74 a connection that is cut leaves neither, and what is enqueued on it afterwards is told so', async () => {
    await client.query('BEGIN')
    await order()
    await hf.enqueueTx(client, task, 1)
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const ended = new Promise((resolve) => client.once('end', resolve))
    await place.client.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid])
    await ended
    const error = await rejection(hf.enqueueTx(client, task, 2))
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { outcome: 'notDone' } })
    expect([await total(), await place.orders()]).toEqual([0, []])
  })

  it('C058 time counts from the call and not from the beginning of the transaction', async () => {
    await client.query('BEGIN')
    const { rows } = await client.query<{ began: string }>(
      `SELECT (extract(epoch FROM now()) * 1000)::text AS began, pg_sleep(0.5)`,
    )
    const job = await hf.enqueueTx(client, task, 1, { delay: '1m' })
    await client.query('COMMIT')
    const found = await hf.get(job.id)
    const began = Number(rows[0]?.began)
    expect(found?.createdAt).toBeGreaterThanOrEqual(began + 500)
    expect((found?.runAt ?? 0) - (found?.createdAt ?? 0)).toBe(60_000)
  })

  it('C059 a worker that looks all the time runs each job that was committed, once, and no other', async () => {
    const ran: number[] = []
    const worker = await hf.worker({ handlers: [handle(task, (n) => void ran.push(n))], poll: 20 })
    const committed: number[] = []
    for (let n = 0; n < 40; n += 1) {
      await client.query('BEGIN')
      await order(n)
      await hf.enqueueTx(client, task, n)
      await client.query('SELECT pg_sleep(0.005)')
      expect(ran).not.toContain(n)
      if (n % 3 === 0) await client.query('ROLLBACK')
      else {
        await client.query('COMMIT')
        committed.push(n)
      }
    }
    await eventually(
      async () => (await hf.stats()).counts.completed === committed.length,
      'all that was committed has run',
    )
    expect([...ran].sort((a, b) => a - b)).toEqual(committed)
    expect(await place.orders()).toEqual(committed)
    await worker.stop()
  })

  it.each(['COMMIT', 'ROLLBACK'])('75 one whose %s is under way has ended, and is refused', async (end) => {
    await client.query('BEGIN')
    await order()
    const ended = client.query(end)
    const error = await rejection(hf.enqueueTx(client, task, 1))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'transaction' } })
    expect(error.message).toContain('no transaction is open')
    await ended
    expect(await total()).toBe(0)
    await client.query('BEGIN')
    const written = client.query('INSERT INTO orders (id) VALUES (7)')
    await Promise.all([1, 2, 3].map((n) => hf.enqueueTx(client, task, n)))
    await written
    await client.query('COMMIT')
    expect(await total()).toBe(3)
    await client.query('DELETE FROM orders')
  })

  it('76 what has no key does not wait beside what waits for one', async () => {
    await client.query('BEGIN')
    const first = await hf.enqueueTx(client, task, 1, { idempotencyKey: 'k' })
    let waits = 0
    const one = async (n: number): Promise<JobHandle> => {
      waits += 1
      const handle = await hf.enqueue(task, n, { idempotencyKey: 'k' })
      waits -= 1
      return handle
    }
    const keyed: Promise<JobHandle>[] = []
    for (let round = 0; round < 5; round += 1) {
      keyed.push(one(round))
      await Promise.all(Array.from({ length: 10 }, (_, n) => hf.enqueue(task, n)))
      await eventually(() => isWaiting(), 'those with the key wait')
    }
    expect([waits, await total()]).toEqual([5, 50])
    await client.query('COMMIT')
    expect(new Set((await Promise.all(keyed)).map(({ id }) => id))).toEqual(new Set([first.id]))
    expect(await total()).toBe(51)
  })

  it('76 a key that an open transaction holds is waited for, and is free when that is rolled back', async () => {
    const options = { idempotencyKey: 'k' }
    const other = await another()
    for (const end of ['ROLLBACK', 'COMMIT'] as const) {
      await client.query('BEGIN')
      await other.query('BEGIN')
      const first = await hf.enqueueTx(client, task, 1, options)
      let isOver = false
      const waiting = hf.enqueueTx(other, task, 2, options).finally(() => {
        isOver = true
      })
      await eventually(() => isWaiting(), 'the second waits for the first')
      expect(isOver).toBe(false)
      await client.query(end)
      const second: JobHandle = await waiting
      expect(second.deduplicated).toBe(end === 'COMMIT')
      expect(second.id === first.id).toBe(end === 'COMMIT')
      await other.query('ROLLBACK')
    }
    await other.end()
  })

  async function isWaiting(): Promise<boolean> {
    const { rowCount } = await place.client.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    return (rowCount ?? 0) > 0
  }

  it('a conflict of serializable transactions is STORE_BUSY and worth a repetition', async () => {
    const options = { idempotencyKey: 'k' }
    await client.query('BEGIN ISOLATION LEVEL SERIALIZABLE')
    await client.query('SELECT 1')
    await hf.enqueue(task, 1, options)
    const error = await rejection(hf.enqueueTx(client, task, 2, options))
    expect(error).toMatchObject({ code: 'STORE_BUSY', retryable: true, details: { outcome: 'notDone' } })
    await client.query('ROLLBACK')
  })

  it('what is rolled back to a savepoint is gone alone', async () => {
    await client.query('BEGIN')
    const kept = await hf.enqueueTx(client, task, 1)
    await client.query('SAVEPOINT s')
    const lost = await hf.enqueueTx(client, task, 2)
    await client.query('ROLLBACK TO SAVEPOINT s')
    await client.query('COMMIT')
    expect(await hf.get(kept.id)).not.toBeNull()
    expect(await hf.get(lost.id)).toBeNull()
  })

  it('a client is refused without a transaction, in one that has failed and in one that only reads', async () => {
    const refusal = { code: 'INVALID_ARGUMENT', details: { field: 'transaction', outcome: 'refused' } }
    expect(await rejection(hf.enqueueTx(client, task, 1))).toMatchObject(refusal)
    await client.query('BEGIN')
    await rejection(client.query('SELECT 1 / 0'))
    const failed = await rejection(hf.enqueueTx(client, task, 1))
    expect(failed).toMatchObject(refusal)
    expect(failed.message).toContain('has failed')
    await client.query('ROLLBACK')
    await client.query('BEGIN READ ONLY')
    const reading = await rejection(hf.enqueueTx(client, task, 1))
    expect(reading).toMatchObject(refusal)
    expect(reading.message).toContain('read-only')
    await client.query('ROLLBACK')
    expect(await total()).toBe(0)
  })

  it('a client that cannot say whether a transaction is open is asked through the server', async () => {
    Object.defineProperty(client, 'getTransactionStatus', { value: undefined })
    const none = await rejection(hf.enqueueTx(client, task, 1))
    expect(none).toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'transaction' } })
    await client.query('BEGIN')
    await hf.enqueueTx(client, task, 1)
    await rejection(client.query('SELECT 1 / 0'))
    expect((await rejection(hf.enqueueTx(client, task, 1))).message).toContain('has failed')
    await client.query('ROLLBACK')
    expect(await total()).toBe(0)
  })

  it('a BEGIN that is still under way is waited for', async () => {
    const began = client.query('BEGIN')
    const job = await hf.enqueueTx(client, task, 1)
    await began
    expect(await hf.get(job.id)).toBeNull()
    await client.query('COMMIT')
    expect(await hf.get(job.id)).not.toBeNull()
  })

  it('a transaction of another database is refused, with and without a store in it', async () => {
    const empty = await server.createDatabase()
    const other = await openDatabase(server)
    const { location } = await other.place()
    const theirs = await connectPostgres(location, 'n1')
    for (const url of [server.urlOf({ database: empty }), location]) {
      const elsewhere = await another(url)
      await elsewhere.query('BEGIN')
      const error = await rejection(hf.enqueueTx(elsewhere, task, 1))
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'transaction' } })
      expect(error.message).toContain('not that of the store')
      await elsewhere.end()
    }
    expect((await theirs.stats()).total).toBe(0)
    await theirs.close()
    await other.close()
  })

  it('a store in a schema of another name gets the job', async () => {
    const other = await connectPostgres(`${place.location}?schema=my-Jobs`, 'default')
    await client.query('BEGIN')
    const options = { idempotencyKey: 'k' }
    const job = await other.enqueueTx(client, task, 1, options)
    expect((await other.enqueueTx(client, task, 1, options)).id).toBe(job.id)
    await client.query('COMMIT')
    expect(await other.get(job.id)).toMatchObject({ state: 'queued' })
    expect(await hf.get(job.id)).toBeNull()
    await other.close()
  })

  it('C048 a pooler that gives each transaction another connection makes no difference', async () => {
    const pooler = await TransactionPooler.start({ upstream: server.port, connections: 2 })
    const url = place.location.replace(`:${server.port}/`, `:${pooler.port}/`)
    const clients = [await another(url), await another(url)]
    for (let round = 1; round <= 3; round += 1) {
      for (const pooled of clients) {
        await pooled.query('BEGIN')
        await hf.enqueueTx(pooled, task, round)
      }
      const [first, second] = clients
      await first?.query('COMMIT')
      await second?.query('ROLLBACK')
      expect(await total()).toBe(round)
    }
    for (const pooled of clients) await pooled.end()
    await pooler.close()
  })

  it('a role that may not write jobs is told so, and needs no more than the rights that docs/transactions.md names', async () => {
    const { client: admin } = place
    await admin.query("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD 'guest'")
    await admin.query('GRANT USAGE ON SCHEMA holdfast TO guest')
    const guest = await another(place.location.replace(/\/\/[^@]+@/, '//guest:guest@'))
    await guest.query('BEGIN')
    expect(await rejection(hf.enqueueTx(guest, task, 1))).toMatchObject({
      code: 'STORE_DENIED',
      details: { sqlState: '42501' },
    })
    await guest.query('ROLLBACK')
    await admin.query('GRANT INSERT ON holdfast.job, holdfast.key TO guest')
    await admin.query(
      'GRANT SELECT ON holdfast.namespace, holdfast.job, holdfast.key, holdfast.archive, holdfast.gate TO guest',
    )
    await guest.query('BEGIN')
    for (const expected of [false, true])
      expect((await hf.enqueueTx(guest, task, 1, { idempotencyKey: 'k' })).deduplicated).toBe(expected)
    await guest.query('COMMIT')
    expect(await total()).toBe(1)
    await guest.end()
    await admin.query('DROP OWNED BY guest; DROP ROLE guest')
  })
})
