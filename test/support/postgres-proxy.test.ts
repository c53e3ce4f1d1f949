/** Faults of the proxy before a PostgreSQL server: what the driver sees, and what the server did. */
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually, rejection } from './event.ts'
import { lookFor } from './look.ts'
import { PostgresServer } from './postgres-server.ts'
import { isAnswered, isQuery, isQueryOf } from './postgres-traffic.ts'
import { FaultProxy } from './proxy.ts'

let server: PostgresServer
let proxy: FaultProxy

beforeAll(async () => {
  server = await PostgresServer.start()
  await server.query('CREATE TABLE t (n int, long text)')
})
afterAll(() => server.stop())
beforeEach(async () => {
  await server.query('TRUNCATE t')
  proxy = await FaultProxy.start({ upstream: server.port })
})
afterEach(() => proxy.close())

async function open(timeoutMs = 10_000): Promise<Client> {
  const client = new Client({ connectionString: server.urlOf({ port: proxy.port }), query_timeout: timeoutMs })
  client.on('error', () => {})
  await client.connect()
  return client
}

const count = async (): Promise<number> => Number((await server.query('SELECT count(*) AS n FROM t'))[0]?.n)
const backends = async (): Promise<number> =>
  Number((await server.query("SELECT count(*) AS n FROM pg_stat_activity WHERE backend_type = 'client backend'"))[0]?.n)

const INSERT = { text: 'INSERT INTO t VALUES ($1)', values: [1] }
const LOST = /ECONNRESET|terminated unexpectedly/

describe('the fault proxy before PostgreSQL', () => {
  it('cutReply: COMMIT is done and the client does not hear of it', async () => {
    const client = await open()
    await client.query('BEGIN')
    await client.query(INSERT)
    proxy.set({ mode: 'cutReply', when: isQueryOf('COMMIT'), times: 1 })
    expect((await rejection(client.query('COMMIT'))).message).toMatch(LOST)
    expect(await count()).toBe(1)
    await (await open()).query(INSERT)
    expect(proxy.counters.cut).toBe(1)
  })

  it('cutReply: a statement with a long answer is done when the cut waits for its end', async () => {
    const client = await open()
    proxy.set({ mode: 'cutReply', when: isQuery, until: isAnswered })
    const text = `INSERT INTO t SELECT n, repeat('x', 10000) FROM generate_series(1, $1::int) n RETURNING *`
    expect((await rejection(client.query({ text, values: [300] }))).message).toMatch(LOST)
    expect(await count()).toBe(300)
  })

  it('cutRequest: the client is cut off while the server works, which it finishes', async () => {
    const client = await open()
    proxy.set({ mode: 'cutRequest', when: isQueryOf('INSERT') })
    expect((await client.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }])
    const holder = await server.connect()
    await holder.query('SELECT pg_advisory_lock(1)')
    const text = 'INSERT INTO t SELECT 1 FROM pg_advisory_xact_lock($1)'
    expect((await rejection(client.query({ text, values: [1] }))).message).toMatch(LOST)
    expect(await count()).toBe(0)
    await holder.end()
    await lookFor('the row', async () => (await count()) === 1 || undefined)
  })

  it('cutAfter: a request that arrives in part is not carried out', async () => {
    const client = await open()
    proxy.set({ mode: 'cutAfter', side: 'requests', bytes: 40, when: isQueryOf('INSERT') })
    expect((await rejection(client.query(INSERT))).message).toMatch(LOST)
    await lookFor('the end of its backend', async () => (await backends()) === 1 || undefined)
    expect(await count()).toBe(0)
  })

  it('cutAfter: a reply that arrives in part is of something that was done', async () => {
    for (const bytes of [0, 1, 5, 20]) {
      proxy.set('pass')
      const client = await open()
      proxy.set({ mode: 'cutAfter', side: 'replies', bytes, when: isQuery, times: 1 })
      expect((await rejection(client.query(INSERT))).message).toMatch(LOST)
    }
    expect(await count()).toBe(4)
    expect(proxy.counters.cut).toBe(4)
  })

  it('blackhole: neither side hears anything more, and a later connection works', async () => {
    const client = await open(500)
    await client.query('BEGIN')
    await client.query(INSERT)
    proxy.set('blackhole')
    expect((await rejection(client.query('COMMIT'))).message).toBe('Query read timeout')
    expect(await backends()).toBe(2)
    expect(await count()).toBe(0)
    proxy.set('pass')
    await (await open()).query(INSERT)
    expect(await count()).toBe(1)
  })

  it('dropReplies: the server carries it out and the driver waits', async () => {
    const client = await open(500)
    proxy.set({ mode: 'dropReplies', when: isQuery })
    expect((await rejection(client.query(INSERT))).message).toBe('Query read timeout')
    expect(await count()).toBe(1)
  })

  it('reset: the driver hears of it at rest', async () => {
    const client = await open()
    const lost = new Promise<Error>((resolve) => client.once('error', resolve))
    proxy.reset()
    expect((await lost).message).toMatch(LOST)
    await eventually(() => proxy.connections === 0, 'no connection is left')
  })
})
