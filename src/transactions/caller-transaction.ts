/**
 * What a caller may give as a transaction, by shape and without a type of any library, so that none has to be installed; and
 * what an adapter makes of it. Each adapter answers null to what is not of its library, and refuses what is of its library and
 * no open transaction.
 */
import type { Dialect, TransactionHandle, TransactionRows, TransactionValue } from '../backends/transactional.ts'
import { type HoldfastError, invalidArgument } from '../errors.ts'

/** A transaction of a caller as `enqueueTx` works with it. */
export type CallerTransaction = SynchronousTransaction | AsynchronousTransaction

export interface SynchronousTransaction {
  readonly dialect: Dialect
  readonly isSynchronous: true
  /** Throws INVALID_ARGUMENT unless a transaction is open. Called before anything is written. */
  requireOpen(): void
  execute(text: string, values: TransactionValue[]): TransactionRows
}

export interface AsynchronousTransaction {
  readonly dialect: Dialect
  readonly isSynchronous: false
  /** Throws INVALID_ARGUMENT when the library knows that no transaction is open. */
  requireOpen(): void
  /** Asks what can only be asked of the server: rejects with INVALID_ARGUMENT unless a transaction is open. Null: nothing to ask. */
  probe(): Promise<void> | null
  execute(text: string, values: TransactionValue[]): TransactionRows | PromiseLike<TransactionRows>
}

/** Gives null when the value is not of the library of this adapter. Throws INVALID_ARGUMENT when it is, and can be no transaction. */
export type Adapter = (value: unknown) => CallerTransaction | null

/** `pg`: a `Client` or `PoolClient` on which BEGIN was run. A `Pool` is none: each of its queries may go elsewhere. */
export interface PgTransaction {
  query(text: string, values?: unknown[]): PromiseLike<unknown>
  escapeIdentifier(text: string): string
  readonly totalCount?: never
}

/** `postgres`: what `sql.begin` hands to its function, or a connection of `sql.reserve` on which BEGIN was run. */
export type PostgresJsTransaction = PostgresJsSql & ({ savepoint(run: never): unknown } | { release(): void })

interface PostgresJsSql {
  unsafe(text: string, values?: (string | number | null)[]): PromiseLike<readonly object[]>
}

/** Kysely: what `db.transaction().execute` hands to its function, or a controlled transaction. */
export interface KyselyTransaction {
  readonly isTransaction: true
  executeQuery(query: never): PromiseLike<{ readonly rows: readonly unknown[] }>
}

/** Drizzle on `pg`, `postgres` or `better-sqlite3`: what `db.transaction` hands to its function. */
export interface DrizzleTransaction {
  readonly _: object
  rollback(): never
}

/** Knex: what `knex.transaction` hands to its function, or gives. */
export interface KnexTransaction {
  raw(text: string, values: readonly (string | number | null)[]): PromiseLike<unknown>
  isCompleted(): boolean
}

/** Prisma: what the function of an interactive `$transaction` is called with. */
export interface PrismaTransaction {
  $queryRawUnsafe<T = unknown>(text: string, ...values: (string | number | null)[]): PromiseLike<T>
  readonly $connect?: never
}

/** `better-sqlite3`: a `Database` inside a transaction, be it by `db.transaction(…)` or by BEGIN. */
export interface BetterSqlite3Transaction {
  readonly inTransaction: boolean
  prepare(text: string): object
}

/** `node:sqlite`: a `DatabaseSync` on which BEGIN was run. */
export interface NodeSqliteTransaction {
  prepare(text: string): object
  exec(text: string): void
  createSession(...options: never): object
}

/** What `enqueueTx` takes. For a library that is not here, give a `TransactionHandle`. */
export type Transaction =
  | PgTransaction
  | PostgresJsTransaction
  | KyselyTransaction
  | DrizzleTransaction
  | KnexTransaction
  | PrismaTransaction
  | BetterSqlite3Transaction
  | NodeSqliteTransaction
  | TransactionHandle

/** The error of everything that is no transaction to write in. */
export const refuse = (problem: string, details: Readonly<Record<string, unknown>> = {}): HoldfastError =>
  invalidArgument('transaction', problem, { outcome: 'refused', ...details })

type Method = (...values: readonly unknown[]) => unknown

/** The member of that name, called on its owner; null: there is none, or it is no function. */
export function methodOf(value: unknown, name: string): Method | null {
  const member = memberOf(value, name)
  return typeof member === 'function' ? (...values) => Reflect.apply(member, value, values) : null
}

export function memberOf(value: unknown, name: string): unknown {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return isObject ? Reflect.get(value, name) : undefined
}

export const hasMethods = (value: unknown, ...names: readonly string[]): boolean =>
  names.every((name) => methodOf(value, name) !== null)

/** The rows in an answer of the library: the array itself, or its `rows`. */
export function rowsOf(answer: unknown): readonly object[] {
  const rows: unknown = Array.isArray(answer) ? answer : memberOf(answer, 'rows')
  return Array.isArray(rows) ? rows.filter((row) => typeof row === 'object' && row !== null) : []
}

/** What the placeholders and quotes of a statement say of its dialect; null: neither of the two. */
export function dialectOf(compiled: unknown): Dialect | null {
  if (typeof compiled !== 'string' || !compiled.includes('"')) return null
  if (compiled.includes('$1')) return 'postgres'
  return compiled.includes('?') ? 'sqlite' : null
}
