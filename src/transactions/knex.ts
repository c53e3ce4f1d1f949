/** Transactions of Knex, whose raw statements have `?` for values in every dialect. */
import type { Dialect, TransactionValue } from '../backends/transactional.ts'
import { type CallerTransaction, hasMethods, memberOf, methodOf, refuse, rowsOf } from './caller-transaction.ts'

/** By Knex's name for it, which its variants share or keep for themselves. */
const DIALECTS: Readonly<Record<string, Dialect>> = { postgresql: 'postgres', sqlite3: 'sqlite' }

export function adaptKnex(value: unknown): CallerTransaction | null {
  const raw = typeof value === 'function' ? methodOf(value, 'raw') : null
  if (raw === null || !hasMethods(value, 'transaction', 'queryBuilder')) return null
  const isCompleted = methodOf(value, 'isCompleted')
  if (memberOf(value, 'isTransaction') !== true || isCompleted === null) {
    throw refuse('this is a Knex and no transaction; give what knex.transaction hands to its function')
  }
  const name = String(memberOf(memberOf(value, 'client'), 'dialect'))
  const dialect = Object.hasOwn(DIALECTS, name) ? DIALECTS[name] : undefined
  if (dialect === undefined) throw refuse(`this Knex speaks ${name}, neither PostgreSQL nor SQLite`)
  return {
    dialect,
    isSynchronous: false,
    requireOpen: () => {
      if (isCompleted() === true) throw refuse('it has ended')
    },
    probe: () => null,
    execute: async (text, values) => {
      const statement = dialect === 'postgres' ? inOrder(text, values) : { text, values }
      return rowsOf(await raw(statement.text, statement.values))
    },
  }
}

/** `$n` as `?`, each with a value of its own. */
function inOrder(text: string, values: readonly TransactionValue[]): { text: string; values: TransactionValue[] } {
  const ordered: TransactionValue[] = []
  const positional = text.replaceAll(/\?|\$(\d+)/g, (found, number?: string) => {
    if (number === undefined) return `\\${found}`
    ordered.push(values[Number(number) - 1] ?? null)
    return '?'
  })
  return { text: positional, values: ordered }
}
