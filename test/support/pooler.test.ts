/** The transaction pooler of tests, seen by the driver: what works behind it, and what is lost. */
import { Client, type ClientConfig } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually, gate, rejection, within } from './event.ts'
import { lookFor } from './look.ts'
import { TransactionPooler } from './pooler.ts'
import { PostgresServer } from './postgres-server.ts'

let server: PostgresServer
let pooler: TransactionPooler
const clients: Client[] = []

beforeAll(async () => {
  server = await PostgresServer.start()
  await server.query('CREATE TABLE t (n int)')
})
afterAll(() => server.stop())
beforeEach(async () => {
  await server.query('TRUNCATE t')
  pooler = await TransactionPooler.start({ upstream: server.port, connections: 2 })
})
afterEach(async () => {
  for (const client of clients.splice(0)) void client.end().catch(() => {})
  await pooler.close()
})

async function open(config: ClientConfig = {}): Promise<Client> {
  const client = new Client({ connectionString: server.urlOf({ port: pooler.port }), ...config })
  client.on('error', () => {})
  clients.push(client)
  await client.connect()
  return client
}

async function pidOf(client: Client): Promise<number> {
  return (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid ?? 0
}

const count = async (): Promise<unknown> => (await server.query('SELECT count(*)::int AS n FROM t'))[0]?.n

describe('the transaction pooler', () => {
  it('serves more clients than it has connections, and greets them as the server does', async () => {
    const some = await Promise.all(Array.from({ length: 8 }, () => open()))
    await Promise.all(some.map((client, n) => client.query('INSERT INTO t VALUES ($1)', [n])))
    expect(await count()).toBe(8)
    expect(pooler.connections).toEqual({ clients: 8, backends: 2 })
    await some[0]?.end()
    await eventually(() => pooler.connections.clients === 7, 'one has left')
  })

  it('gives each transaction another connection, and one to each', async () => {
    const client = await open()
    const pids = [await pidOf(client), await pidOf(client), await pidOf(client)]
    expect(pids[0]).not.toBe(pids[1])
    expect(pids[0]).toBe(pids[2])
    await client.query('BEGIN')
    const inside = await pidOf(client)
    await client.query('INSERT INTO t VALUES (1)')
    expect(await rejection(client.query('SELECT 1/0'))).toMatchObject({ code: '22012' })
    expect(await rejection(pidOf(client))).toMatchObject({ code: '25P02' })
    await client.query('ROLLBACK')
    expect(await pidOf(client)).not.toBe(inside)
    expect(await count()).toBe(0)
  })

  it('lets a client wait while all connections are in transactions', async () => {
    const [one, two, three] = [await open(), await open(), await open()]
    await Promise.all([one.query('BEGIN'), two.query('BEGIN')])
    const late = pidOf(three)
    expect((await rejection(within(late, 'a turn', 100))).message).toContain('not within')
    const pid = await pidOf(one)
    await one.query('COMMIT')
    expect(await late).toBe(pid)
    await two.query('COMMIT')
  })

  it('forgets what a session set or listened to', async () => {
    const client = await open()
    const notices: string[] = []
    client.on('notification', ({ channel }) => notices.push(channel))
    const direct = await server.connect()
    const isTold = gate()
    direct.on('notification', () => isTold.open())
    await direct.query('LISTEN c')
    await client.query('LISTEN c')
    const heard = await client.query('SELECT pg_listening_channels() AS name')
    expect(heard.rows).toEqual([])
    await server.query("NOTIFY c, 'told'")
    await isTold.passed
    for (let n = 0; n < 4; n += 1) await pidOf(client)
    expect(notices).toEqual([])
    await client.query("SET application_name = 'mine'")
    expect((await client.query('SHOW application_name')).rows).toEqual([{ application_name: '' }])
    await direct.end()
  })

  it('breaks statements that are prepared under a name', async () => {
    const named = { name: 'add', text: 'INSERT INTO t VALUES (1)' }
    const [one, other] = [await open(), await open()]
    await one.query(named)
    expect(await rejection(one.query(named))).toMatchObject({ code: '26000' })
    expect(await rejection(other.query(named))).toMatchObject({ code: '42P05' })
    for (let n = 0; n < 3; n += 1) await other.query('INSERT INTO t VALUES ($1)', [n])
    expect(await count()).toBe(4)
  })

  it('refuses parameters of the login that it does not know', async () => {
    const settings: ClientConfig[] = [{ statement_timeout: 1000 }, { lock_timeout: 1000 }, { options: '-c geqo=off' }]
    for (const config of settings) {
      const error = await rejection(open(config))
      expect(error).toMatchObject({ code: '08P01' })
      expect(error.message).toMatch(/^unsupported startup parameter: (statement_timeout|lock_timeout|options)$/)
    }
    await pidOf(await open({ application_name: 'known' }))
  })

  it('ends the transaction of a client that goes away', async () => {
    const client = await open()
    await client.query('BEGIN')
    await client.query('LOCK TABLE t')
    await client.end()
    await lookFor('the lock', async () => ((await count()) === 0 ? true : undefined))
    await eventually(() => pooler.connections.backends <= 1, 'its connection is gone')
    await pidOf(await open())
  })

  it('tells clients that the server is gone, and works again when it is back', async () => {
    const [idle, busy] = [await open(), await open()]
    await busy.query('BEGIN')
    const told = new Promise<unknown>((resolve) => busy.once('error', resolve))
    await server.restart('immediate')
    expect(await within(told, 'the loss')).toMatchObject({ code: expect.stringMatching(/^(57P0[12]|08P01)$/) })
    await lookFor('a new connection', () => pidOf(idle))
    const missing = server.urlOf({ port: pooler.port, database: 'missing' })
    expect(await rejection(open({ connectionString: missing }))).toMatchObject({ code: '08006' })
  })
})
