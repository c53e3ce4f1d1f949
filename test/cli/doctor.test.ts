/** `holdfast doctor` on stores that lack something: what is wrong is named, with what to do, and the exit code says so. */
import { randomBytes } from 'node:crypto'
import { connect, defineJob, HoldfastError, handle } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NEEDED_COMMANDS } from '#dist/src/backends/redis/rights.js'
import { OpenError } from '#dist/src/cli/command.js'
import { describeError } from '#dist/src/cli/failure.js'
import { aclRules, CONDITIONAL, redisCommands } from '../../scripts/redis-commands.mjs'
import { openBackend } from '../redis/support.ts'
import { runInProcess } from '../support/cli.ts'
import { ServerClock } from '../support/clock/server-clock.ts'
import { freePort } from '../support/free-port.ts'
import { lookFor } from '../support/look.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { announce, beatOf } from '../support/protocol.ts'
import { RedisServer } from '../support/redis-server.ts'
import { silent } from '../support/silent.ts'

interface Check {
  readonly name: string
  readonly status: string
  readonly found: string
  readonly advice: string | null
}

async function doctor(url: string, namespace = 'default') {
  const env = { HOLDFAST_URL: url, HOLDFAST_LOG: 'silent' }
  const { code, stdout } = await runInProcess(['doctor', '--json', '--namespace', namespace], env)
  const { ok, checks } = JSON.parse(stdout) as { readonly ok: boolean; readonly checks: readonly Check[] }
  expect(ok).toBe(code === 0)
  return { code, checks, check: (name: string) => checks.find((each) => each.name === name) }
}

const fresh = (): string => `d-${randomBytes(5).toString('hex')}`

