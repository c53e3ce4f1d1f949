/**
 * How an operation speaks to a database without knowing which: it is a generator that yields steps, each a statement by
 * name and the rows it is to work on, and is handed what came of it. SQLite runs a step row by row inside a transaction,
 * PostgreSQL as one statement for all rows, atomic by itself; the operation is the same.
 */
import { HoldfastError } from '../../errors.ts'
import type { StatementName } from './statement-name.ts'

/** A plan inside a plan, all or nothing: what it reads under a lock stays so until it has written. */
export interface AtomicStep {
  readonly kind: 'atomic'
  /** Makes the plan anew: a transaction that met a conflict is run again from the start. */
  readonly plan: () => Plan<unknown>
  /** Claims jobs, as a statement does that is marked so. */
  readonly isClaiming: boolean
}

/** What one row of a step gives to its statement, by name. The namespace and the store's time come from the runner. */
export type Row = Readonly<Record<string, unknown>>

/** `write` is answered with what was written for which row, `change` with how much, `read` with what was selected for all rows. */
export interface Step {
  readonly kind: 'write' | 'change' | 'read'
  readonly name: StatementName
  readonly rows: readonly Row[]
  /** What is said once for all rows. */
  readonly args?: Row
}

export interface Written {
  /** For each row of the step: whether the statement wrote. */
  readonly written: readonly boolean[]
  /** The store's time when it wrote; 0 when it wrote nothing, or where nobody asks for it. */
  readonly now: number
}

export type StepResult = Written | number | readonly Row[] | { readonly value: unknown }

export type Plan<T> = Generator<Step | AtomicStep, T, StepResult>

const NOTHING_WRITTEN: Written = { written: [], now: 0 }

export function* write(name: StatementName, rows: readonly Row[]): Plan<Written> {
  if (rows.length === 0) return NOTHING_WRITTEN
  const result = yield { kind: 'write', name, rows }
  if (typeof result === 'object' && 'written' in result) return result
  throw misread(name)
}

/** How many rows of the table the statement changed. */
export function* change(name: StatementName, rows: readonly Row[]): Plan<number> {
  if (rows.length === 0) return 0
  const result = yield { kind: 'change', name, rows }
  if (typeof result === 'number') return result
  throw misread(name)
}

/** `Selected` names what the statement selects; a test compares the columns of both dialects with it. */
export function* read<Selected extends object>(
  name: StatementName,
  rows: readonly Row[],
  args?: Row,
): Plan<readonly Selected[]> {
  if (rows.length === 0) return []
  const result = yield args === undefined ? { kind: 'read', name, rows } : { kind: 'read', name, rows, args }
  if (typeof result === 'object' && 'length' in result) return result as readonly object[] as readonly Selected[]
  throw misread(name)
}

const misread = (name: StatementName): HoldfastError =>
  new HoldfastError('INTERNAL', `${name} was answered as another kind of step`)

/** Runs a plan as one transaction, unless one is open already. */
export function* atomically<T>(plan: () => Plan<T>, isClaiming = false): Plan<T> {
  const result = yield { kind: 'atomic', plan, isClaiming }
  if (typeof result === 'object' && 'value' in result) return result.value as T
  throw new HoldfastError('INTERNAL', 'a plan was answered as another kind of step')
}

/** Those items whose row was not written. */
export function missed<T>(items: readonly T[], { written }: Written): readonly T[] {
  return items.filter((_, index) => written[index] !== true)
}

/** One row for each id. */
export const byId = (ids: readonly string[]): readonly Row[] => ids.map((id) => ({ id }))
