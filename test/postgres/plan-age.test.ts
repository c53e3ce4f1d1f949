/** When the plans of a connection are made anew: after some time, and after something was slow, but not all the time. */
import type { PoolClient } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { PlanAge } from '#dist/src/backends/postgres/plan-age.js'
import { PostgresServer } from '../support/postgres-server.ts'
import { open, statement } from './opening.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start({ settings: { log_statement: 'all' } })
})
afterAll(() => server.stop())

it('plans are old after ten seconds, or when something was slow since', () => {
  let now = 0
  const plans = new PlanAge({ monotonic: () => now })
  const [one, other] = [{}, {}] as PoolClient[]
  if (one === undefined || other === undefined) throw new Error('no clients')
  expect(plans.isOld(one)).toBe(false)
  for (const client of [one, other]) plans.renewed(client)
  now = 5000
  plans.took(24)
  expect(plans.isOld(one)).toBe(false)
  plans.took(25)
  expect([plans.isOld(one), plans.isOld(other)]).toEqual([true, true])
  plans.renewed(one)
  expect([plans.isOld(one), plans.isOld(other)]).toEqual([false, true])
  now = 5999
  plans.took(1000)
  expect(plans.isOld(one)).toBe(false)
  now = 6000
  plans.took(1000)
  expect(plans.isOld(one)).toBe(true)
  plans.renewed(one)
  now = 15_999
  expect(plans.isOld(one)).toBe(false)
  now = 16_000
  expect(plans.isOld(one)).toBe(true)
})

const discards = async (): Promise<number> => (await server.log()).split('statement: DISCARD PLANS').length - 1

it('after a slow statement the next one is planned anew on each connection, once', async () => {
  const link = await open(`${server.url}?connections=2`)
  await link.query(statement('SELECT 1'), [])
  expect(await discards()).toBe(0)
  const slow = () => link.query(statement('SELECT pg_sleep(0.05)'), [])
  await Promise.all([slow(), slow()])
  for (let round = 0; round < 3; round += 1) await Promise.all([1, 2].map(() => link.query(statement('SELECT 1'), [])))
  expect(await discards()).toBe(2)
})

it('after one that was stopped for its slowness too', async () => {
  const before = await discards()
  const link = await open(`${server.url}?connections=1`, { limits: { statementMs: 50, repeatMs: 200 } })
  await link.query(statement('SELECT pg_sleep(60)'), []).catch(() => {})
  expect(await discards()).toBe(before + 1)
})