describe('Redis', () => {
  let clock: ServerClock
  let server: RedisServer
  let kept: RedisServer
  beforeAll(async () => {
    clock = await ServerClock.make()
    server = await RedisServer.start()
    kept = await RedisServer.start({ appendOnly: true, appendFsync: 'always', env: clock.env })
  })
  afterAll(async () => {
    await server.stop()
    await kept.stop()
    await clock.remove()
  })

  it('that keeps nothing is wrong; one that does is in order', async () => {
    const lost = await doctor(server.url)
    expect(lost.code).toBe(1)
    expect(lost.check('durability')).toMatchObject({ status: 'wrong', found: 'none' })
    expect(lost.check('durability')?.advice).toMatch(/appendonly yes/)
    const { code, check, checks } = await doctor(kept.url, fresh())
    expect([code, checks.filter(({ status }) => status !== 'ok')]).toEqual([0, []])
    expect(check('clock of the store')?.found).toBe('the same as here')
    expect(check('rights')?.found).toBe('all that are needed')
    expect(check('keyspace')?.found).toBe('1')
    expect(check('versions')?.found).toMatch(/^holdfast \d+\.\d+\.\d+/)
  })

  it('whose clock is off is told by how much', async () => {
    clock.set(5_000)
    expect((await doctor(kept.url, fresh())).check('clock of the store')).toMatchObject({
      status: 'note',
      found: expect.stringMatching(/^(5(\.\d)?|4\.9) s ahead of this machine$/),
    })
    clock.set(-120_000)
    const { code, check } = await doctor(kept.url, fresh())
    clock.set(0)
    expect(code).toBe(1)
    expect(check('clock of the store')).toMatchObject({ status: 'wrong', found: expect.stringMatching(/2 min behind/) })
  })

  it('of which the user lacks a right: all that are missing, by name', async () => {
    const isHint = (name: string): boolean => ['publish', 'subscribe'].includes(name)
    expect(NEEDED_COMMANDS).toEqual(
      redisCommands().filter((name) => !Object.hasOwn(CONDITIONAL, name) && !isHint(name)),
    )
    const missing = ['zcard', 'blpop', 'hincrby']
    const namespace = fresh()
    const rules = aclRules(
      namespace,
      redisCommands().filter((name) => !missing.includes(name)),
    )
    await kept.command('ACL', 'SETUSER', 'poor', 'reset', 'on', '>pw', ...rules.split(' '))
    const { code, check } = await doctor(`redis://poor:pw@127.0.0.1:${kept.port}`, namespace)
    expect(code).toBe(1)
    expect(check('rights')).toMatchObject({ status: 'wrong', found: 'missing: +blpop, +hincrby, +zcard' })
    expect(check('rights')?.advice).toMatch(/ACL SETUSER/)
  })

  it('with work for nobody, and with workers of another release', async () => {
    const namespace = fresh()
    const hf = await connect(kept.url, { namespace, logger: silent })
    const raw = await openBackend(kept.url, namespace)
    await hf.enqueue('task', null, { queue: 'lonely' })
    await hf.enqueue('task', null, { queue: 'served' })
    await announce(raw, [beatOf('old', { lanes: ['served'], version: '0.0.1' }), beatOf('dies', { lanes: ['lonely'] })])
    clock.set(30_000)
    await announce(raw, [beatOf('old', { lanes: ['served'], version: '0.0.1' })])
    const young = await doctor(kept.url, namespace)
    expect(young.check('lanes')).toMatchObject({ status: 'note', found: expect.stringMatching(/lonely \(1 ready\)/) })
    expect(young.check('lanes')?.found).not.toContain('served')
    expect(young.check('workers')).toMatchObject({ status: 'note', found: '1 live, 1 not heard of: dies' })
    expect(young.check('versions')).toMatchObject({
      status: 'note',
      found: expect.stringMatching(/live workers with 0\.0\.1$/),
    })
    clock.set(70_000)
    await announce(raw, [beatOf('old', { lanes: ['served'], version: '0.0.1' })])
    const old = await doctor(kept.url, namespace)
    expect(old.check('lanes')).toMatchObject({ status: 'wrong', advice: 'start workers for these lanes' })
    await hf.pause('lonely')
    expect((await doctor(kept.url, namespace)).check('lanes')).toMatchObject({
      status: 'note',
      found: 'paused with ready jobs: lonely (1)',
    })
    clock.set(0)
    await raw.close()
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

  it('of which the role lacks rights: all that are missing, by name', async () => {
    const database = await server.createDatabase()
    const owner = server.urlOf({ database })
    expect((await runInProcess(['migrate', '--role', 'app'], { HOLDFAST_URL: owner })).code).toBe(0)
    const url = server.urlOf({ database, user: 'app', password: 'pw' })
    expect((await doctor(url)).check('rights')).toMatchObject({ status: 'ok' })
    await server.query('REVOKE UPDATE ON holdfast.job FROM app; REVOKE ALL ON holdfast.worker FROM app', [], {
      database,
    })
    const { code, check } = await doctor(url)
    expect(code).toBe(1)
    expect(check('rights')).toMatchObject({
      status: 'wrong',
      found: 'missing: UPDATE on job, DELETE on worker, INSERT on worker, SELECT on worker, UPDATE on worker',
    })
    expect(check('rights')?.advice).toMatch(/holdfast migrate --role/)
    expect(check('workers')).toMatchObject({ status: 'wrong' })
  })

  it('whose table of jobs is locked is asked everything at once, and not one thing after the other', async () => {
    const database = await server.createDatabase()
    const url = server.urlOf({ database })
    expect((await runInProcess(['migrate'], { HOLDFAST_URL: url })).code).toBe(0)
    const rival = await server.connect({ database })
    await rival.query('BEGIN; LOCK TABLE holdfast.job')
    const examined = doctor(url)
    await lookFor('each connection of the store waits', async () => {
      const waiting = await server.query('SELECT FROM pg_locks WHERE NOT granted')
      return waiting.length === 4 || undefined
    })
    await rival.query('ROLLBACK')
    await rival.end()
    const { code, check } = await examined
    expect([code, check('writable')?.status]).toEqual([0, 'ok'])
    // What the doctor puts there itself is no job of anybody.
    expect([check('newest job')?.found, check('lanes')?.found]).toEqual([
      'none',
      '0, none with ready jobs and no worker',
    ])
  })
})

it('a store that keeps nothing because it was asked for is a note', async () => {
  const { code, check } = await doctor('memory:')
  expect([code, check('durability')?.status]).toEqual([0, 'note'])
})

describe('a store that cannot be opened', () => {
  const opening = (code: ConstructorParameters<typeof HoldfastError>[0], details = {}) =>
    describeError(new OpenError('', { cause: new HoldfastError(code, 'as said', { details }) })).code

  it('ends commands with 1 when it may be there again, with 2 when it was named wrong', () => {
    expect(opening('STORE_UNAVAILABLE', { server: 'localhost:1' })).toBe(1)
    expect(opening('STORE_TIMEOUT')).toBe(1)
    expect(opening('STORE_UNAVAILABLE', { path: '/no/such/folder' })).toBe(2)
    expect(opening('STORE_DENIED', { server: 'localhost:1' })).toBe(2)
    expect(opening('INVALID_URL')).toBe(2)
  })

  it('such as a server that is not there', async () => {
    const url = `redis://127.0.0.1:${await freePort()}`
    const [stats, examined] = await Promise.all([runInProcess(['stats'], { HOLDFAST_URL: url }), doctor(url)])
    expect([stats.code, stats.stdout]).toEqual([1, ''])
    expect(stats.stderr).toMatch(/^holdfast: .*127\.0\.0\.1.*\(STORE_UNAVAILABLE\)\n$/)
    expect(examined.code).toBe(1)
    expect(examined.check('store opens')).toMatchObject({
      status: 'wrong',
      advice: expect.stringMatching(/start the server/),
    })
  })
})

it('a worker that works makes its lane served', async () => {
  const hf = await connect('memory:doctor', { logger: silent })
  await hf.worker({ handlers: [handle(defineJob('task'), () => {})] })
  expect((await doctor('memory:doctor')).check('lanes')).toMatchObject({ status: 'ok' })
  await hf.close()
})
