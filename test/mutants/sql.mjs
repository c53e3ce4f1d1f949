/** Bugs planted in what the SQL stores do under faults: what is synced, swept, written plainly, tried again, and no longer followed. */

const POSTGRES = 'src/backends/postgres'
const SQLITE = 'src/backends/sqlite'

/** @type {readonly import('./catalog.mjs').Mutant[]} */
export const SQL_MUTANTS = [
  {
    name: 'sqlite-does-not-wait-for-the-disk',
    file: `${SQLITE}/connection.js`,
    find: "database.pragma('synchronous = FULL')",
    replace: "database.pragma('synchronous = NORMAL')",
    suites: ['test/sqlite/power.test.ts'],
  },
  {
    name: 'sqlite-follows-no-ledger',
    file: `${SQLITE}/store.js`,
    find: 'this.followLedger();',
    replace: '',
    suites: ['test/sqlite/cases.test.ts'],
  },
  {
    name: 'postgres-follows-no-ledger',
    file: `${POSTGRES}/backend.js`,
    find: 'await this.followLedger();',
    replace: '',
    suites: ['test/postgres/cases.test.ts'],
    only: 'beside a migration',
  },
  {
    name: 'postgres-sweeps-what-runs',
    file: `${POSTGRES}/sweep.js`,
    find: 'SELECT * FROM pg_temp.holdfast_live',
    replace: 'SELECT * FROM pg_temp.holdfast_live WHERE token IS NULL',
    suites: ['test/postgres/sweep.test.ts'],
    only: 'as it was',
  },
  {
    name: 'postgres-sweeps-what-is-alive',
    file: `${POSTGRES}/sweep.js`,
    find: 'size >= TIMES_MIN * bytes',
    replace: 'size >= bytes',
    suites: ['test/postgres/sweep.test.ts'],
    only: 'most is alive',
  },
  {
    name: 'sql-key-that-was-freed-is-not-taken',
    file: 'src/backends/sql/enqueue.js',
    find: 'const TRIES_MAX = 10',
    replace: 'const TRIES_MAX = 0',
    suites: ['test/sql/enqueue.test.ts'],
  },
]
