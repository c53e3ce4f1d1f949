/** Transactions of `postgres`. One that has ended looks like one that has not, so the server is asked. */
import { type CallerTransaction, methodOf, refuse, rowsOf } from './caller-transaction.ts'
import { probe } from './savepoint.ts'

export function adaptPostgresJs(value: unknown): CallerTransaction | null {
  const unsafe = typeof value === 'function' ? methodOf(value, 'unsafe') : null
  if (unsafe === null) return null
  if (methodOf(value, 'savepoint') === null && methodOf(value, 'release') === null) {
    throw refuse('this is a pool of postgres, no transaction; give what sql.begin hands to its function')
  }
  return {
    dialect: 'postgres',
    isSynchronous: false,
    requireOpen: () => {},
    probe: () => probe(async (text) => unsafe(text)),
    execute: async (text, values) => rowsOf(await unsafe(text, values)),
  }
}
