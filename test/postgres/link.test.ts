/** What a link makes of a server that works: statements, transactions, conflicts, and what it refuses. */
import { Pool } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { locationOfPool } from '#dist/src/backends/postgres/caller-pool.js'
import type { PostgresLink } from '#dist/src/backends/postgres/link.js'
import { eventually, gate, within } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { open, statement, type Warning } from './opening.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.stop())

const ADD = statement('INSERT INTO t VALUES ($1)')
const COUNT = statement('SELECT count(*) AS n FROM t')
const count = async (link: PostgresLink): Promise<unknown> => (await link.query(COUNT, [], 'array')).rows

let url: string
let database: string
beforeEach(async () => {
  database = await server.createDatabase()
  url = server.urlOf({ database })
  await server.query('CREATE TABLE t (n int)', [], { database })
})

describe('a statement', () => {
  it('commits by itself, and gives its rows as objects or as arrays', async () => {
    const link = await open(url)
    expect(await link.query(ADD, [1])).toEqual({ rows: [], count: 1 })
    expect(await link.query(COUNT, [])).toEqual({ rows: [{ n: 1 }], count: 1 })
    expect(await link.query(COUNT, [], 'array')).toEqual({ rows: [[1]], count: 1 })
  })

  it('is prepared once for a connection, under a name that is its own', async () => {
    const link = await open(`${url}?connections=1`)
    for (let time = 0; time < 3; time += 1) await link.query(ADD, [time])
    const known = statement("SELECT name FROM pg_prepared_statements WHERE statement LIKE 'INSERT%'")
    expect((await link.query(known, [])).rows).toEqual([{ name: expect.stringMatching(/^holdfast_[0-9a-f]{20}$/) }])
  })

  it('goes out with settings that hold whatever the database says', async () => {
    await server.query(`ALTER DATABASE ${database} SET default_transaction_isolation = 'serializable'`)
    await server.query(`ALTER DATABASE ${database} SET statement_timeout = 1`)
    const link = await open(url)
    const settings = ['plan_cache_mode', 'jit', 'transaction_isolation', 'statement_timeout', 'application_name']
    const text = `SELECT ${settings.map((name) => `current_setting('${name}') AS ${name}`).join(', ')}`
    expect((await link.query(statement(text), [])).rows).toEqual([
      {
        plan_cache_mode: 'force_generic_plan',
        jit: 'off',
        transaction_isolation: 'read committed',
        statement_timeout: '4s',
        application_name: 'holdfast',
      },
    ])
  })

  it.each([
    ['SELECT * FROM missing', 'UNSUPPORTED', 'refused', '42P01', /holdfast migrate/],
    ['SELECT missing FROM t', 'UNSUPPORTED', 'refused', '42703', /holdfast migrate/],
    ['SELECT * FROM missing.t', 'UNSUPPORTED', 'refused', '42P01', /holdfast migrate/],
    ['SELEC', 'INTERNAL', 'refused', '42601', /syntax error/],
    ["SELECT 'sesame'::int", 'INTERNAL', 'refused', '22P02', /^((?!sesame).)*$/],
  ])('%s is refused', async (text, code, outcome, sqlState, message) => {
    const link = await open(url)
    expect(await failureOf(link.query(statement(text), []))).toMatchObject({
      code,
      outcome,
      sqlState,
      message: expect.stringMatching(message),
    })
    expect(await count(link)).toEqual([[0]])
  })

  it('that a role may not do is denied, naming what it may not touch', async () => {
    await server.query(`CREATE ROLE app LOGIN`)
    const link = await open(server.urlOf({ database, user: 'app' }))
    expect(await failureOf(link.query(ADD, [1]))).toMatchObject({
      code: 'STORE_DENIED',
      outcome: 'refused',
      message: expect.stringContaining('permission denied for table t'),
    })
  })

  it('is repeated after a lock was not free in time, and then done', async () => {
    const link = await open(url, { limits: { lockMs: 50 } })
    const rival = await server.connect({ database })
    await rival.query('BEGIN; LOCK TABLE t')
    const adding = link.query(ADD, [1])
    await eventually(() => link.facts.repeats > 0, 'a repetition')
    await rival.query('COMMIT')
    expect((await adding).count).toBe(1)
    expect(await count(link)).toEqual([[1]])
    await rival.end()
  })

  it('is given up as busy, not done, when the lock stays', async () => {
    const link = await open(url, { limits: { lockMs: 20, repeatMs: 200 } })
    const rival = await server.connect({ database })
    await rival.query('BEGIN; LOCK TABLE t')
    expect(await failureOf(link.query(ADD, [1]))).toMatchObject({
      code: 'STORE_BUSY',
      outcome: 'notDone',
      sqlState: '55P03',
    })
    await rival.query('COMMIT')
    expect(await count(link)).toEqual([[0]])
    await rival.end()
  })

  it('that takes too long is stopped by the server, and not done', async () => {
    const link = await open(url, { limits: { statementMs: 50, repeatMs: 150 } })
    const slow = statement('INSERT INTO t SELECT 1 FROM pg_sleep(60)')
    expect(await failureOf(link.query(slow, []))).toMatchObject({
      code: 'STORE_BUSY',
      outcome: 'notDone',
      sqlState: '57014',
    })
    expect(link.facts.repeats).toBeGreaterThan(0)
    expect(await count(link)).toEqual([[0]])
  })

  it('whose plan is of before a migration is planned again', async () => {
    const link = await open(`${url}?connections=1`)
    const all = statement('SELECT * FROM t')
    await link.query(ADD, [1])
    expect((await link.query(all, [])).rows).toEqual([{ n: 1 }])
    await server.query('ALTER TABLE t ADD COLUMN more int DEFAULT 2', [], { database })
    expect((await link.query(all, [])).rows).toEqual([{ n: 1, more: 2 }])
    expect(link.facts.repeats).toBe(1)
  })

  it('that a role may only read with is refused for now, since another server may take it', async () => {
    await server.query(`ALTER DATABASE ${database} SET default_transaction_read_only = on`)
    const link = await open(url)
    expect(await failureOf(link.query(ADD, [1]))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      outcome: 'notDone',
      sqlState: '25006',
    })
    await server.query(`ALTER DATABASE ${database} SET default_transaction_read_only = off`, [], {
      options: '-c default_transaction_read_only=off',
    })
    expect((await link.query(ADD, [1])).count).toBe(1)
  })
})

