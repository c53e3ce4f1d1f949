/** Behind a pooler that gives each transaction another connection: nothing of a session is relied on, and that is found out. */
import { Pool } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { locationOfPool } from '#dist/src/backends/postgres/caller-pool.js'
import type { PostgresLink } from '#dist/src/backends/postgres/link.js'
import { eventually } from '../support/event.ts'
import { TransactionPooler } from '../support/pooler.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { FaultProxy } from '../support/proxy.ts'
import { open, statement, type Warning } from './opening.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.stop())
beforeEach(() => server.query('DROP TABLE IF EXISTS t; CREATE TABLE t (n int)'))

const ADD = statement('INSERT INTO t VALUES ($1)')
const startPooler = (upstream = server.port): Promise<TransactionPooler> =>
  TransactionPooler.start({ upstream, connections: 3 })

/** 200 statements of three texts by ten callers, each told to be done once. */
async function fill(link: PostgresLink): Promise<void> {
  const texts = [0, 1, 2].map((more) => statement(`INSERT INTO t SELECT $1::int4 + ${more}`))
  const callers = Array.from({ length: 10 }, async (_, caller) => {
    for (let round = 0; round < 20; round += 1) await link.query(texts[round % 3] ?? ADD, [caller])
  })
  await Promise.all(callers)
  await link.transaction(async (query) => {
    await query(ADD, [1])
    await query(ADD, [2])
  })
  expect(await server.query('SELECT count(*)::int4 AS n FROM t')).toEqual([{ n: 202 }])
}

describe('a transaction pooler', () => {
  it('that refuses settings is found out by that', async () => {
    const pooler = await startPooler()
    const warnings: Warning[] = []
    const link = await open(server.urlOf({ port: pooler.port }), {}, warnings)
    expect(link.facts).toMatchObject({ isPooled: true, repeats: 0 })
    expect(warnings).toEqual([{ code: 'POOLER', message: expect.stringContaining('pooler=transaction') }])
    await fill(link)
    expect(link.facts.repeats).toBe(0)
    await link.close()
    await pooler.close()
  })

  it('that is not seen at once is found out by the first statement that has lost its name', async () => {
    const pooler = await startPooler()
    const warnings: Warning[] = []
    const pool = new Pool({ connectionString: server.urlOf({ port: pooler.port }) })
    const link = await open(locationOfPool(pool), {}, warnings)
    expect(link.facts.isPooled).toBe(false)
    await fill(link)
    expect(link.facts.isPooled).toBe(true)
    expect(link.facts.repeats).toBeGreaterThan(0)
    expect(warnings).toEqual([{ code: 'POOLER', message: expect.stringMatching(/26000|42P05/) }])
    await link.close()
    await pool.end()
    await pooler.close()
  })

  it('that was told of is not warned of', async () => {
    const pooler = await startPooler()
    const warnings: Warning[] = []
    const parameters = { pooler: 'transaction' }
    const link = await open(server.urlOf({ port: pooler.port, parameters }), {}, warnings)
    await fill(link)
    expect(link.facts).toMatchObject({ isPooled: true, repeats: 0 })
    expect(warnings).toEqual([])
    await link.close()
    await pooler.close()
  })

  it('that leads to another server without a word is noticed within a second or so', async () => {
    const other = await PostgresServer.start()
    const proxy = await FaultProxy.start({ upstream: server.port })
    const pooler = await startPooler(proxy.port)
    const link = await open(
      server.urlOf({ port: pooler.port, parameters: { pooler: 'transaction', connections: '1' } }),
    )
    let told = 0
    link.onChange(async () => {
      told += 1
    })
    await link.query(statement('SELECT 1'), [])
    proxy.retarget(other)
    proxy.reset()
    await eventually(
      () =>
        link.query(statement('SELECT 1'), []).then(
          () => told > 0,
          () => false,
        ),
      'the news',
    )
    expect(told).toBe(1)
    await link.close()
    await pooler.close()
    await proxy.close()
    await other.stop()
  })
})
