/**
 * The statements of the store: files in `statement/`, parsed once when this file loads, prepared per connection at first use.
 * A file may hold several, one after the other for the same row; the last tells whether the row was written. Its headers:
 * `--! bind: a, b` binds by position, which costs half; `--! when: a b` runs a statement only for rows where these are set;
 * `--! arrays` gives rows as arrays, which costs less than half. `:ns` and `:now` are given to every statement.
 */
import type Database from 'better-sqlite3'
import type { AtomicStep, Plan, Row, Step, StepResult } from '../sql/plan.ts'
import { SHARED_STATEMENTS, SQLITE_STATEMENTS, type StatementName } from '../sql/statement-name.ts'
import { textAt } from '../sql/text.ts'
import { TEXTS } from './texts.js'

/** One statement of a file. */
export interface Part {
  readonly text: string
  readonly bind: readonly string[] | null
  readonly when: readonly string[]
  readonly arrays: boolean
}

const header = (text: string, name: string): string | null =>
  new RegExp(`^--! ${name}:?(.*)$`, 'm').exec(text)?.[1]?.trim() ?? null

function parseStatements(file: string): readonly Part[] {
  return file.split(/;[ \t]*\n/).map((text) => ({
    text: text.trim(),
    bind: header(text, 'bind')?.split(/,\s*/) ?? null,
    when: header(text, 'when')?.split(/\s+/) ?? [],
    arrays: header(text, 'arrays') !== null,
  }))
}

const files = new Map<StatementName, readonly Part[]>(
  [...SHARED_STATEMENTS, ...SQLITE_STATEMENTS].map((name) => [
    name,
    parseStatements(textAt(TEXTS, `statement/${name}.sql`)),
  ]),
)

export const partsOf = (name: StatementName): readonly Part[] => files.get(name) ?? []

interface Prepared {
  readonly part: Part
  readonly statement: Database.Statement<unknown[], unknown>
}

/** What every statement is given beside its row. */
export interface Scope {
  readonly ns: number
  readonly now: number
}

/** Runs plans on one connection, inside the transaction that is open. */
export class Statements {
  private readonly database: Database.Database
  private readonly prepared = new Map<StatementName, readonly Prepared[]>()

  constructor(database: Database.Database) {
    this.database = database
  }

  run<T>(plan: Plan<T>, scope: Scope): T {
    let turn = plan.next()
    while (turn.done !== true) turn = plan.next(this.step(turn.value, scope))
    return turn.value
  }

  private step(step: Step | AtomicStep, scope: Scope): StepResult {
    if (step.kind === 'atomic') return { value: this.run(step.plan(), scope) }
    const { kind, name, rows } = step
    const parts = this.prepare(name)
    if (kind === 'read') {
      if (rows.length === 1) return select(parts, rows[0] ?? {}, scope)
      return rows.flatMap((row) => select(parts, row, scope))
    }
    const changes = changesOf(parts, rows, scope)
    if (kind === 'write') return { written: changes.map((count) => count > 0), now: scope.now }
    return changes.reduce((total, count) => total + count, 0)
  }

  private prepare(name: StatementName): readonly Prepared[] {
    let parts = this.prepared.get(name)
    if (parts === undefined) {
      parts = partsOf(name).map((part) => {
        const statement = this.database.prepare<unknown[], unknown>(part.text)
        return { part, statement: part.arrays ? statement.raw(true) : statement }
      })
      this.prepared.set(name, parts)
    }
    return parts
  }
}

/** For each row what the last statement that it wanted has changed. Hot: a loop and no closures. */
function changesOf(parts: readonly Prepared[], rows: readonly Row[], scope: Scope): number[] {
  const changes: number[] = []
  for (const row of rows) {
    let changed = 0
    for (const { part, statement } of parts)
      if (isWanted(part, row)) changed = statement.run(valuesFor(part, row, scope)).changes
    changes.push(changed)
  }
  return changes
}

function select(parts: readonly Prepared[], row: Row, scope: Scope): readonly Row[] {
  let rows: readonly Row[] = []
  for (const { part, statement } of parts) {
    if (isWanted(part, row)) rows = statement.all(valuesFor(part, row, scope)) as Row[]
  }
  return rows
}

const isWanted = ({ when }: Part, row: Row): boolean =>
  when.length === 0 || when.every((name) => row[name] !== null && row[name] !== 0)

function valuesFor({ bind }: Part, row: Row, { ns, now }: Scope): unknown {
  if (bind === null) return { ...row, ns, now }
  const values: unknown[] = []
  for (const name of bind) values.push(name === 'ns' ? ns : name === 'now' ? now : row[name])
  return values
}
