/** The client that Prisma hands to the function of an interactive transaction. */
import type { Dialect } from '../backends/transactional.ts'
import { type CallerTransaction, memberOf, methodOf, refuse, rowsOf } from './caller-transaction.ts'

const DIALECTS: Readonly<Record<string, Dialect>> = { postgresql: 'postgres', postgres: 'postgres', sqlite: 'sqlite' }

/** "Transaction API error", for one that was committed, rolled back, or ran out of its time. */
const ENDED = 'P2028'

/** Prisma puts what happened below a picture of the call. */
const lastLine = (error: unknown): string => String(memberOf(error, 'message')).trim().split('\n').at(-1) ?? ''

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
    requireOpen: () => {},
    probe: () => null,
    execute: async (text, values) => {
      try {
        return rowsOf(await queryRaw(text, ...values))
      } catch (cause) {
        if (memberOf(cause, 'code') === ENDED) throw refuse(`it has ended: ${lastLine(cause)}`)
        throw cause
      }
    },
  }
}