describe('a transaction', () => {
  it('commits all or nothing', async () => {
    const link = await open(url)
    const two = await link.transaction(async (query) => {
      await query(ADD, [1])
      await query(ADD, [2])
      return (await query(COUNT, [])).rows
    })
    expect(two).toEqual([{ n: 2 }])
    const own = new Error('of the caller')
    const failing = link.transaction(async (query) => {
      await query(ADD, [3])
      throw own
    })
    await expect(failing).rejects.toBe(own)
    expect(await count(link)).toEqual([[2]])
  })

  it('in which a statement failed is not taken for done, though nobody minded', async () => {
    const link = await open(url)
    const swallowing = link.transaction(async (query) => {
      await query(ADD, [1])
      await query(statement('SELECT 1/0'), []).catch(() => {})
    })
    expect(await failureOf(swallowing)).toMatchObject({ code: 'INTERNAL', outcome: 'refused', sqlState: '22012' })
    expect(await count(link)).toEqual([[0]])
  })

  it('that was rolled back by its own hand is not taken for done', async () => {
    const link = await open(url)
    const undone = link.transaction(async (query) => {
      await query(ADD, [1])
      await query(statement('ROLLBACK'), [])
      await query(statement('BEGIN'), [])
      await query(statement('DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 22012; END $$'), []).catch(() => {})
    })
    expect(await failureOf(undone)).toMatchObject({ outcome: 'refused' })
    expect(await count(link)).toEqual([[0]])
  })

  it('whose COMMIT was answered as a ROLLBACK was not done', async () => {
    const pool = new Pool({ connectionString: url, max: 1 })
    pool.on('connect', (client) => {
      const send = client.query.bind(client) as (...query: readonly unknown[]) => unknown
      const query = (config: { readonly text: string }, ...rest: readonly unknown[]): unknown => {
        // What stands between may spoil a transaction without a word.
        if (config.text === 'COMMIT') send('SELECT 1 / 0', () => {})
        return send(config, ...rest)
      }
      Object.assign(client, { query })
    })
    const link = await open(locationOfPool(pool))
    const undone = link.transaction((query) => query(ADD, [1]))
    expect(await failureOf(undone)).toMatchObject({ outcome: 'notDone' })
    expect(await count(link)).toEqual([[0]])
    await link.close()
    await pool.end()
  })

  it.each(['a pool', 'a pooler'])('has its limits on a connection of %s too, and leaves none behind', async (of) => {
    const pool = new Pool({ connectionString: url, max: 1 })
    const limits = { statementMs: 4001, lockMs: 2001, idleMs: 5001 }
    const location = locationOfPool(pool, of === 'a pooler' ? { pooler: 'transaction' } : {})
    const link = await open(location, { limits })
    const names = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']
    const settings = statement(`SELECT ${names.map((name) => `current_setting('${name}')`).join(', ')}`)
    const before = await link.query(settings, [], 'array')
    const { rows } = await link.transaction((query) => query(settings, [], 'array'))
    expect(rows).toEqual([['4001ms', '2001ms', '5001ms']])
    expect(await link.query(settings, [], 'array')).toEqual(before)
    await link.close()
    await pool.end()
  })

  it('of a process that stands still is ended by the server, which gives its locks to others', async () => {
    const pool = new Pool({ connectionString: url, max: 1 })
    const link = await open(locationOfPool(pool), { limits: { idleMs: 300 } })
    const frozen = gate()
    const locked = gate()
    const standing = link.transaction(async (query) => {
      await query(statement('LOCK TABLE t'), [])
      locked.open()
      await frozen.passed
    })
    await within(locked.passed, 'the lock')
    await server.query('INSERT INTO t VALUES (1)', [], { database })
    frozen.open()
    expect(await failureOf(standing)).toMatchObject({ outcome: 'notDone' })
    await link.close()
    await pool.end()
  })

  it('is run again from its start after a deadlock', async () => {
    await server.query('CREATE TABLE a AS SELECT 0 AS n; CREATE TABLE b AS SELECT 0 AS n', [], { database })
    const link = await open(url, { limits: { lockMs: 10_000, answerMs: 10_000, statementMs: 10_000 } })
    const raise = (table: string) => statement(`UPDATE ${table} SET n = n + 1`)
    let runs = 0
    let held = 0
    const both = (first: string, second: string) =>
      link.transaction(async (query) => {
        runs += 1
        await query(raise(first), [])
        held += 1
        // Both hold their first row before either wants its second.
        await eventually(() => held > 1, 'the other transaction')
        await query(raise(second), [])
      })
    await Promise.all([both('a', 'b'), both('b', 'a')])
    expect(runs).toBeGreaterThan(2)
    expect(link.facts.repeats).toBe(runs - 2)
    expect((await link.query(statement('SELECT a.n AS a, b.n AS b FROM a, b'), [])).rows).toEqual([{ a: 2, b: 2 }])
  })

  it('lends its connection to nobody after its end', async () => {
    const link = await open(url)
    let kept: typeof link.query | undefined
    await link.transaction(async (query) => {
      kept = query
    })
    expect(await failureOf(kept?.(ADD, [1]) ?? Promise.resolve())).toMatchObject({ outcome: 'notDone' })
    expect(await count(link)).toEqual([[0]])
  })
})

