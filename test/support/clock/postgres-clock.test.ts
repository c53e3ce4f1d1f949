/** The clock of a PostgreSQL server moves as it is told, and what the server times by real time is not disturbed by it. */
import type { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { rejection, within } from '../event.ts'
import { lookFor } from '../look.ts'
import { PostgresServer } from '../postgres-server.ts'
import { ServerClock } from './server-clock.ts'

const HOUR = 3_600_000
const MILLIS = `(extract(epoch FROM clock_timestamp()) * 1000)::float8`

let clock: ServerClock
let server: PostgresServer
const clients: Client[] = []

beforeAll(async () => {
  clock = await ServerClock.make()
  server = await PostgresServer.start({ env: clock.env })
})
afterAll(async () => {
  await server.stop()
  await clock.remove()
})
afterEach(async () => {
  clock.set(0)
  await Promise.all(clients.splice(0).map((client) => client.end()))
})

async function connect(): Promise<Client> {
  const client = await server.connect()
  clients.push(client)
  return client
}

async function time(client: Client): Promise<number> {
  const { rows } = await client.query<{ ms: number }>(`SELECT ${MILLIS} AS ms`)
  return Number(rows[0]?.ms)
}

/** How far the server's clock is from ours, in milliseconds. */
const shiftOf = async (client: Client): Promise<number> => (await time(client)) - Date.now()

interface Wait {
  /** How the statement that waits ended. */
  readonly ended: Promise<Error & { code?: string }>
}

/** A statement that waits for a lock, for ever if the setting does not end it. */
async function wait(setting: string): Promise<Wait> {
  const [holder, waiter] = [await connect(), await connect()]
  await holder.query('SELECT pg_advisory_lock(1)')
  await waiter.query(`SET ${setting}`)
  const ended = rejection(waiter.query('SELECT pg_advisory_lock(1)'))
  await lookFor('the wait', async () => {
    const { rowCount } = await holder.query("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    return rowCount === 1 || undefined
  })
  return { ended }
}

const isPending = async (work: Promise<unknown>, ms: number): Promise<boolean> =>
  (await rejection(within(work.then(), 'an end', ms))).message.startsWith('an end: not within')

describe('the clock of PostgreSQL', () => {
  it('moves on open connections and on new ones, forth and back, also after a restart', async () => {
    const client = await connect()
    expect(Math.abs(await shiftOf(client))).toBeLessThan(1000)
    clock.advance(HOUR)
    expect(Math.abs((await shiftOf(client)) - HOUR)).toBeLessThan(1000)
    expect(Math.abs((await shiftOf(await connect())) - HOUR)).toBeLessThan(1000)
    clock.set(-HOUR)
    expect(Math.abs((await shiftOf(client)) + HOUR)).toBeLessThan(1000)
    await server.restart()
    expect(Math.abs((await shiftOf(await connect())) + HOUR)).toBeLessThan(1000)
  })

  it('stands still where it is frozen, for the server as for the test', async () => {
    const client = await connect()
    clock.freeze(1_800_000_000_123)
    expect(await time(client)).toBe(1_800_000_000_123)
    expect(await time(await connect())).toBe(1_800_000_000_123)
    clock.advance(-124)
    expect(await time(client)).toBe(1_799_999_999_999)
    const { rows } = await client.query("SELECT now() = clock_timestamp() AND now() < '2027-01-15 08:00Z' AS same")
    expect(rows).toEqual([{ same: true }])
  })

  it('lets the server start and end in order while it stands still', async () => {
    clock.freeze(1_800_000_000_000)
    await server.restart()
    expect(await time(await connect())).toBe(1_800_000_000_000)
    await server.restart('immediate')
    expect(await time(await connect())).toBe(1_800_000_000_000)
  })
})

describe('timeouts under such a clock', () => {
  it.each([
    ['statement_timeout = 300', '57014'],
    ['lock_timeout = 300', '55P03'],
  ])('%s ends a wait while the clock stands still, or has gone back', async (setting, code) => {
    clock.freeze(1_800_000_000_000)
    expect(await (await wait(setting)).ended).toMatchObject({ code })
    await Promise.all(clients.splice(0).map((client) => client.end()))
    clock.set(0)
    const { ended } = await wait(setting)
    clock.set(-HOUR)
    expect(await within(ended, 'the end')).toMatchObject({ code })
  })

  it('a clock that goes ahead ends no statement early', async () => {
    const { ended } = await wait('statement_timeout = 2000')
    clock.advance(HOUR)
    expect(await isPending(ended, 500)).toBe(true)
    expect(await within(ended, 'the end')).toMatchObject({ code: '57014' })
  })

  it('a statement has its whole time, though a timer of an earlier one fires meanwhile', async () => {
    clock.freeze(1_800_000_000_000)
    const [holder, waiter] = [await connect(), await connect()]
    await holder.query('SELECT pg_advisory_lock(1)')
    await waiter.query('SET statement_timeout = 1000')
    await waiter.query('SELECT 1')
    const never = new Promise(() => {})
    expect(await isPending(never, 600)).toBe(true)
    const ended = rejection(waiter.query('SELECT pg_advisory_lock(1)'))
    expect(await isPending(ended, 700)).toBe(true)
    expect(await within(ended, 'the end')).toMatchObject({ code: '57014' })
  })

  it('a deadlock is found while the clock stands still', async () => {
    clock.freeze(1_800_000_000_000)
    const [one, other] = [await connect(), await connect()]
    await one.query('SELECT pg_advisory_lock(1)')
    await other.query('SELECT pg_advisory_lock(2)')
    const waits = [one.query('SELECT pg_advisory_lock(2)'), other.query('SELECT pg_advisory_lock(1)')]
    expect(await rejection(within(Promise.race(waits), 'the end'))).toMatchObject({ code: '40P01' })
    await server.query('SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted')
    await Promise.allSettled(waits)
  })
})
