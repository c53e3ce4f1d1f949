/** Transactions of Kysely. Plug-ins see the rows but never the statement, which is handed over as compiled already. */
import type { Dialect } from '../backends/transactional.ts'
import {
  type CallerTransaction,
  dialectOf,
  hasMethods,
  memberOf,
  methodOf,
  refuse,
  rowsOf,
} from './caller-transaction.ts'

export function adaptKysely(value: unknown): CallerTransaction | null {
  const executeQuery = methodOf(value, 'executeQuery')
  if (executeQuery === null || !hasMethods(value, 'selectNoFrom', 'withPlugin')) return null
  if (memberOf(value, 'isTransaction') !== true) {
    throw refuse('this is a Kysely and no transaction; give what db.transaction().execute hands to its function')
  }
  return {
    dialect: compiledDialect(value),
    isSynchronous: false,
    requireOpen: () => {},
    probe: () => null,
    execute: async (text, values) => {
      try {
        return rowsOf(await executeQuery(compiled(text, values)))
      } catch (cause) {
        if (cause instanceof Error && ENDED.test(cause.message)) throw refuse('it has ended')
        throw cause
      }
    },
  }
}

/** What Kysely says of a transaction that has ended; the error has nothing else to know it by. */
const ENDED = /^Transaction is already (committed|rolled back)/

/** Kysely has no name for its dialect; how it writes a parameter and a column tells. */
function compiledDialect(kysely: unknown): Dialect {
  const select = methodOf(
    kysely,
    'selectNoFrom',
  )?.((builder: unknown) => methodOf(methodOf(builder, 'val')?.(1), 'as')?.('x'))
  const dialect = dialectOf(memberOf(methodOf(select, 'compile')?.(), 'sql'))
  if (dialect === null) throw refuse('this Kysely speaks neither to PostgreSQL nor to SQLite')
  return dialect
}

/** What `CompiledQuery.raw` of Kysely makes. */
function compiled(sql: string, parameters: readonly unknown[]): object {
  const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] }
  return { sql, parameters, query, queryId: { queryId: 'holdfast' } }
}
