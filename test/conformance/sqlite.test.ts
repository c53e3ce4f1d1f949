/** The SQLite store passes every suite that its capabilities ask for, on a file of its own for each test. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { SQLITE_CAPABILITIES, SqliteBackend } from '#dist/src/backends/sqlite/backend.js'
import { describeBackend } from './harness.ts'

describeBackend({
  name: 'sqlite',
  capabilities: SQLITE_CAPABILITIES,
  open: async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-conformance-'))
    const path = join(folder, 'jobs.db')
    return {
      url: `sqlite:${path}`,
      backend: (options) => SqliteBackend.open({ ...options, path }),
      reopen: async () => {},
      damageState: async (jobId, state) => {
        const database = new Database(path)
        database.pragma('ignore_check_constraints = 1')
        database.prepare('UPDATE holdfast_job SET state = ? WHERE id = ?').run(state, jobId)
        database.close()
      },
      remove: () => rm(folder, { recursive: true, force: true }),
    }
  },
})
