/** Behind a pooler that gives each transaction another connection: nothing of a session is relied on, and that is found out. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { PostgresLink } from '#dist/src/backends/postgres/link.js'
import { eventually } from '../support/event.ts'
import { TransactionPooler } from '../support/postgres-pooler.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { open, statement, type Warning } from './opening.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.stop())
beforeEach(() => server.query('DROP TABLE IF EXISTS t; CREATE TABLE t (n int)'))

const ADD = statement('INSERT INTO t VALUES ($1)')
const startPooler = (ignoresSettings: boolean): Promise<TransactionPooler> =>
  TransactionPooler.start({ upstream: server.port, user: 'holdfast', database: 'postgres', ignoresSettings })

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
    const pooler = await startPooler(false)
    const warnings: Warning[] = []
    const link = await open(server.urlOf({ port: pooler.port }), {}, warnings)
    expect(link.facts).toMatchObject({ isPooled: true, repeats: 0 })
    expect(warnings).toEqual([{ code: 'POOLER', message: expect.stringContaining('pooler=transaction') }])
    await fill(link)
    expect(link.facts.repeats).toBe(0)
    await link.close()
    await pooler.stop()
  })

  it('that takes settings and forgets them is found out by the first statement that has lost its name', async () => {
    const pooler = await startPooler(true)
    const warnings: Warning[] = []
    const link = await open(server.urlOf({ port: pooler.port }), {}, warnings)
    expect(link.facts.isPooled).toBe(false)
    await fill(link)
    expect(link.facts.isPooled).toBe(true)
    expect(link.facts.repeats).toBeGreaterThan(0)
    expect(warnings).toEqual([{ code: 'POOLER', message: expect.stringMatching(/26000|42P05/) }])
    await link.close()
    await pooler.stop()
  })

  it('that was told of is not warned of', async () => {
    const pooler = await startPooler(false)
    const warnings: Warning[] = []
    const parameters = { pooler: 'transaction' }
    const link = await open(server.urlOf({ port: pooler.port, parameters }), {}, warnings)
    await fill(link)
    expect(link.facts).toMatchObject({ isPooled: true, repeats: 0 })
    expect(warnings).toEqual([])
    await link.close()
    await pooler.stop()
  })

  it('that leads to another server without a word is noticed within a second or so', async () => {
    const other = await PostgresServer.start()
    const pooler = await startPooler(false)
    const link = await open(
      server.urlOf({ port: pooler.port, parameters: { pooler: 'transaction', connections: '1' } }),
    )
    let told = 0
    link.onChange(async () => {
      told += 1
    })
    await link.query(statement('SELECT 1'), [])
    await pooler.reopen(other.port)
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
    await pooler.stop()
    await other.stop()
  })
})
