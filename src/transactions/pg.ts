/** Clients of `pg`, and of what has its shape: the connection that the caller has taken from a pool, or made. */
import type { TransactionRows, TransactionValue } from '../backends/transactional.ts'
import { type CallerTransaction, hasMethods, memberOf, methodOf, refuse, rowsOf } from './caller-transaction.ts'
import { HAS_FAILED, probe } from './savepoint.ts'

export function adaptPg(value: unknown): CallerTransaction | null {
  if (hasMethods(value, 'query', 'connect') && typeof memberOf(value, 'totalCount') === 'number') {
    throw refuse('a pool is no transaction; take a client with pool.connect(), run BEGIN on it, and give that client')
  }
  const query = methodOf(value, 'query')
  if (query === null || !hasMethods(value, 'escapeIdentifier', 'escapeLiteral')) return null
  const run = async (config: object): Promise<unknown> => query(config)
  return {
    dialect: 'postgres',
    isSynchronous: false,
    requireOpen: () => {
      if (statusOf(value) === 'E') throw refuse(HAS_FAILED)
    },
    // What is still under way may begin a transaction, or end one; and earlier releases cannot say anything.
    probe: () => (isQuiet(value) && statusOf(value) === 'T' ? null : probe((text) => run({ text }))),
    execute: async (text: string, values: TransactionValue[]): Promise<TransactionRows> =>
      rowsOf(await run({ text, values, rowMode: 'array' })),
  }
}

/** Nothing is under way on it and nothing waits, so that what the server said last holds. */
const isQuiet = (client: unknown): boolean => memberOf(client, 'readyForQuery') === true

/** What the server said last: `I` idle, `T` in a transaction, `E` in one that failed. */
function statusOf(client: unknown): unknown {
  try {
    return methodOf(client, 'getTransactionStatus')?.()
  } catch {
    return null // The native client needs a later libpq for this.
  }
}
