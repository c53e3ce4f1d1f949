/** A `Database` of better-sqlite3 inside a transaction. It is synchronous: what is to be written is written at once. */
import { type CallerTransaction, hasMethods, memberOf, methodOf, refuse, rowsOf } from './caller-transaction.ts'

export function adaptBetterSqlite3(value: unknown): CallerTransaction | null {
  const prepare = methodOf(value, 'prepare')
  if (prepare === null || !hasMethods(value, 'pragma') || typeof memberOf(value, 'inTransaction') !== 'boolean')
    return null
  return {
    dialect: 'sqlite',
    isSynchronous: true,
    requireOpen: () => {
      if (memberOf(value, 'inTransaction') !== true)
        throw refuse('no transaction is open on this Database; call enqueueTx inside db.transaction(…), or after BEGIN')
    },
    execute: (text, values) => rowsOf(methodOf(prepare(text), 'all')?.(values)),
  }
}
