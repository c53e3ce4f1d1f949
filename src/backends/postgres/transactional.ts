/**
 * Enqueues through a connection of the caller's, inside the transaction that is open on it: the plan of an ordinary enqueue, its
 * statements handed to the caller's library one by one. Libraries differ in how they send arrays, numbers and JSON and in how they
 * name and decode columns, so every parameter goes as text with a cast, and what is read comes as text.
 */
import { HoldfastError, invalidArgument } from '../../errors.ts'
import type { JobDefinition } from '../../job.ts'
import type { EnqueueResult } from '../protocol/index.ts'
import { enqueue } from '../sql/enqueue.ts'
import type { AtomicStep, Plan, Row, Step, StepResult } from '../sql/plan.ts'
import {
  driverErrorOf,
  firstValue,
  type TransactionalEnqueue,
  type TransactionRows,
  type TransactionSteps,
  type TransactionValue,
} from '../transactional.ts'
import { payloadOf } from './channel.ts'
import { verdictOf } from './errors.ts'
import type { Link } from './link.ts'
import { inSchema, type Statement, type Statements, valuesFor } from './statement.ts'

export interface PostgresTransactionalOptions {
  readonly statements: Statements
  /** Of the namespace, found in no other store. */
  readonly mark: string
  /** Of the store, for errors. */
  readonly server: string
  /** Where idle workers hear of it once it is committed; null: nobody is told. */
  readonly channel: string | null
}

export class PostgresTransactional implements TransactionalEnqueue {
  readonly dialect = 'postgres'
  private readonly options: PostgresTransactionalOptions
  /** By the name of the statement, which is always of the same kind. */
  private readonly texts = new Map<string, string>()

  constructor(options: PostgresTransactionalOptions) {
    this.options = options
  }

  *enqueue(job: JobDefinition): TransactionSteps<EnqueueResult> {
    const { results } = yield* this.follow(enqueue({ jobs: [job], resend: false }, true))
    const [result] = results
    if (result === undefined) throw new HoldfastError('INTERNAL', 'an enqueue was left unanswered')
    const { channel } = this.options
    // PostgreSQL delivers it at the commit, and equal ones of a transaction once.
    if (channel !== null && result.outcome === 'created' && result.state === 'queued')
      yield { text: 'SELECT pg_notify($1::text, $2::text)::text', values: [channel, payloadOf(new Set([job.lane]))] }
    return result
  }

  private *follow<T>(plan: Plan<T>): TransactionSteps<T> {
    let turn = plan.next()
    while (turn.done !== true) turn = plan.next(yield* this.step(turn.value))
    return turn.value
  }

  private *step(step: Step | AtomicStep): TransactionSteps<StepResult> {
    if (step.kind === 'atomic') return { value: yield* this.follow(step.plan()) }
    const { statements, mark } = this.options
    const statement = statements.get(step.name)
    const [, ...values] = valuesFor(statement, 0, step)
    const isRead = step.kind === 'read'
    const rows = yield { text: this.textOf(statement, isRead), values: [mark, ...values.map(toText)] }
    return isRead ? rows.map((row) => readRow([row])) : writtenOf(step, rows)
  }

  private textOf({ name, text }: Statement, isRead: boolean): string {
    let made = this.texts.get(name)
    if (made === undefined) {
      const inText = castToText(text, inSchema(NAMESPACE, this.options.statements.schema))
      made = isRead ? asJson(inText) : inText
      this.texts.set(name, made)
    }
    return made
  }

  toError(cause: unknown): HoldfastError {
    const { server } = this.options
    const { code, message } = driverErrorOf(cause)
    const refusal = REFUSALS[code]
    if (refusal !== undefined) {
      const problem = refusal.replace('SERVER', server)
      return invalidArgument('transaction', problem, { outcome: 'refused', sqlState: code })
    }
    // Whatever ends the transaction undoes what was done in it.
    if (!SQL_STATE.test(code)) return verdictOf(cause, server, 'transaction').error
    return verdictOf(Object.assign(new Error(message), { code, severity: 'ERROR' }), server, 'transaction').error
  }
}

const SQL_STATE = /^[0-9A-Z]{5}$/
const ELSEWHERE = 'its database is not that of the store, at SERVER'

/** By SQLSTATE: what is wrong with the transaction and not with the store. */
const REFUSALS: Readonly<Record<string, string>> = {
  '25P01': 'no transaction is open on it; run BEGIN first',
  '25P02': 'it has failed and can only be rolled back',
  '25006': 'it is read-only',
  '23502': ELSEWHERE,
  '3F000': ELSEWHERE,
  '42P01': ELSEWHERE,
  '42703': ELSEWHERE,
}

const NAMESPACE = '(SELECT ns FROM holdfast.namespace WHERE mark = $1::text::uuid)'
const MARK = 'SELECT mark::text FROM holdfast.namespace WHERE ns = $1'

/** What only this namespace of this store has. */
export async function markOf(link: Link, schema: string, ns: number): Promise<string> {
  const { rows } = await link.query({ name: 'namespace_mark', text: inSchema(MARK, schema) }, [ns], 'array')
  const [row] = rows as readonly (readonly string[])[]
  if (row?.[0] === undefined) throw new HoldfastError('INTERNAL', 'the namespace of the store is gone')
  return row[0]
}

/** Every parameter as text; the first is the mark, which only the database of the store leads to a namespace. */
function castToText(text: string, namespace: string): string {
  return text.replaceAll(/\$(\d+)/g, (parameter) => (parameter === '$1' ? namespace : `${parameter}::text`))
}

const asJson = (text: string): string => `SELECT row_to_json(answer)::text AS answer FROM (\n${text}\n) AS answer`

const toText = (value: unknown): TransactionValue => (value === null || value === undefined ? null : String(value))

const readRow = (rows: TransactionRows): Row => JSON.parse(String(firstValue(rows)))

/** The place of a row that was written and the time of the store, by position; some libraries give them as text. */
function writtenOf({ rows }: Step, answers: TransactionRows): StepResult {
  const written = rows.map(() => false)
  let now = 0
  for (const answer of answers) {
    const [i, at] = Object.values(answer).map(Number)
    written[(i ?? 0) - 1] = true
    now = at ?? 0
  }
  return { written, now }
}
