/**
 * Planted protocol bugs: each is one exact replacement in one built file, or a few that belong together, and the quick suites that
 * must notice it. `find` must occur exactly once, so that the catalogue cannot rot: `run.mjs` refuses to start otherwise.
 * Those of leases, of what tells people how things stand, of limits, of hard stops, of the SQL stores, of Redis, of `enqueueTx` and of bundles have files of
 * their own.
 */

import { BUNDLE_MUTANTS } from './bundle.mjs'
import { LEASE_MUTANTS } from './lease.mjs'
import { LIVE_MUTANTS } from './live.mjs'
import { LUA_MUTANTS } from './lua.mjs'
import { POLICY_MUTANTS } from './policy.mjs'
import { POSTGRES_MUTANTS } from './postgres.mjs'
import { REDIS_MUTANTS } from './redis.mjs'
import { RESULT_MUTANTS } from './results.mjs'
import { SQL_MUTANTS } from './sql.mjs'
import { STOP_MUTANTS } from './stops.mjs'
import { TRANSACTIONAL_MUTANTS } from './transactional.mjs'

const STORE = 'src/backends/memory/store.js'
const SETTLE = 'src/backends/memory/settle.js'
const LANE = 'src/backends/memory/lane.js'
const ROW_QUEUE = 'src/backends/memory/row-queue.js'
const RULES = 'src/backends/rules.js'
const DISPATCHER = 'src/actors/dispatcher.js'
const IDLE_WAIT = 'src/actors/idle-wait.js'
const SQLITE = 'src/backends/sqlite/statement'

const EXPLORE = 'test/model/explore.test.ts'
const ORDER = 'test/model/order.test.ts'
const RULES_TEST = 'test/model/rules.test.ts'
const SIMULATION = 'test/simulation/simulation.test.ts'
const REGRESSIONS = 'test/simulation/regressions.test.ts'
const HINTS = 'test/runtime/hints.test.ts'
const OUTAGE = 'test/runtime/outage.test.ts'
const PREFETCH = 'test/runtime/prefetch.test.ts'
const TURNS = 'test/runtime/turns.test.ts'
const MERGER = 'test/runtime/merger.test.ts'
const SQLITE_MODEL = 'test/sqlite/model.test.ts'

/**
 * `only`: a pattern for the names of tests. `second`, `secondOnly`: other suites that notice it as well, in a file of their own.
 * @typedef {{ file: string, find: string, replace: string }} Edit
 * @typedef {{ name: string, suites: readonly string[], only?: string, second?: readonly string[], secondOnly?: string }} Tests
 * @typedef {Tests & (Edit | { edits: readonly Edit[] })} Mutant
 */

