/** Every statement is a file, prepares, and finds its rows by an index that fits; also after statistics were gathered. */
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { SHARED_STATEMENTS, SQLITE_STATEMENTS, type StatementName } from '#dist/src/backends/sql/statement-name.js'
import { partsOf } from '#dist/src/backends/sqlite/statement.js'
import type { SqliteStore } from '#dist/src/backends/sqlite/store.js'
import { job, openStore } from './support.ts'

const STATEMENTS: readonly StatementName[] = [...SHARED_STATEMENTS, ...SQLITE_STATEMENTS]

const textsOf = (name: StatementName): readonly string[] => partsOf(name).map(({ text }) => text.replace(/--.*/g, ''))

function planOf({ connection }: SqliteStore, name: StatementName): readonly string[] {
  return textsOf(name).flatMap((text) => {
    const named = [...text.matchAll(/:(\w+)/g)].map(([, key]) => [key, null])
    const bound = named.length > 0 ? Object.fromEntries(named) : [...text.matchAll(/\?/g)].map(() => null)
    const rows = connection.database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`).all(bound)
    return rows.map(({ detail }) => detail)
  })
}

/** What must be in the plan: the look-up that keeps the statement fast in a large file. */
const LOOK_UPS: Partial<Record<StatementName, string>> = {
  ready_list: 'SEARCH holdfast_job USING INDEX holdfast_job_ready (ns=? AND lane=?)',
  ready_first: 'SEARCH holdfast_job USING COVERING INDEX holdfast_job_ready (ns=? AND lane=?)',
  holder_count: 'SEARCH holdfast_job USING INDEX holdfast_job_lease (ns=?)',
  ready_keys: 'SEARCH holdfast_job USING INDEX holdfast_job_ready (ns=? AND lane=?)',
  parked_keys: 'SEARCH holdfast_job USING COVERING INDEX holdfast_job_parked (ns=? AND lane=? AND concurrency_key>?)',
  parked_first: 'SEARCH holdfast_job USING INDEX holdfast_job_parked (ns=? AND lane=? AND concurrency_key=?)',
  due_next: 'SEARCH holdfast_job USING COVERING INDEX holdfast_job_due (ns=? AND lane=?)',
  due_promote: 'SEARCH holdfast_job USING COVERING INDEX holdfast_job_due (ns=? AND lane=? AND run_at<?)',
  deadline_passed: 'SEARCH holdfast_job USING INDEX holdfast_job_deadline (ns=? AND lane=? AND deadline_at<?)',
  lease_expired: 'SEARCH holdfast_job USING INDEX holdfast_job_lease (ns=? AND lease_expires_at<?)',
  lease_grant: 'SEARCH holdfast_job USING INTEGER PRIMARY KEY (rowid=?)',
  lease_renew: 'SEARCH holdfast_job USING INDEX holdfast_job_id (ns=? AND id=?)',
  job_delete: 'SEARCH holdfast_job USING INDEX holdfast_job_id (ns=? AND id=?)',
  job_end: 'SEARCH holdfast_job USING INDEX holdfast_job_id (ns=? AND id=?)',
  job_find_key: 'SEARCH holdfast_job USING INDEX holdfast_job_key (ns=? AND lane=? AND idempotency_key=?)',
  archive_prune: 'SEARCH holdfast_archive USING COVERING INDEX holdfast_archive_keep (ns=? AND keep_until<?)',
  output_drop: 'SEARCH holdfast_archive USING COVERING INDEX holdfast_archive_output (ns=? AND output_until<?)',
  archive_list: 'SEARCH holdfast_archive USING INTEGER PRIMARY KEY (rowid<?)',
  archive_list_lane:
    'SEARCH holdfast_archive USING INDEX holdfast_archive_lane (ns=? AND lane=? AND state=? AND rowid<?)',
  archive_list_state:
    'SEARCH holdfast_archive USING INDEX holdfast_archive_unsuccessful (ns=? AND state=? AND rowid<?)',
  job_list: 'SEARCH holdfast_job USING INTEGER PRIMARY KEY (rowid<?)',
}

/** Counts may group what they have found, and workers are few; nothing else may sort or read a whole table. */
const MAY_SORT: readonly StatementName[] = ['stats_count', 'stats_count_lane', 'worker_list', 'holder_count']

function expectGoodPlans(store: SqliteStore): void {
  for (const name of STATEMENTS) {
    const plan = planOf(store, name)
    if (LOOK_UPS[name] !== undefined) expect(plan, name).toContain(LOOK_UPS[name])
    expect(
      plan.filter((line) => /^SCAN holdfast_/.test(line)),
      name,
    ).toEqual([])
    if (!MAY_SORT.includes(name))
      expect(
        plan.filter((line) => line.includes('TEMP B-TREE')),
        name,
      ).toEqual([])
  }
}

test('the folder holds the statements of the list and no others', () => {
  const folder = fileURLToPath(new URL('../../src/backends/sqlite/statement', import.meta.url))
  expect(readdirSync(folder).sort()).toEqual(STATEMENTS.map((name) => `${name}.sql`).sort())
})

test('statements of an empty store look up what they need', () => {
  const store = openStore()
  expectGoodPlans(store)
  store.close()
})

test('statistics of a lopsided store do not change the plans', () => {
  const store = openStore()
  const jobs = Array.from({ length: 2_000 }, (_, index) => job(String(index), { lane: index === 0 ? 'odd' : 'mail' }))
  store.call('job.enqueue', { jobs })
  store.connection.database.exec('ANALYZE')
  const { connection } = store
  expect(connection.database.prepare('SELECT count(*) FROM sqlite_stat1').pluck().get()).toBeGreaterThan(0)
  expectGoodPlans(store)
  store.close()
})

test('a write after the claim names the whole token', () => {
  const guarded: readonly StatementName[] = [
    'job_delete',
    'job_end',
    'job_note',
    'job_release',
    'job_requeue',
    'job_retry',
    'lease_forget',
    'lease_renew',
    'log_add',
  ]
  for (const name of guarded) for (const text of textsOf(name)) expect(text, name).toMatch(/\btoken (=|IS) (:token|\?)/)
})

test('every statement on jobs names the namespace or the number of a row it found by it', () => {
  for (const name of STATEMENTS) {
    for (const text of textsOf(name)) {
      if (!/holdfast_(job|archive|lane)\b/.test(text)) continue
      expect(text, name).toMatch(/\bns = (:ns|\?)|WHERE seq = (\?|:seq)|VALUES \(\s*:ns/)
    }
  }
})
