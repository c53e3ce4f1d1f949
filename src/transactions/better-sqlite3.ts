/** A `Database` of better-sqlite3 inside a transaction. It is synchronous: what is to be written is written at once. */
import { type CallerTransaction, hasMethods, memberOf, methodOf, refuse, rowsOf } from './caller-transaction.ts'

type All = (values: readonly unknown[]) => unknown

/** Preparing costs more than running; the statements go with their Database. */
const prepared = new WeakMap<object, Map<string, All>>()

export function adaptBetterSqlite3(value: unknown): CallerTransaction | null {
  const prepare = methodOf(value, 'prepare')
  if (
    prepare === null ||
    typeof value !== 'object' ||
    value === null ||
    !hasMethods(value, 'pragma') ||
    typeof memberOf(value, 'inTransaction') !== 'boolean'
  )
    return null
  return {
    dialect: 'sqlite',
    isSynchronous: true,
    requireOpen: () => {
      if (memberOf(value, 'inTransaction') !== true)
        throw refuse('no transaction is open on this Database; call enqueueTx inside db.transaction(…), or after BEGIN')
    },
    execute: (text, values) => {
      const statements = prepared.get(value) ?? new Map<string, All>()
      prepared.set(value, statements)
      const all = statements.get(text) ?? allOf(prepare(text))
      statements.set(text, all)
      return rowsOf(all(values))
    },
  }
}

function allOf(statement: unknown): All {
  const all = methodOf(statement, 'all')
  if (all === null) throw refuse('its Database gives no statements')
  return all
}
