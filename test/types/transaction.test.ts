/** `enqueueTx` takes the transactions of the libraries as they are typed, without a cast, and not the pools beside them. */
import type Database from 'better-sqlite3'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { defineJob, type Holdfast, type Transaction, type TransactionHandle } from 'holdfast'
import type { Knex } from 'knex'
import type { ControlledTransaction, Kysely, Transaction as KyselyTransaction } from 'kysely'
import type { Client, Pool, PoolClient } from 'pg'
import type { ReservedSql, Sql, TransactionSql } from 'postgres'
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import type { PrismaClient } from '../transactional/prisma-client.ts'

interface Tables {
  readonly orders: { readonly id: number; readonly customer: string | null }
}

/** What a function that is given a transaction is called with. */
type First<Run> = Run extends (transaction: infer T, ...rest: never) => unknown ? T : never

test('every transaction is taken', () => {
  expectTypeOf<Client>().toExtend<Transaction>()
  expectTypeOf<PoolClient>().toExtend<Transaction>()
  expectTypeOf<TransactionSql>().toExtend<Transaction>()
  expectTypeOf<TransactionSql<{ bigint: bigint }>>().toExtend<Transaction>()
  expectTypeOf<ReservedSql>().toExtend<Transaction>()
  expectTypeOf<KyselyTransaction<Tables>>().toExtend<Transaction>()
  expectTypeOf<ControlledTransaction<Tables>>().toExtend<Transaction>()
  expectTypeOf<Knex.Transaction>().toExtend<Transaction>()
  expectTypeOf<Knex.Transaction<Tables['orders'], Tables['orders'][]>>().toExtend<Transaction>()
  expectTypeOf<First<Parameters<NodePgDatabase<Record<string, never>>['transaction']>[0]>>().toExtend<Transaction>()
  expectTypeOf<First<Parameters<PostgresJsDatabase['transaction']>[0]>>().toExtend<Transaction>()
  expectTypeOf<First<Parameters<BetterSQLite3Database['transaction']>[0]>>().toExtend<Transaction>()
  expectTypeOf<First<Parameters<PrismaClient['$transaction']>[0]>>().toExtend<Transaction>()
  expectTypeOf<Database.Database>().toExtend<Transaction>()
  expectTypeOf<TransactionHandle>().toExtend<Transaction>()
})

test('what is no transaction is not', () => {
  expectTypeOf<Pool>().not.toExtend<Transaction>()
  expectTypeOf<Sql>().not.toExtend<Transaction>()
  expectTypeOf<Kysely<Tables>>().not.toExtend<Transaction>()
  expectTypeOf<Knex>().not.toExtend<Transaction>()
  expectTypeOf<NodePgDatabase>().not.toExtend<Transaction>()
  expectTypeOf<BetterSQLite3Database>().not.toExtend<Transaction>()
  expectTypeOf<PrismaClient>().not.toExtend<Transaction>()
  expectTypeOf<string>().not.toExtend<Transaction>()
  expectTypeOf<object>().not.toExtend<Transaction>()
  expectTypeOf<undefined>().not.toExtend<Transaction>()
})

test('input and output are those of the contract', () => {
  const job = defineJob('job', { input: z.object({ to: z.string() }), output: z.string().transform(Number) })
  const never = async (hf: Holdfast, client: Client): Promise<void> => {
    const handle = await hf.enqueueTx(client, job, { to: 'ada' }, { delay: '1m' })
    expectTypeOf(handle.result).returns.resolves.toEqualTypeOf<number>()
    await hf.enqueueTx(client, 'by name', { anything: 1 })
    // @ts-expect-error the schema takes a string
    await hf.enqueueTx(client, job, { to: 1 })
    // @ts-expect-error no such option
    await hf.enqueueTx(client, job, { to: 'ada' }, { priorty: 1 })
  }
  expectTypeOf(never).toBeFunction()
})
