/** Bugs planted in the limits of lanes: what is counted, the order of what is set aside, the buckets, locks and hints. */

const LIMITS = 'src/backends/limits.js'
const LIMITER = 'src/backends/memory/limiter.js'
const LUA = 'src/lua'
const POSTGRES = 'src/backends/postgres'

const MEMORY = 'test/conformance/memory.test.ts'
const ON_POSTGRES = 'test/conformance/postgres.test.ts'
const ON_REDIS = 'test/conformance/redis.test.ts'
const FENCE = 'test/postgres/policy.test.ts'
const REDIS_MODEL = 'test/redis/model.test.ts'
const SQLITE_MODEL = 'test/sqlite/model.test.ts'

/** @type {readonly import('./catalog.mjs').Mutant[]} */
export const POLICY_MUTANTS = [
  {
    name: 'policy-counts-nothing-in-flight',
    file: LIMITS,
    find: 'Math.max(0, maxInFlight - inFlight)',
    replace: 'maxInFlight',
    suites: [MEMORY],
    only: '120 never more than maxInFlight',
    second: ['test/simulation/simulation.test.ts'],
  },
  {
    name: 'policy-bucket-fills-beyond-its-burst',
    file: LIMITS,
    find: 'return Math.max(0, debt - Math.max(0, now - at) * limit);',
    replace: 'return debt - Math.max(0, now - at) * limit;',
    suites: [MEMORY],
    only: '120 starts follow the rate',
  },
  {
    name: 'policy-lets-later-jobs-of-a-key-go-first',
    file: LIMITER,
    find: '(first === undefined || isBefore(aside, first))',
    replace: 'first === undefined',
    suites: [MEMORY],
    only: '120 without maxPerKey|120 what waits for its key',
  },
  {
    name: 'policy-forgets-when-the-bucket-was-filled',
    file: 'src/backends/sql/limited.js',
    find: 'else if (bucket.at !== row.rate_at || bucket.debt !== row.rate_debt',
    replace: 'else if (bucket.debt !== row.rate_debt',
    suites: [SQLITE_MODEL],
  },
  {
    name: 'policy-worker-does-not-wait-for-the-token',
    file: 'src/actors/claim-request.js',
    find: '...throttled.map(({ inMs }) => inMs)',
    replace: '...throttled.map(() => null)',
    suites: [MEMORY],
    only: '120 a worker waits for the next token',
  },
  {
    name: 'postgres-policy-without-fence',
    file: `${POSTGRES}/statement/lane_fence.sql`,
    find: 'LOCK TABLE holdfast.lane IN EXCLUSIVE MODE',
    replace: 'LOCK TABLE holdfast.lane IN ACCESS SHARE MODE',
    suites: [FENCE],
  },
  {
    name: 'postgres-limited-claims-at-once',
    file: `${POSTGRES}/statement/limit_lock.sql`,
    find: ' FOR NO KEY UPDATE',
    replace: '',
    suites: [FENCE],
  },
  {
    name: 'postgres-nobody-told-of-a-free-slot',
    file: `${POSTGRES}/backend.js`,
    find: 'for (const lane of this.limited.freedBy(type, request, reply))\n            wake.ready(lane);',
    replace: '',
    suites: [ON_POSTGRES],
    only: '120 a worker that waits for a slot',
  },
  {
    name: 'lua-limits-count-what-this-turn-completed',
    file: `${LUA}/include/limited_grant.lua`,
    find: "redis.call('ZCARD', leases) - #completed_leases",
    replace: "redis.call('ZCARD', leases)",
    suites: [ON_REDIS],
    only: '120 what a turn ends makes room',
  },
  {
    name: 'lua-parked-job-left-by-its-cancellation',
    file: `${LUA}/include/unplace.lua`,
    find: ' or unpark(id, head, entry)',
    replace: '',
    suites: [REDIS_MODEL],
  },
  {
    name: 'lua-refused-enqueue-is-stored',
    file: `${LUA}/include/admit.lua`,
    find: '    gate.refused = gate.refused + 1\n    return false',
    replace: '    gate.refused = gate.refused + 1\n    return true',
    suites: [REDIS_MODEL],
  },
]
