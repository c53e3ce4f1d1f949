/** Bugs planted in the PostgreSQL store: guards and bounds of its statements, whose clock counts, what may have been done, connections. */

const POSTGRES = 'src/backends/postgres'
const STATEMENT = `${POSTGRES}/statement`
const INCLUDE = `${POSTGRES}/include`
const SQL = 'src/backends/sql'

const ENQUEUE = 'test/postgres/enqueue.test.ts'
const MODEL = 'test/postgres/model.test.ts'
const PLAN = 'test/postgres/plan.test.ts'
const CLOCK = 'test/postgres/clock.test.ts'
const LINK = 'test/postgres/link.test.ts'
const FAULTS = 'test/postgres/link-faults.test.ts'
const ERRORS = 'test/postgres/errors.test.ts'

const TOKEN = ' AND job.token = input.token'
const TOKEN_OR_NONE = ' AND job.token IS NOT DISTINCT FROM input.token'

/** @type {readonly import('./catalog.mjs').Mutant[]} */
export const POSTGRES_MUTANTS = [
  {
    name: 'postgres-job-turn-without-token',
    file: `${STATEMENT}/job_turn.sql`,
    find: TOKEN,
    replace: '',
    suites: ['test/postgres/statement.test.ts'],
    only: 'a turn ends no job',
  },
  ...['job_retry', 'job_release', 'job_requeue', 'lease_renew', 'job_note'].map((name) => ({
    name: `postgres-${name.replace('_', '-')}-without-token`,
    file: `${STATEMENT}/${name}.sql`,
    find: TOKEN,
    replace: '',
    suites: [MODEL],
  })),
  {
    name: 'postgres-job-end-without-token',
    file: `${STATEMENT}/job_end.sql`,
    find: TOKEN_OR_NONE,
    replace: '',
    suites: [MODEL],
  },
  {
    name: 'postgres-job-delete-without-token',
    file: `${STATEMENT}/job_delete.sql`,
    find: TOKEN_OR_NONE,
    replace: '',
    suites: ['test/conformance/postgres.test.ts'],
    only: '24 a claim that was given back',
  },
  {
    name: 'postgres-reaps-a-lease-that-was-renewed',
    file: `${STATEMENT}/job_requeue.sql`,
    find: ' AND (input.if_expired = 0 OR job.lease_expires_at <= clock.now)',
    replace: '',
    suites: [MODEL],
  },
  {
    name: 'postgres-limit-for-each-lane',
    file: `${INCLUDE}/claim.sql`,
    find: `  WHERE NOT (SELECT is_blocked FROM state)
  LIMIT $3::bigint`,
    replace: '  WHERE NOT (SELECT is_blocked FROM state)',
    suites: [MODEL],
  },

  {
    name: 'postgres-lease-forget-without-token',
    file: `${STATEMENT}/lease_forget.sql`,
    find: TOKEN,
    replace: '',
    suites: ['test/postgres/statement.test.ts'],
  },
  {
    name: 'postgres-partly-done-told-as-not-done',
    file: `${POSTGRES}/runner.js`,
    find: 'hasWritten && isHoldfastError(error)',
    replace: 'false && isHoldfastError(error)',
    suites: ['test/postgres/runner.test.ts'],
  },
  {
    name: 'postgres-days-not-made-ahead',
    file: `${POSTGRES}/upkeep.js`,
    find: 'if (!known.has(day))',
    replace: 'if (known.has(day))',
    suites: ['test/postgres/upkeep.test.ts'],
  },
  {
    name: 'postgres-day-dropped-while-it-lasts',
    file: `${POSTGRES}/upkeep.js`,
    find: 'if (day < look.today)',
    replace: 'if (day <= look.today)',
    suites: ['test/postgres/upkeep.test.ts'],
  },
  {
    name: 'postgres-dropped-records-still-counted',
    file: `${POSTGRES}/upkeep.js`,
    find: 'lane, state, -count(*) FROM',
    replace: 'lane, state, 0 * count(*) FROM',
    suites: ['test/postgres/upkeep.test.ts'],
  },
  {
    name: 'postgres-grants-by-state',
    file: `${INCLUDE}/claim.sql`,
    find: "job.state || '' = 'queued'\n--@include by_seq",
    replace: "job.seq = input.seq AND job.ns = $1 AND job.lane = ANY ($2::text[]) AND job.state = 'queued'",
    suites: [PLAN],
  },
  {
    name: 'postgres-renews-by-state',
    file: `${STATEMENT}/lease_renew.sql`,
    find: "job.state || '' = 'running'",
    replace: "job.state = 'running'",
    suites: [PLAN],
  },

  {
    name: 'postgres-looks-up-as-the-planner-likes',
    file: `${INCLUDE}/by_id.sql`,
    find: 'job.ns = ANY (ARRAY[$1 + 0 * input.i::integer])',
    replace: 'job.ns = $1',
    suites: [PLAN],
  },
  {
    name: 'postgres-grants-as-the-planner-likes',
    file: `${INCLUDE}/by_seq.sql`,
    find: 'job.seq = ANY (ARRAY[input.seq])',
    replace: 'job.seq = input.seq',
    suites: [PLAN],
  },
  {
    name: 'postgres-keys-as-the-planner-likes',
    file: `${INCLUDE}/ending.sql`,
    find: 'key.ns = ANY (ARRAY[ended.ns])',
    replace: 'key.ns = ended.ns',
    suites: [PLAN],
  },
  {
    name: 'postgres-records-as-the-planner-likes',
    file: `${INCLUDE}/record_by_id.sql`,
    find: 'archive.ns + 0 = $1 AND archive.id = ANY (ARRAY[input.id])',
    replace: 'archive.ns = $1 AND archive.id = input.id',
    suites: [PLAN],
  },
  {
    name: 'postgres-sorts-what-is-in-order',
    file: `${POSTGRES}/own-pool.js`,
    find: ", 'enable_sort=off'",
    replace: '',
    suites: [PLAN],
  },
  {
    name: 'postgres-paused-lane-granted',
    file: `${INCLUDE}/claim.sql`,
    find: ' AND policy.paused',
    replace: ' AND NOT policy.paused',
    suites: [MODEL],
  },
  {
    name: 'postgres-grants-before-chores',
    file: `${INCLUDE}/claim.sql`,
    find: 'WHERE NOT (SELECT is_blocked FROM state)',
    replace: 'WHERE true',
    suites: [MODEL],
  },
  ...['job_add', 'job_enqueue', 'lease_renew', 'job_retry', 'job_claim', 'job_turn'].map((name) => ({
    name: `postgres-${name.replace('_', '-')}-by-the-begin-of-the-transaction`,
    file: `${STATEMENT}/${name}.sql`,
    find: 'clock_timestamp()',
    replace: 'now()',
    suites: [CLOCK],
  })),
  {
    name: 'postgres-due-by-the-clock-of-the-client',
    file: `${POSTGRES}/claim.js`,
    find: 'dueAt - row[18]',
    replace: 'dueAt - Date.now()',
    suites: [MODEL],
  },
  {
    name: 'sql-state-by-the-clock-of-the-client',
    file: `${SQL}/enqueue.js`,
    find: 'runAtOf(job, now) > now',
    replace: 'runAtOf(job, now) > Date.now()',
    suites: [MODEL],
  },
  {
    name: 'postgres-known-id-stored-twice-by-the-usual-batch',
    file: `${POSTGRES}/enqueue.js`,
    find: 'if (sqlStateOf(error) === UNIQUE_VIOLATION)',
    replace: 'if (false)',
    suites: [ENQUEUE],
  },
  {
    name: 'postgres-batch-of-two-priorities-taken-for-alike',
    file: `${POSTGRES}/enqueue.js`,
    find: 'job.priority === first.priority &&',
    replace: '',
    suites: [ENQUEUE],
  },
  {
    name: 'postgres-usual-batch-due-at-once',
    file: `${STATEMENT}/job_add.sql`,
    find: "CASE WHEN coalesce($5::bigint, now + $6::bigint) > now THEN 'scheduled' ELSE 'queued' END",
    replace: "'queued'",
    suites: [ENQUEUE],
  },
  {
    name: 'postgres-usual-batch-out-of-order',
    file: `${STATEMENT}/job_add.sql`,
    find: 'ORDER BY i',
    replace: 'ORDER BY i DESC',
    suites: [ENQUEUE],
  },
  {
    name: 'sql-copy-not-withdrawn',
    file: `${SQL}/enqueue.js`,
    find: "yield* write('job_end', rows);",
    replace: '',
    suites: ['test/postgres/enqueue-again.test.ts'],
  },
  {
    name: 'sql-held-by-another-claim',
    file: `${SQL}/held.js`,
    find: 'token?.includes(mark)',
    replace: 'token',
    suites: [MODEL],
  },
  {
    name: 'postgres-key-taken-though-the-id-is-known',
    file: `${STATEMENT}/job_enqueue.sql`,
    find: "SELECT 1 FROM holdfast.job AS job WHERE job.state <> ''",
    replace: 'SELECT 1 FROM holdfast.job AS job WHERE false',
    suites: [MODEL],
  },
  {
    name: 'postgres-attempts-left-out-of-the-history',
    file: `${INCLUDE}/ending.sql`,
    find: 'SELECT * FROM holdfast.attempt AS past WHERE past.job_seq = ended.seq',
    replace: 'SELECT * FROM holdfast.attempt AS past WHERE false',
    suites: [MODEL],
  },
  {
    name: 'postgres-ending-not-counted',
    file: `${INCLUDE}/ending.sql`,
    find: 'FROM ended WHERE keep_ms IS NULL OR keep_ms > 0 GROUP BY',
    replace: 'FROM ended WHERE keep_ms > 0 GROUP BY',
    suites: [MODEL],
  },
  {
    name: 'postgres-key-of-what-is-not-kept-stays',
    file: `${INCLUDE}/ending.sql`,
    find: 'ended.keep_ms <= 0',
    replace: 'ended.keep_ms < 0',
    suites: [MODEL],
  },
  {
    name: 'postgres-rollback-taken-for-a-commit',
    file: `${POSTGRES}/link.js`,
    find: "if (command !== 'COMMIT')",
    replace: 'if (command === undefined)',
    suites: [LINK],
    only: 'whose COMMIT was answered',
  },
  {
    name: 'postgres-failed-statement-forgotten',
    file: `${POSTGRES}/link.js`,
    find: `if (failure !== undefined)
                    throw failure;`,
    replace: 'failure = undefined;',
    suites: [LINK],
    only: 'nobody minded|rolled back by its own hand',
  },
  {
    name: 'postgres-connection-used-after-the-transaction',
    file: `${POSTGRES}/link.js`,
    find: 'if (isOver)',
    replace: 'if (false)',
    suites: [LINK],
    only: 'lends its connection to nobody',
  },
  {
    name: 'postgres-conflict-not-repeated',
    file: `${POSTGRES}/link.js`,
    find: 'if (!isConflict || ',
    replace: 'if (true || ',
    suites: [LINK],
    only: 'is repeated after a lock|run again from its start',
  },
  {
    name: 'postgres-unknown-statement-sent-again',
    file: `${POSTGRES}/link.js`,
    find: 'if (!isConflict || ',
    replace: "if (!(isConflict || error.details.outcome === 'unknown') || ",
    suites: [FAULTS],
    only: 'cuts the reply of a',
  },
  {
    name: 'postgres-claims-before-the-change-is-dealt-with',
    file: `${POSTGRES}/link.js`,
    find: 'if (!isClaiming || this.changes.isSettled)',
    replace: 'if (true)',
    suites: [FAULTS],
    only: 'the server restarts',
  },
  {
    name: 'postgres-connection-kept-after-a-deadline',
    file: `${POSTGRES}/errors.js`,
    find: 'return { ...plain, error: thrown };',
    replace: 'return { ...plain, isDiscarded: false, error: thrown };',
    suites: [FAULTS],
    only: 'swallows everything',
  },
  {
    name: 'postgres-lost-reply-told-as-not-done',
    file: `${POSTGRES}/errors.js`,
    find: "isUndone ? 'notDone' : 'unknown'",
    replace: "'notDone'",
    suites: [ERRORS],
  },
  {
    name: 'postgres-late-reply-told-as-not-done',
    file: `${POSTGRES}/errors.js`,
    find: "outcome: isOpen ? 'unknown' : 'notDone', server, timeoutMs",
    replace: "outcome: 'notDone', server, timeoutMs",
    suites: [ERRORS],
  },
  {
    name: 'postgres-cut-commit-told-as-not-done',
    file: `${POSTGRES}/errors.js`,
    find: "if (isCut && (stage === 'statement' || stage === 'commit'))",
    replace: "if (isCut && stage === 'statement')",
    suites: [ERRORS],
  },
  {
    name: 'postgres-standby-taken-for-a-primary',
    file: `${POSTGRES}/link.js`,
    find: "if (role === 'primary') {",
    replace: 'if (role !== undefined) {',
    suites: ['test/postgres/connect.test.ts'],
    only: 'of several servers',
  },
  {
    name: 'postgres-escapes-of-json-in-an-array',
    file: `${POSTGRES}/array-literal.js`,
    find: ' || !JSON_ESCAPE.test(json)',
    replace: ' || true',
    suites: ['test/postgres/array-literal.test.ts'],
  },
  {
    name: 'postgres-old-plans-kept',
    file: `${POSTGRES}/plan-age.js`,
    find: 'madeAt !== undefined && (',
    replace: 'madeAt === 0 && (',
    suites: ['test/postgres/plan-age.test.ts'],
  },
]
