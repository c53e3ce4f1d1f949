/** The cursor of stores that keep all jobs in one order: the sequence of the last job shown. */
import { invalidArgument } from '../errors.ts'

/** The sequence before which a page begins. Throws INVALID_ARGUMENT for a cursor that no page of such a store ended with. */
export function sequenceBefore(cursor: string | null): number {
  if (cursor === null) return Number.MAX_SAFE_INTEGER
  if (/^\d{1,16}$/.test(cursor)) return Number(cursor)
  throw invalidArgument('cursor', 'expected the cursor of the page before', { outcome: 'refused' })
}
