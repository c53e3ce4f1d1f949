/**
 * The store answers whoever asks how it is, and refuses the claims of a worker: `health()` is not ok and says why, and is ok again
 * when that is mended, without a restart.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { connect, defineJob, type Health, type Holdfast, handle } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SqliteBackend } from '#dist/src/backends/sqlite/backend.js'
import { connectWith } from '#dist/src/client.js'
import { systemClock, systemTimers } from '#dist/src/clock.js'
import { systemRandom } from '#dist/src/random.js'
import { aclRules, redisCommands } from '../../scripts/redis-commands.mjs'
import { eventually } from '../support/event.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { RedisServer } from '../support/redis-server.ts'
import { silent } from '../support/silent.ts'
import { storeOptions } from '../support/store-options.ts'

const task = defineJob<number, number>('task')

const healthThat = (hf: Holdfast, is: (health: Health) => boolean, what: string): Promise<Health> =>
  eventually(async () => {
    const startedAt = performance.now()
    const health = await hf.health()
    expect(performance.now() - startedAt).toBeLessThan(2_500)
    return is(health) && health
  }, what)

interface Denial {
  readonly code: RegExp
  deny(): Promise<void>
  allow(): Promise<void>
  /** Whether the store answers meanwhile. */
  readonly isStoreOk: boolean
}

async function refusedAndMended(hf: Holdfast, { code, deny, allow, isStoreOk }: Denial): Promise<void> {
  await hf.worker({ handlers: [handle(task, (n) => n + 1)], poll: 50, id: 'claimer' })
  expect(await (await hf.enqueue(task, 1)).result({ timeout: '10s' })).toBe(2)
  await healthThat(hf, ({ ok }) => ok, 'a healthy worker')
  await deny()
  const ill = await healthThat(hf, ({ ok, claiming }) => !ok && !claiming.ok, 'claims that fail')
  expect(ill.problems.join('\n')).toMatch(code)
  expect(ill.claiming.failuresInARow).toBeGreaterThan(0)
  if (isStoreOk) expect(ill.store).toMatchObject({ ok: true, error: null })
  expect(JSON.parse(JSON.stringify(ill))).toEqual(ill)
  await allow()
  const well = await healthThat(hf, ({ ok }) => ok, 'claims that work again')
  expect(well.problems).toEqual([])
  expect(well.claiming.each).toMatchObject([{ workerId: 'claimer', ok: true, failuresInARow: 0, lastError: null }])
  expect(await (await hf.enqueue(task, 2)).result({ timeout: '10s' })).toBe(3)
}

describe('Redis', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await RedisServer.start()
    await server.command('ACL', 'SETUSER', 'app', 'on', '>pw', ...aclRules('health', redisCommands()).split(' '))
  })
  afterAll(() => server.stop())

  it('does not permit its user to run scripts any more', async () => {
    const hf = await connect(`redis://app:pw@127.0.0.1:${server.port}`, { namespace: 'health', logger: silent })
    const permit = async (rule: string): Promise<void> => {
      await server.command('ACL', 'SETUSER', 'app', rule)
    }
    await refusedAndMended(hf, {
      code: /evalsha/i,
      deny: () => permit('-evalsha'),
      allow: () => permit('+evalsha'),
      isStoreOk: true,
    })
    await hf.close()
  })
})

describe('PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
    await server.query("CREATE ROLE app LOGIN PASSWORD 'pw'")
  })
  afterAll(() => server.stop())

  it('does not permit its role to change jobs any more', async () => {
    const database = await server.createDatabase()
    const owner = await connect(server.urlOf({ database }), { logger: silent })
    await owner.close()
    const run = (text: string) => server.query(text, [], { database })
    await run(
      `GRANT USAGE ON SCHEMA holdfast TO app; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO app`,
    )
    const hf = await connect(server.urlOf({ database, user: 'app', password: 'pw' }), { logger: silent })
    await refusedAndMended(hf, {
      code: /permi/i,
      deny: async () => void (await run('REVOKE UPDATE ON holdfast.job FROM app')),
      allow: async () => void (await run('GRANT UPDATE ON holdfast.job TO app')),
      isStoreOk: true,
    })
    await hf.close()
  })
})

describe('SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-health-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  it('is locked by another process', async () => {
    const path = join(folder, 'jobs.db')
    const backend = await SqliteBackend.open({ ...storeOptions('default'), path, busyDeadlineMs: 100 })
    const platform = { clock: systemClock, timers: systemTimers, random: systemRandom }
    const hf = connectWith({ ...platform, backend, options: { logger: silent } })
    const other = new Database(path)
    await refusedAndMended(hf, {
      code: /busy|locked/i,
      deny: async () => void other.exec('BEGIN IMMEDIATE'),
      allow: async () => void other.exec('COMMIT'),
      isStoreOk: false,
    })
    other.close()
    await hf.close()
  })
})
