/** A `DatabaseSync` of node:sqlite inside a transaction. It is synchronous: what is to be written is written at once. */
import { type CallerTransaction, hasMethods, memberOf, methodOf, refuse, rowsOf } from './caller-transaction.ts'

const NONE_IS_OPEN = 'no transaction is open on this DatabaseSync; run BEGIN first'

export function adaptNodeSqlite(value: unknown): CallerTransaction | null {
  const prepare = methodOf(value, 'prepare')
  if (prepare === null || !hasMethods(value, 'exec', 'createSession', 'applyChangeset')) return null
  return {
    dialect: 'sqlite',
    isSynchronous: true,
    requireOpen: () => {
      const isOpen = memberOf(value, 'isTransaction') ?? refusesBegin(value)
      if (isOpen !== true) throw refuse(NONE_IS_OPEN)
    },
    execute: (text, values) => rowsOf(methodOf(prepare(text), 'all')?.(...values)),
  }
}

/** For Node before 22.16: a second BEGIN is refused, and does nothing, exactly where a transaction is open. */
function refusesBegin(database: unknown): boolean {
  const exec = methodOf(database, 'exec')
  try {
    exec?.('BEGIN')
  } catch {
    return true
  }
  exec?.('ROLLBACK')
  return false
}
