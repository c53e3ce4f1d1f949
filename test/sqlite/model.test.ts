/** The SQLite store against the memory store: the same commands give the same replies and leave the same jobs. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SqliteStore } from '#dist/src/backends/sqlite/store.js'
import { ALL_STATES, MODEL_OPTIONS, MODEL_TIMEOUT_MS, modelRun, play } from '../model/store-commands.ts'
import { excuseSameTime, Pair, type Subject } from '../model/store-pair.ts'
import { ManualClock, openStore } from './support.ts'

/** Attempts whose job is gone, or does not know of them. */
const ORPHANS = `SELECT job_seq FROM holdfast_attempt WHERE job_seq NOT IN (
  SELECT seq FROM holdfast_job WHERE recorded = 1 UNION SELECT seq FROM holdfast_archive WHERE recorded = 1)`
/** Jobs that are live and archived at once. */
const DOUBLES = 'SELECT id FROM holdfast_job INTERSECT SELECT id FROM holdfast_archive'

function checkTables(store: SqliteStore): void {
  const { database } = store.connection
  for (const query of [ORPHANS, DOUBLES]) expect(database.prepare(query).all(), query).toEqual([])
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
}

test(
  `the same replies as the memory store, seed ${MODEL_OPTIONS.seed}`,
  async () => {
    const states = new Set<string>()
    await fc.assert(
      fc.asyncProperty(modelRun, async (run) => {
        const clock = new ManualClock()
        const store = openStore({}, clock)
        const subject: Subject = {
          clock,
          call: async (type, request) => store.call(type, request),
          excuse: excuseSameTime,
        }
        await play(run, new Pair(subject, run.isForgetful), states)
        checkTables(store)
        store.close()
      }),
      MODEL_OPTIONS,
    )
    expect([...states].sort()).toEqual(ALL_STATES)
  },
  MODEL_TIMEOUT_MS,
)
