/** The client that Prisma hands to the function of an interactive transaction. */
import type { Dialect } from '../backends/transactional.ts'
import { type CallerTransaction, memberOf, methodOf, refuse, rowsOf } from './caller-transaction.ts'

const DIALECTS: Readonly<Record<string, Dialect>> = { postgresql: 'postgres', postgres: 'postgres', sqlite: 'sqlite' }

export function adaptPrisma(value: unknown): CallerTransaction | null {
  const queryRaw = methodOf(value, '$queryRawUnsafe')
  if (queryRaw === null) return null
  if (methodOf(value, '$connect') !== null) {
    throw refuse('this is a PrismaClient and no transaction; give what prisma.$transaction hands to its function')
  }
  const provider = String(memberOf(value, '_activeProvider'))
  const dialect = Object.hasOwn(DIALECTS, provider) ? DIALECTS[provider] : undefined
  if (dialect === undefined) throw refuse(`this PrismaClient speaks ${provider}, neither postgresql nor sqlite`)
  return {
    dialect,
    isSynchronous: false,
    // Prisma itself refuses what is sent after the end, by the id of the transaction.
    requireOpen: () => {},
    probe: () => null,
    execute: async (text, values) => rowsOf(await queryRaw(text, ...values)),
  }
}
