/** Bugs planted in what tells people how things stand: the list of workers, explanations, health, the doctor; and in retention. */

const WORKERS = 'list of workers'
const WHY = 'why a job does not run'
const RETENTION = '127'
const MEMORY = 'test/conformance/memory.test.ts'
const SQLITE = 'test/conformance/sqlite.test.ts'
const REDIS = 'test/conformance/redis.test.ts'
const SCRIPTS = 'test/lua/script.test.ts'
const MEMBERSHIP = 'test/runtime/membership.test.ts'
const HEALTH = 'test/runtime/health.test.ts'
const CALLS = 'test/redis/calls.test.ts'
const DOCTOR = 'test/cli/doctor.test.ts'
const BLOCKERS = 'test/model/blockers.test.ts'

/** @type {readonly import('./catalog.mjs').Mutant[]} */
export const LIVE_MUTANTS = [
  {
    name: 'goodbye-before-the-last-beat',
    file: 'src/actors/membership.js',
    find: 'const left = (this.underWay ?? Promise.resolve()).then(() => this.leave());',
    replace: 'const left = this.leave();',
    suites: [MEMBERSHIP],
  },
  {
    name: 'the-dead-count-as-workers',
    file: 'src/worker-list.js',
    find: 'isAlive: beatAgoMs <= DEFAULTS.workerLiveMs',
    replace: 'isAlive: beatAgoMs <= DEFAULTS.workerForgetMs',
    suites: [MEMORY],
    only: `${WORKERS}|${WHY}`,
  },
  {
    name: 'explain-takes-any-handler',
    file: 'src/blockers.js',
    find: 'worker.types.includes(type) || worker.moreTypes > 0',
    replace: 'worker.types.length > 0 || worker.moreTypes > 0',
    suites: [MEMORY],
    only: WHY,
  },
  {
    name: 'explain-limit-one-too-late',
    file: 'src/blockers.js',
    find: 'inFlight >= maxInFlight',
    replace: 'inFlight > maxInFlight',
    suites: [BLOCKERS],
  },
  {
    name: 'health-forgets-the-workers',
    file: 'src/store-operations.js',
    find: 'ok: !isFailing && each.every((worker) => worker.ok)',
    replace: 'ok: !isFailing',
    suites: [MEMORY],
    only: 'threads in native calls',
  },
  {
    name: 'health-by-settlements',
    edits: [
      {
        file: 'src/actors/dispatcher.js',
        find: `if (turn.claim !== null)
            this.pulse.ended(error);`,
        replace: '',
      },
      {
        file: 'src/actors/store-call.js',
        find: "if ('claims' in request && Array.isArray(request.claims) && request.claims.length === 0)",
        replace: 'if (false)',
      },
    ],
    suites: [HEALTH],
  },
  {
    name: 'redis-dead-workers-stay',
    file: 'src/lua/script/worker_beat.lua',
    find: "forget('-inf', string.format('(%.0f', now - forget_ms))",
    replace: '',
    suites: [SCRIPTS],
  },
  {
    name: 'redis-new-lanes-are-not-reaped',
    file: 'src/backends/redis/lease.js',
    find: 'remembered !== null && remembered.mark === first.mark',
    replace: 'remembered !== null',
    suites: [CALLS],
    second: [REDIS],
    secondOnly: 'the lease protocol|leases',
  },
  {
    name: 'redis-trim-takes-the-latest',
    file: 'src/lua/script/lane_trim.lua',
    find: "redis.call('ZRANGE', key, 0, surplus - 1)",
    replace: "redis.call('ZRANGE', key, -surplus, -1)",
    suites: [REDIS],
    only: RETENTION,
  },
  {
    name: 'sqlite-trim-one-too-many',
    edits: [
      {
        file: 'src/backends/sqlite/statement/archive_trim.sql',
        find: `ORDER BY seq DESC LIMIT 1 OFFSET :count
  )
  ORDER BY seq LIMIT :limit
)
`,
        replace: `ORDER BY seq DESC LIMIT 1 OFFSET max(:count - 1, 0)
  )
  ORDER BY seq LIMIT :limit
)
`,
      },
    ],
    suites: [SQLITE],
    only: RETENTION,
  },
  {
    name: 'dead-letters-of-a-lane-like-all-others',
    file: 'src/backends/kept.js',
    find: 'return keepDeadMsOf[lane] ?? null',
    replace: 'return keepDeadMs',
    suites: [MEMORY],
    only: RETENTION,
  },
  {
    name: 'doctor-passes-a-server-that-keeps-nothing',
    file: 'src/cli/doctor/store.js',
    find: ": wrong('durability', durability, NOTHING_KEPT)",
    replace: ": note('durability', durability, NOTHING_KEPT)",
    suites: [DOCTOR],
    only: 'keeps nothing',
  },
  {
    name: 'doctor-asks-one-thing-after-the-other',
    file: 'src/cli/doctor/store.js',
    find: "attempt('writable', () => checkWritable(store)),",
    replace: "await attempt('writable', () => checkWritable(store)),",
    suites: [DOCTOR],
    only: 'asked everything at once',
  },
]
