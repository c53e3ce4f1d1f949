/** Every library that holds a transaction of SQLite enqueues in it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { connect } from 'holdfast'
import { expect } from 'vitest'
import { silent } from '../support/silent.ts'
import { describeLibraries } from './library.suite.ts'
import { SQLITE_LIBRARIES } from './sqlite-libraries.ts'

describeLibraries('enqueueTx on SQLite', SQLITE_LIBRARIES, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-transactional-'))
  const path = join(folder, 'app.db')
  const database = new Database(path)
  database.pragma('journal_mode = WAL')
  database.exec('CREATE TABLE orders (id INTEGER PRIMARY KEY)')
  // The table of jobs is made by the first client.
  await (await connect(`sqlite:${path}`, { logger: silent })).close()
  database.exec(`CREATE TRIGGER refusing BEFORE INSERT ON holdfast_job WHEN NEW.type = 'refused'
    BEGIN SELECT RAISE(ABORT, 'refused'); END`)
  return {
    refusal: {
      code: 'INTERNAL',
      details: { driverCode: expect.stringMatching(/^SQLITE_CONSTRAINT/), outcome: 'refused' },
    },
    connect: () => connect(`sqlite:${path}`, { logger: silent }),
    location: path,
    orders: async () => database.prepare<[], number>('SELECT id FROM orders ORDER BY id').pluck().all(),
    remove: async () => {
      database.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
})
