/** The tables of a SQLite store, read past it, for a recount of all that is in them. */
import Database from 'better-sqlite3'
import { recount, type Tables } from '../sql/recount.ts'

const COLUMNS = `seq, ns, id, lane, state, attempts, max_attempts, lease_epoch, idempotency_key, token, worker_id, started_at,
  cancel_requested, recorded`
const LIVE = `SELECT ${COLUMNS}, lease_expires_at FROM holdfast_job`
const ENDED = `SELECT ${COLUMNS}, 0 AS history FROM holdfast_archive`

type Raw = { readonly recorded: number; readonly cancel_requested: number }
const withFlags = <R extends Raw>(row: R) => ({
  ...row,
  recorded: row.recorded === 1,
  cancel_requested: row.cancel_requested === 1,
})

export function dumpTables(database: Database.Database): Tables {
  const all = (text: string): never[] => database.prepare(text).all() as never[]
  return database.transaction(() => ({
    jobs: all(LIVE).map(withFlags),
    archive: all(ENDED).map(withFlags),
    attempts: all('SELECT job_seq, lease_epoch FROM holdfast_attempt'),
    lines: all('SELECT job_seq FROM holdfast_job_log'),
    keys: null,
    counters: null,
  }))()
}

/** What a recount of all tables and a check of the file find wrong; empty: nothing. */
export function miscounts(path: string): readonly string[] {
  const database = new Database(path)
  try {
    const integrity = String(database.pragma('integrity_check', { simple: true }))
    return [...recount(dumpTables(database)), ...(integrity === 'ok' ? [] : [integrity])]
  } finally {
    database.close()
  }
}
