/** When the plans of a connection are made anew: after some time, and after something was slow, but not all the time. */
import type { PoolClient } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { PlanAge } from '#dist/src/backends/postgres/plan-age.js'
import type { Limits } from '#dist/src/backends/postgres/wiring.js'
import { lookFor } from '../support/look.ts'
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

/** A link whose time stands still unless the test moves it. */
async function openTimed(limits: Partial<Limits> = {}) {
  const clock = { ms: 0, now: () => Date.now(), monotonic: () => clock.ms }
  const link = await open(`${server.url}?connections=2`, { clock, limits })
  const both = (text: string) => Promise.allSettled([1, 2].map(() => link.query(statement(text), [])))
  /** Both connections at work at once, and `ms` pass meanwhile. */
  const passWhile = async (text: string, ms: number): Promise<void> => {
    const work = both(text)
    await lookFor('both at work', async () => {
      const rows = await server.query(
        "SELECT FROM pg_stat_activity WHERE application_name = 'holdfast' AND wait_event = 'PgSleep'",
      )
      return rows.length === 2 ? true : undefined
    })
    clock.ms += ms
    await work
  }
  return { both, passWhile }
}

it('after a slow statement the next one is planned anew on each connection, once', async () => {
  const before = await discards()
  const { both, passWhile } = await openTimed()
  await both('SELECT 1')
  await passWhile('SELECT pg_sleep(0.3)', 10)
  await both('SELECT 1')
  expect(await discards()).toBe(before)
  await passWhile('SELECT pg_sleep(0.3)', 30)
  for (let round = 0; round < 3; round += 1) await both('SELECT 1')
  expect(await discards()).toBe(before + 2)
})

it('after one that was stopped for its slowness too', async () => {
  const before = await discards()
  const { both, passWhile } = await openTimed({ statementMs: 300, repeatMs: 0 })
  await passWhile('SELECT pg_sleep(60)', 300)
  await both('SELECT 1')
  expect(await discards()).toBe(before + 2)
})
