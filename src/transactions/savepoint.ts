/** Asks PostgreSQL itself whether a transaction is open, where a library cannot tell: outside of one it refuses a savepoint. */
import { driverErrorOf } from '../backends/transactional.ts'
import { refuse } from './caller-transaction.ts'

const PROBE = 'SAVEPOINT holdfast_probe; RELEASE SAVEPOINT holdfast_probe'
const NO_TRANSACTION = '25P01'
const FAILED_TRANSACTION = '25P02'

export const NONE_IS_OPEN = 'no transaction is open on it; run BEGIN first'
export const HAS_FAILED = 'it has failed and can only be rolled back'

/** Two statements in one message; neither costs a transaction id. */
export async function probe(run: (text: string) => PromiseLike<unknown>): Promise<void> {
  try {
    await run(PROBE)
  } catch (cause) {
    const { code } = driverErrorOf(cause)
    if (code === NO_TRANSACTION) throw refuse(NONE_IS_OPEN)
    if (code === FAILED_TRANSACTION) throw refuse(HAS_FAILED)
    throw cause
  }
}