/** @type {readonly Mutant[]} */
export const MUTANTS = [
  {
    name: 'settle-without-token',
    file: SETTLE,
    find: 'if (!row.isHeldBy(settlement.token)) {',
    replace: "if (row.state !== 'running') {",
    suites: [EXPLORE, SIMULATION],
  },
  {
    name: 'renew-without-token',
    file: STORE,
    find: `if (!row.isHeldBy(token))
                return 'leaseLost';
            row.run.leaseExpiresAt = now + leaseMs;`,
    replace: `if (row.state !== 'running')
                return 'leaseLost';
            row.run.leaseExpiresAt = now + leaseMs;`,
    suites: [EXPLORE, SIMULATION],
  },
  {
    name: 'note-without-token',
    file: STORE,
    find: `if (!row.isHeldBy(token))
                return 'leaseLost';
            takeNote(row, note);`,
    replace: 'takeNote(row, note);',
    suites: [SIMULATION],
  },
  {
    name: 'reap-without-token',
    file: STORE,
    find: 'if (!row.isHeldBy(decision.token) || row.run.leaseExpiresAt > now)',
    replace: "if (row.state !== 'running' || row.run.leaseExpiresAt > now)",
    suites: [EXPLORE],
  },
  {
    name: 'reap-without-expiry',
    file: STORE,
    find: '!row.isHeldBy(decision.token) || row.run.leaseExpiresAt > now',
    replace: '!row.isHeldBy(decision.token)',
    suites: [EXPLORE, SIMULATION],
  },
  {
    name: 'reap-leaves-the-token',
    file: STORE,
    find: `const verdict = this.settle(decision, now);
            row.run.token = null;`,
    replace: 'const verdict = this.settle(decision, now);',
    suites: [EXPLORE, SIMULATION],
  },
  {
    name: 'expiry-one-millisecond-late',
    file: STORE,
    find: '.filter(({ run }) => run.leaseExpiresAt <= now)',
    replace: '.filter(({ run }) => run.leaseExpiresAt < now)',
    suites: [EXPLORE],
  },
  {
    name: 'force-leaves-the-lease',
    file: STORE,
    find: `row.run.token = null;
        row.run.finishedAt = now;`,
    replace: 'row.run.finishedAt = now;',
    suites: [EXPLORE],
  },
  {
    name: 'cancel-of-what-has-ended',
    file: STORE,
    find: `if (isTerminal(row.state))
                return 'already_terminal';`,
    replace: '',
    suites: [EXPLORE, SIMULATION],
  },
  {
    name: 'requested-cancellation-forgotten',
    file: SETTLE,
    find: "(kind === 'retry' || kind === 'release' || kind === 'requeue')",
    replace: "(kind === 'retry' || kind === 'release')",
    suites: [EXPLORE],
  },
  {
    name: 'claim-ignores-run-at',
    file: LANE,
    find: 'row !== undefined && row.runAt <= now;',
    replace: 'row !== undefined;',
    suites: [ORDER, SIMULATION],
  },
  {
    name: 'claim-beyond-its-limit',
    file: LANE,
    find: 'for (let left = wanted; left > 0; left -= 1) {',
    replace: 'for (let left = wanted; left >= 0; left -= 1) {',
    suites: [ORDER],
  },
  {
    name: 'due-order-by-the-row-as-it-is-now',
    file: ROW_QUEUE,
    find: 'const byRunAt = (a, b) => a.runAt - b.runAt',
    replace: 'const byRunAt = (a, b) => a.row.runAt - b.row.runAt',
    suites: [ORDER],
  },
  {
    name: 'key-not-looked-up',
    file: STORE,
    find: 'if (first !== undefined)',
    replace: 'if (first === null)',
    suites: [SIMULATION],
  },
  {
    name: 'repeated-enqueue-creates-again',
    file: STORE,
    find: 'if (same !== undefined)',
    replace: 'if (same === null)',
    suites: [SIMULATION],
  },
  {
    name: 'grant-not-charged',
    file: STORE,
    find: 'row.run.attempts += 1;',
    replace: '',
    suites: [EXPLORE, SIMULATION],
  },
  {
    name: 'release-charged',
    file: SETTLE,
    find: 'row.run.attempts -= 1;',
    replace: '',
    suites: [EXPLORE, SIMULATION],
  },
  {
    name: 'deadline-not-looked-at',
    file: STORE,
    find: 'deadlined.push(...this.buryDeadlined(lane, now, keepDeadIn(claim, lane.name)));',
    replace: '',
    suites: [SIMULATION],
  },
  {
    name: 'paused-lane-claimed',
    file: STORE,
    find: 'if (lane === undefined || lane.isPaused)',
    replace: 'if (lane === undefined)',
    suites: [SIMULATION],
  },
  {
    name: 'epoch-of-the-clock-alone',
    file: RULES,
    find: 'return nextEpochUs(previous, Math.floor(storeNowMs * 1000));',
    replace: 'return Math.floor(storeNowMs * 1000);',
    suites: [RULES_TEST, SIMULATION],
  },
  {
    name: 'epoch-of-a-counter-alone',
    file: RULES,
    find: 'return nextEpochUs(previous, Math.floor(storeNowMs * 1000));',
    replace: 'return previous + 1;',
    suites: [RULES_TEST],
  },
  {
    name: 'retry-forgets-the-budget',
    file: RULES,
    find: `if (budget.attempt >= budget.maxAttempts)
        return { next: 'dead', code: 'MAX_ATTEMPTS_EXCEEDED', crashes };
    return { next: 'retry'`,
    replace: "return { next: 'retry'",
    suites: [RULES_TEST, SIMULATION],
  },
  {
    name: 'expiry-forgets-the-budget',
    file: RULES,
    find: `if (budget.attempt >= budget.maxAttempts)
        return { next: 'dead', code: 'MAX_ATTEMPTS_EXCEEDED', crashes };
    if (crashes`,
    replace: 'if (crashes',
    suites: [RULES_TEST, SIMULATION],
  },
  {
    name: 'notify-only-wake-up',
    file: IDLE_WAIT,
    find: 'this.timer = timers.set(wake,',
    replace: 'this.timer = timers.set(() => {},',
    suites: [SIMULATION],
    second: ['test/redis/fault-server.test.ts'],
    secondOnly: 'F30',
  },
  {
    name: 'wake-ups-for-a-busy-worker',
    file: IDLE_WAIT,
    find: 'wakeUps.want(isIdle);',
    replace: 'wakeUps.want(true);',
    suites: [HINTS],
  },
  {
    name: 'wake-ups-while-claiming',
    file: IDLE_WAIT,
    find: 'this.options.wakeUps.want(false);',
    replace: ';',
    suites: [HINTS],
  },
  {
    name: 'poll-rarer-without-wake-ups',
    file: IDLE_WAIT,
    find: 'isIdle && wakeUps.isReliable ?',
    replace: 'true ?',
    suites: [HINTS],
  },
  {
    name: 'renewal-under-way-counted-as-fresh',
    file: 'src/actors/lease-keeper.js',
    find: 'return this.underWay ?? this.renew();',
    replace: 'return undefined;',
    suites: [HINTS],
  },
  {
    name: 'stop-waits-for-a-silent-store',
    file: 'src/actors/shutdown.js',
    find: 'await this.tellTheStore();',
    replace: 'await isQuiet;',
    suites: [OUTAGE],
  },
  {
    name: 'stop-gives-up-on-a-slow-store',
    file: 'src/actors/shutdown.js',
    find: 'for (let before = -1; !dispatcher.isQuiet',
    replace: 'for (let before = -1; before === -1 && !dispatcher.isQuiet',
    suites: [OUTAGE],
  },
  {
    name: 'close-leaves-calls-under-way',
    file: 'src/actors/backend-actor.js',
    find: 'this.caller.abandon();',
    replace: ';',
    suites: [OUTAGE],
  },
  {
    name: 'every-warning-written',
    file: 'src/telemetry.js',
    find: 'now - last.at < WARNING_EVERY_MS',
    replace: 'false',
    suites: [OUTAGE],
  },
  {
    name: 'unanswered-settlements-forgotten',
    file: 'src/actors/turn-queue.js',
    find: 'this.endings = [...endings, ...this.endings];',
    replace: 'this.endings = [...this.endings];',
    suites: [SIMULATION],
  },
  {
    name: 'lost-answer-claimed-anew',
    file: 'src/actors/backend-actor.js',
    find: 'return mayBeDone ? { ...turn, resend: true } : turn;',
    replace: 'return turn;',
    suites: [SIMULATION],
  },
  {
    name: 'merged-grants-to-the-wrong-worker',
    file: 'src/actors/backend-actor.js',
    find: 'grants: reply.grants.slice(grant - claims.length, grant),',
    replace: 'grants: reply.grants.slice(0, claims.length),',
    suites: [SIMULATION],
  },
  {
    name: 'merged-settlement-lost',
    file: 'src/actors/backend-actor.js',
    find: 'settlements: requests.flatMap(({ settlements }) => settlements),',
    replace: 'settlements: requests.flatMap(({ settlements }) => settlements).slice(0, 1),',
    suites: [REGRESSIONS],
  },
  {
    name: 'unknown-told-as-not-done',
    file: 'src/actors/store-call.js',
    find: 'throw mayBeDone ? asUnknown(error) : error;',
    replace: 'throw error;',
    suites: [REGRESSIONS],
  },
  {
    name: 'more-jobs-than-slots',
    edits: [
      { file: DISPATCHER, find: 'while (this.running < this.concurrency && (', replace: 'while ((' },
      {
        file: DISPATCHER,
        find: '(this.taken < this.concurrency ? this.prefetch.take()',
        replace: '(true ? this.prefetch.take()',
      },
    ],
    suites: [REGRESSIONS],
  },
  {
    name: 'held-jobs-kept',
    file: DISPATCHER,
    find: 'this.prefetch.takeHeldSince(clock.monotonic() - HELD_MS)',
    replace: '[]',
    suites: [PREFETCH],
  },
  {
    name: 'given-back-and-taken-again',
    file: DISPATCHER,
    find: 'this.prefetch.turnedSlow();',
    replace: ';',
    suites: [PREFETCH],
  },
  {
    name: 'callers-not-gathered',
    file: 'src/actors/merger.js',
    find: 'defer !== undefined && answered > 1',
    replace: 'false',
    suites: [MERGER],
  },
  {
    name: 'calls-share-unevenly',
    file: 'src/actors/merger.js',
    find: 'Math.min(sizeMax, share)',
    replace: 'sizeMax',
    suites: [MERGER],
  },
  {
    name: 'two-claims-at-once',
    file: DISPATCHER,
    find: 'this.isDraining || this.inFlight.isClaiming || this.queue.hasSuspects',
    replace: 'this.isDraining || this.queue.hasSuspects',
    suites: [TURNS],
  },
  {
    name: 'settlements-wait-for-a-claim',
    file: DISPATCHER,
    find: 'return this.overlaps && this.inFlight.isOnlyClaim && this.running + this.prefetch.size === 0 && this.queue.size > 0;',
    replace: 'return false;',
    suites: [TURNS],
  },
  {
    name: 'claims-after-the-jobs',
    file: DISPATCHER,
    find: 'if (this.overlaps && this.claims.isMoreWorthHolding && this.prefetch.extra(this.concurrency) > 0)',
    replace: 'if (false)',
    suites: [TURNS],
  },
  {
    name: 'held-job-started-though-cancelled',
    file: 'src/actors/job-actor.js',
    find: `this.startedAt = startedAt;
        if (this.abortReason !== null) {`,
    replace: `this.startedAt = startedAt;
        if (this.abortReason === undefined) {`,
    suites: [PREFETCH],
  },
  {
    name: 'sqlite-release-without-token',
    file: `${SQLITE}/job_release.sql`,
    find: "recorded = max(recorded, :started)\nWHERE ns = :ns AND id = :id AND state = 'running' AND token = :token",
    replace: "recorded = max(recorded, :started)\nWHERE ns = :ns AND id = :id AND state = 'running'",
    suites: [SQLITE_MODEL],
  },
  {
    name: 'sqlite-end-without-token',
    file: `${SQLITE}/job_end.sql`,
    find: 'payload, progress, :output, concurrency_key\nFROM holdfast_job\nWHERE ns = :ns AND id = :id AND state = :from AND token IS :token',
    replace:
      'payload, progress, :output, concurrency_key\nFROM holdfast_job\nWHERE ns = :ns AND id = :id AND state = :from',
    suites: [SQLITE_MODEL],
  },
  {
    name: 'sqlite-renew-without-token',
    file: `${SQLITE}/lease_renew.sql`,
    find: 'AND token = :token',
    replace: '',
    suites: [SQLITE_MODEL],
  },
  {
    name: 'sqlite-reap-leaves-the-token',
    file: `${SQLITE}/lease_forget.sql`,
    find: 'SET token = NULL',
    replace: 'SET token = token',
    suites: [SQLITE_MODEL],
  },
  {
    name: 'sqlite-promotes-too-late',
    file: `${SQLITE}/due_promote.sql`,
    find: '<= :now',
    replace: '< :now',
    suites: [SQLITE_MODEL],
  },
  {
    name: 'reaper-never-looks',
    file: 'src/actors/reaper.js',
    find: "this.arm('reap');",
    replace: '',
    suites: [SIMULATION],
  },
  ...LIVE_MUTANTS,
  ...BUNDLE_MUTANTS,
  ...LEASE_MUTANTS,
  ...LUA_MUTANTS,
  ...POLICY_MUTANTS,
  ...POSTGRES_MUTANTS,
  ...REDIS_MUTANTS,
  ...RESULT_MUTANTS,
  ...SQL_MUTANTS,
  ...STOP_MUTANTS,
  ...TRANSACTIONAL_MUTANTS,
]
