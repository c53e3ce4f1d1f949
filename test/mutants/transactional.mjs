/** Bugs planted in `enqueueTx`: transactions that are none, errors that are heard too late, times, keys, other databases. */

const SQLITE = 'src/backends/sqlite/transactional.js'
const POSTGRES = 'src/backends/postgres/transactional.js'

const LIBRARIES = 'test/transactional/sqlite.test.ts'
const SYNCHRONOUS = 'test/transactional/synchronous.test.ts'
const REFUSAL = 'test/transactional/refusal.test.ts'
const TRANSACTION = 'test/transactional/postgres-transaction.test.ts'

/** @type {readonly import('./catalog.mjs').Mutant[]} */
export const TRANSACTIONAL_MUTANTS = [
  {
    name: 'tx-rejects-where-only-a-throw-is-heard',
    file: 'src/enqueue-tx.js',
    find: 'return Promise.resolve(enqueueNow(context, caller, request));',
    replace: 'return (async () => enqueueNow(context, caller, request))();',
    suites: [SYNCHRONOUS],
  },
  {
    name: 'tx-waits-before-it-writes',
    file: 'src/enqueue-tx.js',
    find: 'return Promise.resolve(enqueueNow(context, caller, request));',
    replace: 'return Promise.resolve().then(() => enqueueNow(context, caller, request));',
    suites: [SYNCHRONOUS],
  },
  {
    name: 'tx-written-without-a-transaction',
    file: 'src/enqueue-tx.js',
    find: 'caller.requireOpen();',
    replace: '',
    suites: [SYNCHRONOUS],
    second: [REFUSAL],
  },
  {
    name: 'tx-takes-an-asynchronous-schema-for-valid',
    file: 'src/enqueue-tx.js',
    find: `checking.catch(() => { }); // What it comes to no longer matters.
        throw `,
    replace: `checking.catch(() => { });
        void `,
    suites: [SYNCHRONOUS],
  },
  {
    name: 'tx-result-does-not-wait-for-the-commit',
    file: 'src/job-operations.js',
    find: 'isCommitted: false',
    replace: 'isCommitted: true',
    suites: [LIBRARIES],
    only: 'BEGIN and COMMIT',
  },
  {
    name: 'tx-sqlite-any-file',
    file: SQLITE,
    find: 'this.requireSameFile(firstValue(yield { text: MAIN_FILE, values: [] }));',
    replace: '',
    suites: [SYNCHRONOUS],
  },
  {
    name: 'tx-sqlite-what-is-known-counts-as-written',
    file: SQLITE,
    find: 'length > 0',
    replace: 'length >= 0',
    suites: [LIBRARIES],
    only: 'a key that is known',
  },
  {
    name: 'tx-postgres-any-database',
    file: POSTGRES,
    find: 'WHERE mark = $1::text::uuid)',
    replace: 'WHERE $1::text IS NOT NULL LIMIT 1)',
    suites: [TRANSACTION],
    only: 'another database',
  },
  {
    name: 'tx-postgres-idle-client-taken-for-a-transaction',
    file: 'src/transactions/pg.js',
    find: "statusOf(value) === 'T' ? null : probe(",
    replace: "statusOf(value) !== 'E' ? null : probe(",
    suites: [TRANSACTION],
    only: 'without a transaction',
  },
  {
    name: 'what-has-no-key-waits-beside-what-has-one',
    file: 'src/actors/backend-actor.js',
    find: 'isKeyed(enqueue) ? this.keyedEnqueues : this.enqueues',
    replace: 'this.enqueues',
    suites: ['test/transactional/postgres-transaction.test.ts'],
    only: 'what has no key',
  },
  {
    name: 'a-request-that-waits-has-no-deadline',
    file: 'src/actors/merger.js',
    find: 'this.limitPatience(waiting);',
    replace: '',
    suites: ['test/runtime/merger.test.ts'],
  },
  {
    name: 'tx-postgres-what-was-said-last-holds',
    file: 'src/transactions/pg.js',
    find: "isQuiet(value) && statusOf(value) === 'T'",
    replace: "statusOf(value) === 'T'",
    suites: ['test/transactional/postgres-transaction.test.ts'],
    only: 'is under way has ended',
  },
]
