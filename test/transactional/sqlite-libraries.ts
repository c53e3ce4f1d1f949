/** The libraries through which an application may hold a SQLite transaction, each as an application would use it. */
import { createRequire } from 'node:module'
import Database from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import type { TransactionHandle } from 'holdfast'
import createKnex from 'knex'
import { CamelCasePlugin, CompiledQuery, Kysely, SqliteDialect } from 'kysely'
import { ended, enqueueAndEnd, enqueueAtOnce, type Library, type Session } from './library.ts'
import { prismaOnSqlite } from './prisma-client.ts'

const INSERT = 'INSERT INTO orders (id) VALUES (?)'

const betterSqlite3: Library = {
  name: 'better-sqlite3, db.transaction',
  canWait: false,
  open: (path) => {
    const db = new Database(path)
    return {
      transaction: (work) =>
        ended(
          db.transaction(() => {
            db.prepare(INSERT).run(work.order)
            enqueueAtOnce(db, work)
          }),
        ),
      close: async () => void db.close(),
    }
  },
}

function byHand(db: Database.Database): Session {
  return {
    transaction: (work) =>
      ended(async () => {
        db.exec('BEGIN IMMEDIATE')
        try {
          db.prepare(INSERT).run(work.order)
          await enqueueAndEnd(db, work)
          db.exec('COMMIT')
        } finally {
          if (db.inTransaction) db.exec('ROLLBACK')
        }
      }),
    close: async () => void db.close(),
  }
}

const betterSqlite3ByHand: Library = {
  name: 'better-sqlite3, BEGIN and COMMIT, integers as bigint',
  canWait: true,
  open: (path) => byHand(new Database(path).defaultSafeIntegers(true)),
}

const drizzleOnBetterSqlite3: Library = {
  name: 'drizzle on better-sqlite3',
  canWait: false,
  open: (path) => {
    const client = new Database(path)
    const db = drizzle(client)
    return {
      transaction: (work) =>
        ended(() =>
          db.transaction((tx) => {
            tx.run(sql`INSERT INTO orders (id) VALUES (${work.order})`)
            enqueueAtOnce(tx, work)
          }),
        ),
      close: async () => void client.close(),
    }
  },
}

const kysely: Library = {
  name: 'kysely with its SqliteDialect and a plug-in',
  canWait: true,
  open: (path) => {
    const dialect = new SqliteDialect({ database: new Database(path) })
    const db = new Kysely<{ orders: { id: number } }>({ dialect, plugins: [new CamelCasePlugin()] })
    return {
      transaction: (work) =>
        ended(() =>
          db.transaction().execute(async (trx) => {
            await trx.executeQuery(CompiledQuery.raw(INSERT, [work.order]))
            await enqueueAndEnd(trx, work)
          }),
        ),
      close: () => db.destroy(),
    }
  },
}

const knex: Library = {
  name: 'knex on better-sqlite3',
  canWait: true,
  open: (path) => {
    const db = createKnex({ client: 'better-sqlite3', connection: { filename: path }, useNullAsDefault: true })
    return {
      transaction: (work) =>
        ended(() =>
          db.transaction(async (trx) => {
            await trx.raw(INSERT, [work.order])
            await enqueueAndEnd(trx, work)
          }),
        ),
      close: () => db.destroy(),
    }
  },
}

const prisma: Library = {
  name: 'prisma on better-sqlite3',
  canWait: true,
  open: (path) => {
    const db = prismaOnSqlite(path)
    return {
      transaction: (work) =>
        ended(() =>
          db.$transaction(async (tx) => {
            await tx.$executeRawUnsafe(INSERT, work.order)
            await enqueueAndEnd(tx, work)
          }),
        ),
      close: () => db.$disconnect(),
    }
  },
}

const handMade: Library = {
  name: 'a handle made by hand',
  canWait: true,
  open: (path) => {
    const db = new Database(path)
    const handle: TransactionHandle = {
      dialect: 'sqlite',
      execute: async (text, values) => db.prepare<unknown[], object>(text).all(values),
    }
    const { transaction, close } = byHand(db)
    return { transaction: (work) => transaction({ ...work, enqueue: () => work.enqueue(handle) }), close }
  },
}

interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => NodeDatabase
}

interface NodeDatabase {
  exec(text: string): void
  prepare(text: string): { run(...values: unknown[]): object }
  createSession(...options: never): object
  close(): void
}

/** Node 22.13 and later have it without a flag. */
function loadNodeSqlite(): NodeSqlite | null {
  try {
    return createRequire(import.meta.url)('node:sqlite') as NodeSqlite
  } catch {
    return null
  }
}

function onNodeSqlite({ DatabaseSync }: NodeSqlite): Library {
  return {
    name: 'node:sqlite',
    canWait: true,
    open: (path) => {
      const db = new DatabaseSync(path)
      return {
        transaction: (work) =>
          ended(async () => {
            db.exec('BEGIN IMMEDIATE')
            try {
              db.prepare(INSERT).run(work.order)
              await enqueueAndEnd(db, work)
              db.exec('COMMIT')
            } catch (error) {
              db.exec('ROLLBACK')
              throw error
            }
          }),
        close: async () => db.close(),
      }
    },
  }
}

const nodeSqlite = loadNodeSqlite()

export const SQLITE_LIBRARIES: readonly Library[] = [
  betterSqlite3,
  betterSqlite3ByHand,
  drizzleOnBetterSqlite3,
  kysely,
  knex,
  prisma,
  handMade,
  ...(nodeSqlite === null ? [] : [onNodeSqlite(nodeSqlite)]),
]
