/** Transactions of Drizzle: its session holds the transaction of the library below, which is what is written through. */
import { type CallerTransaction, memberOf, refuse } from './caller-transaction.ts'

/** `adaptClient` knows the libraries that Drizzle may stand on. */
export function adaptDrizzle(
  value: unknown,
  adaptClient: (client: unknown) => CallerTransaction | null,
): CallerTransaction | null {
  const session = memberOf(value, 'session')
  if (memberOf(value, 'dialect') === undefined || memberOf(value, '_') === undefined || session === undefined)
    return null
  const adapted = adaptClient(memberOf(session, 'client'))
  if (adapted === null) throw refuse('this Drizzle stands on none of pg, postgres and better-sqlite3')
  return adapted
}
