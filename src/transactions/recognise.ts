/** From what a caller gave as a transaction to what can be written through: the libraries are told apart by their shape. */
import type { TransactionHandle, TransactionRows } from '../backends/transactional.ts'
import { show } from '../config.ts'
import { adaptBetterSqlite3 } from './better-sqlite3.ts'
import { type Adapter, type CallerTransaction, memberOf, methodOf, refuse } from './caller-transaction.ts'
import { adaptDrizzle } from './drizzle.ts'
import { adaptKnex } from './knex.ts'
import { adaptKysely } from './kysely.ts'
import { adaptNodeSqlite } from './node-sqlite.ts'
import { adaptPg } from './pg.ts'
import { adaptPostgresJs } from './postgres-js.ts'
import { adaptPrisma } from './prisma.ts'

const CLIENTS: readonly Adapter[] = [adaptPg, adaptPostgresJs, adaptBetterSqlite3, adaptNodeSqlite]
const LAYERS: readonly Adapter[] = [adaptHandle, adaptPrisma, adaptKysely, adaptKnex]

function firstOf(adapters: readonly Adapter[], value: unknown): CallerTransaction | null {
  for (const adapt of adapters) {
    const adapted = adapt(value)
    if (adapted !== null) return adapted
  }
  return null
}

const adaptClient: Adapter = (value) => firstOf(CLIENTS, value)

/** The caller's transaction. Throws INVALID_ARGUMENT when the value is of no known library, or can be no transaction. */
export function recogniseTransaction(value: unknown): CallerTransaction {
  const known = firstOf(LAYERS, value) ?? adaptDrizzle(value, adaptClient) ?? adaptClient(value)
  if (known !== null) return known
  throw refuse(
    'expected an open transaction of pg, postgres, Kysely, Drizzle, Knex, Prisma, better-sqlite3 or node:sqlite, or ' +
      `{ dialect, execute } for another library; got ${show(value)}`,
  )
}

/** A handle that the caller has made; whoever makes one answers for its transaction being open. */
function adaptHandle(value: unknown): CallerTransaction | null {
  const dialect = memberOf(value, 'dialect')
  if (typeof dialect !== 'string' || methodOf(value, 'execute') === null) return null
  if (dialect !== 'postgres' && dialect !== 'sqlite')
    throw refuse(`dialect: expected 'postgres' or 'sqlite'; got ${show(dialect)}`)
  const handle = value as TransactionHandle
  const requireOpen = (): void => {}
  if (handle.isSynchronous !== true) {
    const execute: TransactionHandle['execute'] = (text, values) => handle.execute(text, values)
    return { dialect, isSynchronous: false, requireOpen, probe: () => null, execute }
  }
  return { dialect, isSynchronous: true, requireOpen, execute: (text, values) => atOnce(handle.execute(text, values)) }
}

function atOnce(rows: ReturnType<TransactionHandle['execute']>): TransactionRows {
  if (!('then' in rows)) return rows
  throw refuse('it says isSynchronous, and execute gave a promise')
}
