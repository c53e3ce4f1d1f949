/**
 * The statements of the store: files in `statement/`, parsed once when this file loads, with what they include put in and the
 * schema of the store in place of `holdfast`. `$1` is the namespace; then come the values of `--! args: name type, …` and the
 * columns of `--! rows: name type, …`, which are sent as arrays and unnested. `--! arrays` gives rows as arrays. A statement
 * of a `write` step selects the place of each row that was written, from 1, and the store's time.
 */
import type { Payload } from '../../job.ts'
import type { Row } from '../sql/plan.ts'
import { BYTES_MARK } from '../sql/row.ts'
import { POSTGRES_STATEMENTS, SHARED_STATEMENTS, type StatementName } from '../sql/statement-name.ts'
import { textAt } from '../sql/text.ts'
import { arrayLiteral } from './array-literal.ts'
import type { Prepared, RowMode } from './link.ts'
import { TEXTS } from './texts.js'

export interface Column {
  readonly name: string
  readonly type: string
}

export interface Statement extends Prepared {
  readonly args: readonly Column[]
  readonly rows: readonly Column[]
  readonly mode: RowMode
}

const read = (path: string): string => textAt(TEXTS, `${path}.sql`).trim()

const INCLUDE = /^--@include (\w+)(,?)$/gm
const COMMENT = /^--.*\n/gm
/** Names of the schema in the files; elsewhere the word does not occur. */
const SCHEMA = /\bholdfast\./g

const withIncludes = (text: string): string =>
  text.replace(INCLUDE, (_line, name: string, comma: string) => withIncludes(read(`include/${name}`)) + comma)

function columnsOf(file: string, field: 'args' | 'rows'): readonly Column[] {
  const line = new RegExp(`^--! ${field}: (.*)$`, 'm').exec(file)?.[1]
  if (line === undefined) return []
  return line.split(/,\s*/).map((column) => {
    const [name = '', type = ''] = column.trim().split(' ')
    return { name, type }
  })
}

const files = new Map<StatementName, Omit<Statement, 'name'>>(
  [...SHARED_STATEMENTS, ...POSTGRES_STATEMENTS].map((name) => {
    const file = read(`statement/${name}`)
    const whole = withIncludes(file)
    return [
      name,
      {
        text: `${whole}\n`.replace(COMMENT, '').trim(),
        args: columnsOf(file, 'args'),
        rows: columnsOf(file, 'rows'),
        mode: /^--! arrays$/m.test(file) ? 'array' : 'object',
        isClaiming: name === 'job_claim' || name === 'job_grant' || name === 'job_turn',
        isWriting: /\b(?:INSERT INTO|UPDATE|DELETE FROM) holdfast\./.test(whole),
      },
    ]
  }),
)

/** A name in double quotes. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** The text of a file with the schema of a store in place. */
export const inSchema = (text: string, schema: string): string => text.replace(SCHEMA, `${quoted(schema)}.`)

export class Statements {
  readonly schema: string
  private readonly made = new Map<StatementName, Statement>()

  constructor(schema: string) {
    this.schema = schema
  }

  get(name: StatementName): Statement {
    let statement = this.made.get(name)
    if (statement === undefined) {
      const file = files.get(name)
      if (file === undefined) throw new Error(`${name} is no statement of PostgreSQL`)
      statement = { ...file, name, text: inSchema(file.text, this.schema) }
      this.made.set(name, statement)
    }
    return statement
  }
}

/** A value as one text: JSON as it is, bytes in hexadecimal behind a mark, nothing as an empty row of bytes. */
function valueText(value: Payload): string {
  if (typeof value === 'string') return value === '' ? BYTES_MARK : value
  return BYTES_MARK + Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')
}

function encode(value: unknown, type: string): unknown {
  if (value === null || value === undefined) return null
  if (type === 'value') return valueText(value as Payload)
  return type === 'bigint' && typeof value === 'number' ? Math.round(value) : value
}

/** Nothing at all is what the server puts in by itself, up to the longest column, and does not have to read first. */
const column = (values: readonly unknown[]): string =>
  values.every((value) => value === null) ? '{}' : arrayLiteral(values)

/** What is bound to the parameters of a statement. */
export function valuesFor(
  statement: Statement,
  ns: number,
  { rows, args }: { readonly rows: readonly Row[]; readonly args?: Row },
): unknown[] {
  // A command of the server's own takes no values.
  if (!statement.text.includes('$')) return []
  const said = args ?? rows[0] ?? {}
  const values: unknown[] = [ns]
  for (const { name, type } of statement.args) {
    const value = said[name]
    values.push(Array.isArray(value) ? arrayLiteral(value) : encode(value, type))
  }
  for (const { name, type } of statement.rows) values.push(column(rows.map((row) => encode(row[name], type))))
  return values
}
