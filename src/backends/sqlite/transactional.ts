/**
 * Enqueues through a connection of the caller's to the same file, inside the transaction that is open on it: the plan of an
 * ordinary enqueue, its statements handed to the caller's library one by one. How durable the commit is, and how long it waits
 * for the lock, is up to that connection.
 */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Clock } from '../../clock.ts'
import { HoldfastError, invalidArgument } from '../../errors.ts'
import type { JobDefinition } from '../../job.ts'
import type { EnqueueResult } from '../protocol/index.ts'
import { enqueue } from '../sql/enqueue.ts'
import type { AtomicStep, Plan, Row, Step, StepResult } from '../sql/plan.ts'
import type { StatementName } from '../sql/statement-name.ts'
import {
  driverErrorOf,
  firstValue,
  type TransactionalEnqueue,
  type TransactionRows,
  type TransactionSteps,
  type TransactionValue,
} from '../transactional.ts'
import { storeError } from './errors.ts'
import { type Part, partsOf, type Scope } from './statement.ts'

export interface SqliteTransactionalOptions {
  readonly path: string
  readonly namespace: string
  readonly readonly: boolean
  readonly clock: Clock
}

/** What every library gives for a row that was written; not all of them tell how many there were. */
const WRITTEN = '\nRETURNING 1 AS written'
const MAIN_FILE = "SELECT file FROM pragma_database_list WHERE name = 'main'"

export class SqliteTransactional implements TransactionalEnqueue {
  readonly dialect = 'sqlite'
  private readonly path: string
  private readonly options: SqliteTransactionalOptions

  constructor(options: SqliteTransactionalOptions) {
    this.path = resolve(options.path)
    this.options = options
  }

  *enqueue(job: JobDefinition): TransactionSteps<EnqueueResult> {
    const { path } = this
    if (this.options.readonly) {
      const details = { path, outcome: 'refused' }
      throw new HoldfastError('STORE_READONLY', `the SQLite store ${path} is open for reading`, { details })
    }
    this.requireSameFile(firstValue(yield { text: MAIN_FILE, values: [] }))
    // Read in the transaction, since a namespace that is added in one that is rolled back is gone again.
    const scope = { ns: yield* this.namespace(), now: Math.floor(this.options.clock.now()) }
    const { results } = yield* through(enqueue({ jobs: [job], resend: false }, true), scope)
    const [result] = results
    if (result === undefined) throw new HoldfastError('INTERNAL', 'an enqueue was left unanswered')
    return result
  }

  private requireSameFile(file: unknown): void {
    const { path } = this
    if (typeof file === 'string' && file !== '' && isSameFile(file, path)) return
    const where = typeof file === 'string' && file !== '' ? file : 'no file'
    throw invalidArgument('transaction', `it is on ${where}, and the jobs are in ${path}`, { path, outcome: 'refused' })
  }

  private *namespace(): TransactionSteps<number> {
    const row = { name: this.options.namespace }
    const known = firstValue(yield* run('namespace_find', row))
    if (known !== undefined) return Number(known)
    yield* run('namespace_add', row, WRITTEN)
    return Number(firstValue(yield* run('namespace_find', row)))
  }

  toError(cause: unknown): HoldfastError {
    const { code, message } = driverErrorOf(cause)
    return storeError(Object.assign(new Error(message, { cause }), { code }), this.path, 'run')
  }
}

function isSameFile(one: string, other: string): boolean {
  if (one === other) return true
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }))
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino
}

/** Runs a plan through the transaction of the caller, row by row. */
function* through<T>(plan: Plan<T>, scope: Scope): TransactionSteps<T> {
  let turn = plan.next()
  while (turn.done !== true) turn = plan.next(yield* runStep(turn.value, scope))
  return turn.value
}

function* runStep(step: Step | AtomicStep, scope: Scope): TransactionSteps<StepResult> {
  if (step.kind === 'atomic') return { value: yield* through(step.plan(), scope) }
  const { kind, name, rows } = step
  const isRead = kind === 'read'
  const answers: TransactionRows[] = []
  for (const row of rows) answers.push(yield* run(name, { ...row, ...scope }, isRead ? '' : WRITTEN))
  if (isRead) return answers.flat() as readonly Row[]
  return { written: answers.map(({ length }) => length > 0), now: scope.now }
}

function* run(name: StatementName, row: Row, ending = ''): TransactionSteps<TransactionRows> {
  let rows: TransactionRows = []
  for (const part of partsOf(name)) {
    const { text, names } = positional(part)
    rows = yield { text: text + ending, values: names.map((each) => toValue(row[each])) }
  }
  return rows
}

/** With `?` alone, which is what every library hands on, and without comments, whose text is none of its business. */
function positional({ text, bind }: Part): { readonly text: string; readonly names: readonly string[] } {
  const bare = text.replaceAll(/^--.*\n/gm, '')
  if (bind !== null) return { text: bare, names: bind }
  const names: string[] = []
  const replaced = bare.replaceAll(/:(\w+)/g, (_, name: string) => {
    names.push(name)
    return '?'
  })
  return { text: replaced, names }
}

function toValue(value: unknown): TransactionValue {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  if (typeof value === 'string' || typeof value === 'number' || value === null) return value
  throw new HoldfastError('INTERNAL', `a value of type ${typeof value} for a statement`)
}