describe("a caller's pool", () => {
  it('is used with nothing set on its connections, and not ended', async () => {
    const pool = new Pool({ connectionString: url, max: 1 })
    const warnings: Warning[] = []
    const link = await open(locationOfPool(pool), {}, warnings)
    await link.query(ADD, [1])
    await link.transaction((query) => query(ADD, [2]))
    expect((await pool.query('SELECT current_setting($1) AS set', ['plan_cache_mode'])).rows).toEqual([{ set: 'auto' }])
    await link.close()
    expect(await failureOf(link.query(ADD, [3]))).toMatchObject({ code: 'CLOSED', outcome: 'notDone' })
    expect((await pool.query('SELECT n FROM t ORDER BY n')).rows).toEqual([{ n: 1 }, { n: 2 }])
    expect(pool.listenerCount('error')).toBe(0)
    expect(warnings).toEqual([])
    await pool.end()
  })

  it('that is all lent out is waited for, but not for ever', async () => {
    const pool = new Pool({ connectionString: url, max: 1 })
    const link = await open(locationOfPool(pool), { limits: { connectMs: 50 } })
    const client = await pool.connect()
    expect(await failureOf(link.query(ADD, [1]))).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
    client.release()
    expect(await count(link)).toEqual([[0]])
    await pool.end()
  })

  it('that was ended is closed for the store too', async () => {
    const pool = new Pool({ connectionString: url })
    const link = await open(locationOfPool(pool))
    await pool.end()
    expect(await failureOf(link.query(ADD, [1]))).toMatchObject({ code: 'CLOSED', outcome: 'notDone' })
  })
})
