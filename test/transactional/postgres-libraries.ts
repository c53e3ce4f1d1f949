/** The libraries through which an application may hold a PostgreSQL transaction, each as an application would use it. */
import { sql } from 'drizzle-orm'
import { drizzle as drizzleOnPg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js'
import type { TransactionHandle } from 'holdfast'
import createKnex from 'knex'
import { CamelCasePlugin, CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import { Client, type ClientBase, Pool } from 'pg'
import postgres from 'postgres'
import { ended, enqueueAndEnd, type Library, type Session } from './library.ts'
import { prismaOnPostgres } from './prisma-client.ts'

const INSERT = 'INSERT INTO orders (id) VALUES ($1)'

function byHand(client: ClientBase): Session['transaction'] {
  return (work) =>
    ended(async () => {
      await client.query('BEGIN')
      try {
        await client.query(INSERT, [work.order])
        await enqueueAndEnd(client, work)
        await client.query('COMMIT')
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      }
    })
}

const pgClient: Library = {
  name: 'pg, a client',
  canWait: true,
  open: async (connectionString) => {
    const client = new Client({ connectionString })
    await client.connect()
    return { transaction: byHand(client), close: () => client.end() }
  },
}

const pgPool: Library = {
  name: 'pg, a client of a pool of one, transactions serializable',
  canWait: true,
  open: (connectionString) => {
    const pool = new Pool({
      connectionString,
      max: 1,
      options: '-c default_transaction_isolation=serializable -c standard_conforming_strings=off',
    })
    return {
      transaction: async (work) => {
        const client = await pool.connect()
        try {
          await byHand(client)(work)
        } finally {
          client.release()
        }
      },
      close: () => pool.end(),
    }
  },
}

const postgresJs: Library = {
  name: 'postgres, with names of columns transformed',
  canWait: true,
  open: (url) => {
    const db = postgres(url, { max: 1, transform: postgres.toPascal })
    return {
      transaction: (work) =>
        ended(() =>
          db.begin(async (tx) => {
            await tx`INSERT INTO orders (id) VALUES (${work.order})`
            await enqueueAndEnd(tx, work)
          }),
        ),
      close: () => db.end(),
    }
  },
}

const postgresJsReserved: Library = {
  name: 'postgres, a reserved connection',
  canWait: true,
  open: (url) => {
    const db = postgres(url, { max: 1, prepare: false })
    return {
      transaction: (work) =>
        ended(async () => {
          const reserved = await db.reserve()
          try {
            await reserved`BEGIN`
            await reserved`INSERT INTO orders (id) VALUES (${work.order})`
            await enqueueAndEnd(reserved, work)
            await reserved`COMMIT`
          } catch (error) {
            await reserved`ROLLBACK`
            throw error
          } finally {
            reserved.release()
          }
        }),
      close: () => db.end(),
    }
  },
}

const drizzlePg: Library = {
  name: 'drizzle on pg',
  canWait: true,
  open: (connectionString) => {
    const pool = new Pool({ connectionString, max: 1 })
    const db = drizzleOnPg(pool)
    return {
      transaction: (work) =>
        ended(() =>
          db.transaction(async (tx) => {
            await tx.execute(sql`INSERT INTO orders (id) VALUES (${work.order})`)
            await enqueueAndEnd(tx, work)
          }),
        ),
      close: () => pool.end(),
    }
  },
}

const drizzlePostgresJs: Library = {
  name: 'drizzle on postgres, a transaction within a transaction',
  canWait: true,
  open: (url) => {
    const client = postgres(url, { max: 1 })
    const db = drizzleOnPostgresJs(client)
    return {
      transaction: (work) =>
        ended(() =>
          db.transaction((outer) =>
            outer.transaction(async (tx) => {
              await tx.execute(sql`INSERT INTO orders (id) VALUES (${work.order})`)
              await enqueueAndEnd(tx, work)
            }),
          ),
        ),
      close: () => client.end(),
    }
  },
}

const kysely: Library = {
  name: 'kysely with its PostgresDialect and a plug-in',
  canWait: true,
  open: (connectionString) => {
    const dialect = new PostgresDialect({ pool: new Pool({ connectionString, max: 1 }) })
    const db = new Kysely<{ orders: { id: number } }>({ dialect, plugins: [new CamelCasePlugin({ upperCase: true })] })
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

const kyselyControlled: Library = {
  name: 'kysely, a controlled transaction',
  canWait: true,
  open: (connectionString) => {
    const dialect = new PostgresDialect({ pool: new Pool({ connectionString, max: 1 }) })
    const db = new Kysely<{ orders: { id: number } }>({ dialect })
    return {
      transaction: (work) =>
        ended(async () => {
          const trx = await db.startTransaction().execute()
          try {
            await trx.insertInto('orders').values({ id: work.order }).execute()
            await enqueueAndEnd(trx, work)
            await trx.commit().execute()
          } catch (error) {
            await trx.rollback().execute()
            throw error
          }
        }),
      close: () => db.destroy(),
    }
  },
}

const knex: Library = {
  name: 'knex on pg',
  canWait: true,
  open: (connection) => {
    const db = createKnex({ client: 'pg', connection, pool: { min: 0, max: 1 } })
    return {
      transaction: (work) =>
        ended(() =>
          db.transaction(async (trx) => {
            await trx('orders').insert({ id: work.order })
            await enqueueAndEnd(trx, work)
          }),
        ),
      close: () => db.destroy(),
    }
  },
}

const prisma: Library = {
  name: 'prisma on pg',
  canWait: true,
  open: (url) => {
    const db = prismaOnPostgres(url)
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
  open: async (connectionString) => {
    const client = new Client({ connectionString })
    await client.connect()
    const handle: TransactionHandle = {
      dialect: 'postgres',
      execute: async (text, values) => (await client.query<Record<string, unknown>>(text, values)).rows,
    }
    const transaction = byHand(client)
    return {
      transaction: (work) => transaction({ ...work, enqueue: () => work.enqueue(handle) }),
      close: () => client.end(),
    }
  },
}

export const POSTGRES_LIBRARIES: readonly Library[] = [
  pgClient,
  pgPool,
  postgresJs,
  postgresJsReserved,
  drizzlePg,
  drizzlePostgresJs,
  kysely,
  kyselyControlled,
  knex,
  prisma,
  handMade,
]
