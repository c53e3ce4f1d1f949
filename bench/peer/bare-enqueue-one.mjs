// The floor of one awaited enqueue on SQLite: a row of the same payload inserted and committed by better-sqlite3 itself, in a
// loop on the main thread, with the same journal mode and synchronous=FULL.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { inputOf, perSecond, prove } from '../scenario/shared.mjs'

export const name = 'bare insert and commit'
export const version = JSON.parse(
  readFileSync(new URL('../../node_modules/better-sqlite3/package.json', import.meta.url), 'utf8'),
).version
export const settings =
  'better-sqlite3, WAL, synchronous=FULL, one INSERT a transaction, text id and JSON payload, one index'

export async function run(options) {
  const db = new Database(join(options.folder, 'bare.db'))
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec('CREATE TABLE job (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, payload TEXT NOT NULL)')
  const insert = db.prepare('INSERT INTO job (id, payload) VALUES (?, ?)')
  const startedAt = performance.now()
  for (let index = 0; index < options.jobs; index += 1) {
    insert.run(`default/${String(index).padStart(26, '0')}`, JSON.stringify(inputOf(options.payloadBytes, index)))
  }
  const elapsed = performance.now() - startedAt
  prove('bare', db.prepare('SELECT count(*) FROM job').pluck().get(), options.jobs)
  db.close()
  return perSecond(options.jobs, elapsed)
}
