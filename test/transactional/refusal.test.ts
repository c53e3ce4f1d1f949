/** What is no transaction is refused by name before anything is written, and no connection is made for it. */
import Database from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { drizzle as drizzleOnPg } from 'drizzle-orm/node-postgres'
import { connect, type Holdfast } from 'holdfast'
import createKnex from 'knex'
import { Kysely, PostgresDialect, SqliteDialect } from 'kysely'
import { Pool } from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshPath } from '../sqlite/support.ts'
import { rejection } from '../support/event.ts'
import { silent } from '../support/silent.ts'
import { prismaOnPostgres, prismaOnSqlite } from './prisma-client.ts'

const NOWHERE = 'postgres://nobody@127.0.0.1:1/none'
const pool = new Pool({ connectionString: NOWHERE })
const database = new Database(':memory:')

/** As a transaction of Knex looks, for a dialect whose driver is not installed here. */
const knexOf = (dialect: string): object =>
  Object.assign(() => {}, {
    ...{ raw: () => {}, transaction: () => {}, queryBuilder: () => {}, isCompleted: () => false },
    ...{ isTransaction: true, client: { dialect } },
  })

const NONE: readonly (readonly [string, unknown, RegExp])[] = [
  ['undefined', undefined, /expected an open transaction of pg, postgres, Kysely/],
  ['null', null, /expected an open transaction/],
  ['an object', { query: 'x' }, /expected an open transaction/],
  ['a text', 'BEGIN', /got "BEGIN"/],
  ['a function', () => {}, /got a function/],
  ['a handle of another dialect', { dialect: 'mysql', execute: () => [] }, /expected 'postgres' or 'sqlite'/],
  ['a pool of pg', pool, /pool\.connect\(\)/],
  ['a pool of postgres', postgres(NOWHERE), /sql\.begin/],
  ['a Kysely', new Kysely<object>({ dialect: new PostgresDialect({ pool }) }), /db\.transaction\(\)\.execute/],
  ['a Kysely on SQLite', new Kysely<object>({ dialect: new SqliteDialect({ database }) }), /db\.transaction\(\)/],
  ['a Knex', createKnex({ client: 'pg', connection: NOWHERE }), /knex\.transaction/],
  ['a Knex of another dialect', knexOf('mysql2'), /speaks mysql2, neither/],
  ['a PrismaClient', prismaOnPostgres(NOWHERE), /prisma\.\$transaction/],
  ['a PrismaClient on SQLite', prismaOnSqlite(':memory:'), /prisma\.\$transaction/],
  ['a Drizzle on a pool', drizzleOnPg(pool), /pool\.connect\(\)/],
  ['a Drizzle on a Database without a transaction', drizzle(database), /no transaction is open on this Database/],
  ['a Drizzle on something else', { dialect: {}, _: {}, session: { client: {} } }, /stands on none of/],
]

describe('what is no transaction', () => {
  let hf: Holdfast

  beforeAll(async () => {
    hf = await connect(`sqlite:${freshPath()}`, { logger: silent })
  })

  afterAll(async () => {
    await hf.close()
    await pool.end()
    database.close()
  })

  it.each(NONE)('%s is refused', async (_, value, says) => {
    const error = await rejection(hf.enqueueTx(value as never, 'task', 1))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'transaction', outcome: 'refused' } })
    expect(error.message).toMatch(says)
    expect((await hf.stats()).total).toBe(0)
  })

  it('one of another kind of database is refused', async () => {
    const asked: string[] = []
    const execute = (text: string): object[] => [{ n: asked.push(text) }]
    const error = await rejection(hf.enqueueTx({ dialect: 'postgres', execute }, 'task', 1))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'transaction' } })
    expect(error.message).toContain('it is one of PostgreSQL, and the jobs are in SQLite')
    expect(asked).toEqual([])
  })

  it('78 the memory store, and SQLite without a file, name what they do not offer', async () => {
    for (const url of ['memory:', 'sqlite::memory:']) {
      const without = await connect(url, { logger: silent })
      expect(without.capabilities.transactionalEnqueue).toBe(false)
      for (const value of [{}, pool, { dialect: 'sqlite', execute: () => [] }]) {
        const error = await rejection(without.enqueueTx(value as never, 'task', 1))
        expect(error).toMatchObject({ code: 'UNSUPPORTED', details: { capability: 'transactionalEnqueue' } })
      }
      await without.close()
    }
  })

  it('a client that was closed enqueues nothing', async () => {
    const path = freshPath()
    const closed = await connect(`sqlite:${path}`, { logger: silent })
    await closed.close()
    const db = new Database(path)
    db.exec('BEGIN')
    expect(await rejection(() => closed.enqueueTx(db, 'task', 1))).toMatchObject({ code: 'CLOSED' })
    db.close()
  })

  it('a handle that says it is synchronous, and gives a promise, is refused', async () => {
    const handle = { dialect: 'sqlite', isSynchronous: true, execute: async () => [] } as const
    const error = await rejection(() => hf.enqueueTx(handle, 'task', 1))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'transaction' } })
  })
})
