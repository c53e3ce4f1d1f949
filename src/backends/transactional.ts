/**
 * Enqueueing inside a caller's own transaction. What such a transaction offers a store, whatever library it comes from; what
 * a store makes of it; and the runner between the two, which stays synchronous for as long as the library does: then the
 * job is written before the call returns, which is all that a synchronous transaction can wait for.
 */
import type { HoldfastError } from '../errors.ts'
import type { JobDefinition } from '../job.ts'
import type { EnqueueResult } from './protocol/index.ts'

export type Dialect = 'postgres' | 'sqlite'

/** Only values that every library sends unchanged: no arrays, dates, booleans or objects; bytes for SQLite alone. */
export type TransactionValue = string | number | bigint | Uint8Array | null

/** Rows as objects or as arrays; what Holdfast selects is a single column, since plug-ins rename columns. */
export type TransactionRows = readonly object[]

/** A transaction that is open, of any library: give one of these for a library that Holdfast does not know. */
export interface TransactionHandle {
  readonly dialect: Dialect
  /** True: `execute` answers at once, since the transaction may end before anything that is awaited goes on. */
  readonly isSynchronous?: boolean
  /** Runs one statement inside the transaction: `$1` and up stand for the values in PostgreSQL, `?` in SQLite. Gives its rows. */
  execute(text: string, values: TransactionValue[]): TransactionRows | PromiseLike<TransactionRows>
}

/** One statement for the caller's transaction. */
export interface TransactionStep {
  readonly text: string
  readonly values: TransactionValue[]
}

export type TransactionSteps<T> = Generator<TransactionStep, T, TransactionRows>

/** The half of a store that writes through a caller's transaction. It uses no connection of the store. */
export interface TransactionalEnqueue {
  readonly dialect: Dialect
  /** Yields what is to be run, and is handed the rows. Throws a HoldfastError when the transaction is not one of this store. */
  enqueue(job: JobDefinition): TransactionSteps<EnqueueResult>
  /** The error for what the caller's library threw. */
  toError(cause: unknown): HoldfastError
}

/** Runs the steps at once. Throws what they throw. */
export function runSteps<T>(
  steps: TransactionSteps<T>,
  execute: (text: string, values: TransactionValue[]) => TransactionRows,
): T {
  let step = steps.next()
  while (step.done !== true) step = steps.next(execute(step.value.text, step.value.values))
  return step.value
}

/** Runs the steps; the first is sent before anything is awaited. */
export async function awaitSteps<T>(
  steps: TransactionSteps<T>,
  execute: (text: string, values: TransactionValue[]) => TransactionRows | PromiseLike<TransactionRows>,
): Promise<T> {
  let step = steps.next()
  while (step.done !== true) step = steps.next(await execute(step.value.text, step.value.values))
  return step.value
}

/** The value of a single column of a single row; undefined: there is no row. */
export function firstValue(rows: TransactionRows): unknown {
  const [row] = rows
  return row === undefined ? undefined : Object.values(row)[0]
}

/** How deep libraries put the error of their driver into their own. */
const CAUSES_MAX = 6
/** Codes of Prisma look like an SQLSTATE and are none. */
const PRISMA_CODE = /^P\d{4}$/

/** The code of SQLite or the SQLSTATE of PostgreSQL behind an error of a library, and the message beside it. */
export function driverErrorOf(error: unknown): { readonly code: string; readonly message: string } {
  const message = error instanceof Error ? error.message : String(error)
  let at: unknown = error
  for (let depth = 0; depth < CAUSES_MAX && typeof at === 'object' && at !== null; depth += 1) {
    const code = codeOf(at)
    if (code !== null) {
      const said: unknown = Reflect.get(at, 'originalMessage') ?? Reflect.get(at, 'message')
      return { code, message: typeof said === 'string' ? said : message }
    }
    at = Reflect.get(at, 'driverAdapterError') ?? Reflect.get(at, 'meta') ?? Reflect.get(at, 'cause')
  }
  return { code: '', message }
}

function codeOf(error: object): string | null {
  const errcode: unknown = Reflect.get(error, 'errcode')
  if (typeof errcode === 'number') return SQLITE_CODES[errcode & 0xff] ?? 'SQLITE_ERROR'
  for (const name of ['originalCode', 'code']) {
    const code: unknown = Reflect.get(error, name)
    if (typeof code === 'string' && !PRISMA_CODE.test(code)) return code
  }
  return null
}

/** node:sqlite gives numbers. https://www.sqlite.org/rescode.html */
const SQLITE_CODES: Readonly<Record<number, string>> = {
  3: 'SQLITE_PERM',
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  7: 'SQLITE_NOMEM',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  18: 'SQLITE_TOOBIG',
  19: 'SQLITE_CONSTRAINT',
  23: 'SQLITE_AUTH',
  26: 'SQLITE_NOTADB',
}
