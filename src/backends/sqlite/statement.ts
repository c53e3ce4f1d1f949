/**
 * The statements of the store: one file each in `statement/`, read once when this file loads, prepared per connection at
 * first use. A name that is not in the list does not compile; a test compares the list with the folder.
 */
import { readFileSync } from 'node:fs'
import type Database from 'better-sqlite3'

export const STATEMENTS = [
  'archive_forget',
  'archive_get',
  'archive_list',
  'archive_list_completed',
  'archive_list_lane',
  'archive_list_state',
  'archive_prune',
  'attempt_add',
  'attempt_delete',
  'attempt_last',
  'attempt_list',
  'cancel_request',
  'deadline_lanes',
  'deadline_passed',
  'due_lanes',
  'due_next',
  'due_promote',
  'job_archive',
  'job_delete',
  'job_delete_recorded',
  'job_enqueue',
  'job_find',
  'job_find_key',
  'job_get',
  'job_list',
  'job_progress',
  'job_promote',
  'job_release',
  'job_requeue',
  'job_retry',
  'lane_find',
  'lane_list',
  'lane_pause',
  'lane_resume',
  'lease_expired',
  'lease_forget',
  'lease_grant',
  'lease_held',
  'lease_renew',
  'namespace_add',
  'namespace_find',
  'output_drop',
  'ready_first',
  'ready_list',
  'stats_count',
  'stats_count_lane',
] as const

export type StatementName = (typeof STATEMENTS)[number]

const texts = new Map<StatementName, string>(
  STATEMENTS.map((name) => [name, readFileSync(new URL(`./statement/${name}.sql`, import.meta.url), 'utf8')]),
)

/** The text of a statement. */
export function statementText(name: StatementName): string {
  return texts.get(name) ?? ''
}

/** By name, or by position where the statement says so. */
type Parameters = Readonly<Record<string, unknown>> | readonly unknown[]
type Prepared = Database.Statement<unknown[], unknown>

/** Statements bound to one connection. `Row` is what the statement selects; the callers name it beside the call. */
export class Statements {
  private readonly database: Database.Database
  private readonly prepared = new Map<StatementName, Prepared>()

  constructor(database: Database.Database) {
    this.database = database
  }

  prepare(name: StatementName): Prepared {
    let statement = this.prepared.get(name)
    if (statement === undefined) {
      statement = this.database.prepare<unknown[], unknown>(statementText(name))
      this.prepared.set(name, statement)
    }
    return statement
  }

  /** How many rows were written. */
  run(name: StatementName, parameters: Parameters): number {
    return this.prepare(name).run(parameters).changes
  }

  get<Row>(name: StatementName, parameters: Parameters): Row | undefined {
    return this.prepare(name).get(parameters) as Row | undefined
  }

  /** Rows as arrays in the order of the columns: less than half the cost of objects. */
  allRaw<Row>(name: StatementName, parameters: Parameters): readonly Row[] {
    return this.prepare(name).raw(true).all(parameters) as Row[]
  }

  all<Row>(name: StatementName, parameters: Parameters): readonly Row[] {
    return this.prepare(name).all(parameters) as Row[]
  }
}

/** What every operation of the store works with. `now` is the store's time of the message at hand. */
export interface Session {
  readonly sql: Statements
  readonly ns: number
  now(): number
}
