/** The thread that renews leases of a PostgreSQL store: its connection, its end, and pools whose options cannot cross to it. */
import { randomBytes } from 'node:crypto'
import { connect, type Holdfast } from 'holdfast'
import { Pool, type PoolConfig } from 'pg'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { targetOfPool } from '#dist/src/backends/postgres/caller-pool.js'
import { Child } from '../support/child.ts'
import { connectionIsCut, type KeeperStage, keeperOf, threadDies } from '../support/keeper-scene.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { silent } from '../support/silent.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.stop())

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function opened(where: string | Pool, namespace: string, logger = silent): Promise<Holdfast> {
  const hf = await connect(where, { namespace, logger })
  closers.push(() => hf.close())
  return hf
}

function stage(): KeeperStage {
  const namespace = `t${randomBytes(5).toString('hex')}`
  return {
    client: () => opened(server.url, namespace),
    child: (script, ...args) => {
      const child = new Child(script, [server.url, namespace, ...args], { HOLDFAST_LOG: 'silent' })
      closers.push(() => child.kill())
      return child
    },
  }
}

const OWN = "FROM pg_stat_activity WHERE application_name = 'holdfast leases'"

it('F5 the thread is terminated: it is replaced, and meanwhile the main loop renews', async () => {
  await threadDies(stage())
})

it('F17 the connection of the thread is cut while the main loop is blocked: it renews over the next one', async () => {
  await connectionIsCut(stage(), async () => {
    const cut = await server.query(`SELECT pg_terminate_backend(pid) ${OWN}`)
    expect(cut.length).toBeGreaterThan(0)
  })
})

it('the thread has one connection, and none once the client is closed', async () => {
  const child = stage().child('keeper.mjs', 'spin', '0', '{}')
  await child.line('ready')
  expect(await server.query(`SELECT pid ${OWN}`)).toHaveLength(1)
  child.tell('stop')
  expect(await child.line('threads')).toBe('threads 0')
  expect(await server.query(`SELECT pid ${OWN}`)).toEqual([])
})

it("a caller's pool in plain data has its thread; one with a function in it is renewed on the main loop, and it is said", async () => {
  const warned: string[] = []
  const logger = pino(
    { level: 'warn' },
    { write: (line: string) => warned.push((JSON.parse(line) as { code: string }).code) },
  )
  const poolOf = (config: PoolConfig): Pool => {
    const pool = new Pool(config)
    closers.push(() => pool.end())
    return pool
  }
  const { hostname: host, port, username: user, password, pathname } = new URL(server.url)
  const parts = { host, port: Number(port), user, password: decodeURIComponent(password), database: pathname.slice(1) }
  expect(await keeperOf(await opened(poolOf(parts), 'pool', logger))).toEqual(['thread', 'thread'])
  expect(await keeperOf(await opened(poolOf({ connectionString: server.url }), 'pool', logger))).toEqual([
    'thread',
    'thread',
  ])
  expect(warned).toEqual([])
  const lively = poolOf({ ...parts, password: () => parts.password })
  expect(await keeperOf(await opened(lively, 'pool', logger))).toEqual(['main', 'main'])
  expect(warned).toEqual(['LEASE_KEEPER'])
})

it('where a pool goes is read with its key and password, which the driver hides', async () => {
  const ssl = { ca: 'ca', key: 'key', cert: 'cert' }
  const pool = new Pool({ host: 'h', port: 7, user: 'u', password: 's3cr3t', database: 'd', ssl })
  expect(structuredClone(targetOfPool(pool))).toMatchObject({
    target: { endpoints: [{ host: 'h', port: 7 }], user: 'u', password: 's3cr3t', database: 'd' },
    tls: { ca: 'ca', key: 'key', cert: 'cert' },
  })
  for (const config of [{ stream: () => {} }, { connectionString: 'postgres://h?unknown=1' }, { Client: class {} }]) {
    expect(targetOfPool(new Pool(config as never))).toBeNull()
  }
})
