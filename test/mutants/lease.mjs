/** Bugs planted in what keeps leases: the main loop's keeper, the thread that stands in for it, the memory between them, and lost leases. */

const KEEPER = 'src/actors/lease-keeper.js'
const POLICY = 'src/backends/lease-policy.js'
const STAND_IN = 'src/backends/lease-stand-in.js'

const RUNTIME = 'test/runtime/lease-keeper.test.ts'
const TYPES = 'test/runtime/type-lease.test.ts'
const BOARD = 'test/model/lease-board.test.ts'
const SIMULATION = 'test/simulation/simulation.test.ts'
const MEMORY = 'test/conformance/memory.test.ts'
const SQLITE = 'test/conformance/sqlite.test.ts'
const REDIS = 'test/redis/lease-keeper.test.ts'

/** @type {readonly import('./catalog.mjs').Mutant[]} */
export const LEASE_MUTANTS = [
  {
    name: 'keeper-ignores-max-blocked',
    file: STAND_IN,
    find: 'if (isGivenUp(silentMs, terms))',
    replace: 'if (isGivenUp(0, terms))',
    suites: [RUNTIME],
    second: [SQLITE],
    secondOnly: 'longer than maxBlocked',
  },
  {
    name: 'keeper-renews-beyond-the-timeout',
    file: POLICY,
    find: ' && !isExhausted(lease, now)',
    replace: '',
    suites: [RUNTIME],
    second: [SQLITE],
    secondOnly: 'beyond its own timeout',
  },
  {
    name: 'keeper-does-not-stand-in',
    file: POLICY,
    find: 'return now - lease.confirmedAt >= after * paceMs',
    replace: 'return lease.confirmedAt > now && after > 0 && paceMs > 0',
    suites: [RUNTIME],
    second: [SIMULATION],
  },
  {
    name: 'no-renewal-after-a-gap',
    file: KEEPER,
    find: "const isSound = this.state !== 'active' || !isAfterGap(now - this.soundAt, this.options.terms);",
    replace: "const isSound = this.state !== 'active' || !isAfterGap(0, this.options.terms);",
    suites: [RUNTIME],
    second: [SQLITE],
    secondOnly: '33 F3',
  },
  {
    name: 'reaper-does-not-wait-after-a-gap',
    file: 'src/actors/reaper.js',
    find: 'await this.options.afterGap();',
    replace: '',
    suites: [RUNTIME],
  },
  {
    name: 'job-granted-unseen-is-started',
    file: 'src/actors/dispatcher.js',
    find: `        if (jobs.length > 0)
            keeper.doubt(claimedAt);`,
    replace: '',
    suites: [RUNTIME],
  },
  {
    name: 'lost-lease-may-write',
    file: 'src/actors/handler-context.js',
    find: `if (lostLease !== null)
            throw lostLease;`,
    replace: '',
    suites: [MEMORY],
    only: 'that a write finds lost',
    second: [SQLITE],
    secondOnly: '33 F3',
  },
  {
    name: 'lost-lease-found-by-a-write-keeps-quiet',
    file: 'src/actors/attempt-notes.js',
    find: 'this.onLost(error);',
    replace: '',
    suites: [MEMORY],
    only: 'that a write finds lost',
  },
  {
    name: 'renewal-counts-for-the-next-lease-in-the-slot',
    file: 'src/backends/lease-board.js',
    find: 'Atomics.load(this.renewedMarks, slot) === this.marks[slot]',
    replace: 'Atomics.load(this.renewedMarks, slot) !== 0',
    suites: [BOARD],
  },
  {
    name: 'refused-lease-is-asked-for-again',
    file: STAND_IN,
    find: 'const isRefused = refused.get(place) === lease.mark;',
    replace: 'const isRefused = refused.get(place) === -1;',
    suites: [RUNTIME],
  },
  {
    name: 'dead-keeper-is-not-replaced',
    file: 'src/backends/lease-thread.js',
    find: 'if (this.boards.size > 0)',
    replace: 'if (this.boards.size < 0)',
    suites: [REDIS],
    only: 'is terminated',
  },
  {
    name: 'lease-of-a-type-is-not-asked-for-at-once',
    file: 'src/actors/lease-keepers.js',
    find: 'keeper.adopt(actors.splice(0));',
    replace: 'actors.splice(0);',
    suites: [TYPES],
  },
  {
    name: 'longer-lease-of-a-type-renewed-too-late',
    file: 'src/actors/lease-keepers.js',
    find: 'paceMs: Math.min(ownMs, leaseMs)',
    replace: 'paceMs: ownMs',
    suites: [TYPES],
  },
  {
    name: 'lease-relied-on-before-it-was-asked-for',
    file: KEEPER,
    find: 'isAsClaimed ? terms.paceMs : terms.leaseMs',
    replace: 'terms.leaseMs',
    suites: [MEMORY],
    only: 'does not get through',
  },
  {
    name: 'leases-are-reaped-though-nothing-comes-of-it',
    file: 'src/actors/reaper.js',
    find: ' || (decided.length > 0 && applied.length === 0)',
    replace: '',
    suites: ['test/runtime/reaper.test.ts'],
  },
]
