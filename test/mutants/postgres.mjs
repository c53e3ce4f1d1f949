/** Bugs planted in the PostgreSQL store: guards and bounds of its statements, whose clock counts, what is sent again. */

const POSTGRES = 'src/backends/postgres'
const STATEMENT = `${POSTGRES}/statement`
const INCLUDE = `${POSTGRES}/include`
const SQL = 'src/backends/sql'

const MODEL = 'test/postgres/model.test.ts'
const PLAN = 'test/postgres/plan.test.ts'
const CLOCK = 'test/postgres/clock.test.ts'

const TOKEN = ' AND job.token = input.token'
const TOKEN_OR_NONE = ' AND job.token IS NOT DISTINCT FROM input.token'

/** @type {readonly import('./catalog.mjs').Mutant[]} */
export const POSTGRES_MUTANTS = [
  ...['job_turn', 'job_retry', 'job_release', 'job_requeue', 'lease_renew', 'job_progress'].map((name) => ({
    name: `postgres-${name.replace('_', '-')}-without-token`,
    file: `${STATEMENT}/${name}.sql`,
    find: TOKEN,
    replace: '',
    suites: [MODEL],
  })),
  ...['job_end', 'job_delete'].map((name) => ({
    name: `postgres-${name.replace('_', '-')}-without-token`,
    file: `${STATEMENT}/${name}.sql`,
    find: TOKEN_OR_NONE,
    replace: '',
    suites: [MODEL],
  })),
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
    name: 'postgres-picked-again-for-each-job',
    file: `${INCLUDE}/claim.sql`,
    find: 'WHERE job.seq = ANY (ARRAY(SELECT seq FROM picked)) AND',
    replace: `WHERE job.seq IN (SELECT ready.seq FROM lane CROSS JOIN LATERAL (
    SELECT job.seq FROM holdfast.job AS job WHERE job.ns = $1 AND job.lane = lane.lane AND job.state = 'queued'
    ORDER BY job.priority DESC, job.run_at, job.seq LIMIT $3::bigint FOR UPDATE SKIP LOCKED) AS ready
    LIMIT $3::bigint) AND`,
    suites: [PLAN],
  },
  {
    name: 'postgres-grants-by-state',
    file: `${INCLUDE}/claim.sql`,
    find: "job.ns + 0 = $1 AND job.state || '' = 'queued'",
    replace: "job.ns = $1 AND job.lane = ANY ($2::text[]) AND job.state = 'queued'",
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
  ...['job_enqueue', 'lease_renew', 'job_retry', 'job_claim', 'job_turn'].map((name) => ({
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
    find: 'runAtOf(job, outcome.now) > outcome.now',
    replace: 'runAtOf(job, outcome.now) > Date.now()',
    suites: [MODEL],
  },
  {
    name: 'sql-copy-not-withdrawn',
    file: `${SQL}/enqueue.js`,
    find: 'isAnySent ? yield* withdrawCopies(created) : NONE',
    replace: 'NONE',
    suites: [MODEL],
  },
  {
    name: 'sql-held-by-another-claim',
    file: `${SQL}/held.js`,
    find: 'token?.includes(mark)',
    replace: 'token',
    suites: [MODEL],
  },
  {
    name: 'postgres-attempts-left-out-of-the-history',
    file: `${INCLUDE}/ending.sql`,
    find: 'SELECT * FROM past WHERE past.job_seq = ended.seq',
    replace: 'SELECT * FROM past WHERE false',
    suites: [MODEL],
  },
]
