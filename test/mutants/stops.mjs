/** Bugs planted where handlers are ended by force, end their process, and workers stop: slots, threads, cancellations, the last words. */

const HOST = 'src/actors/module-host.js'
const THREADS = 'src/actors/thread-host.js'
const PROCESS = 'src/actors/handler-process.js'
const DISPATCHER = 'src/actors/dispatcher.js'

const ISOLATION = 'test/pool/isolation.test.ts'
const MEMORY = 'test/conformance/memory.test.ts'
const STOP = 'test/cli/stop.test.ts'
const TRIAL = 'test/runtime/trial.test.ts'

/** @type {readonly import('./catalog.mjs').Mutant[]} */
export const STOP_MUTANTS = [
  {
    name: 'a-lost-slot-is-not-counted',
    file: HOST,
    find: 'lost.add({ jobId, type, attempt, where: isolation.kind }, gone);',
    replace: '',
    suites: [ISOLATION],
    only: 'a thread that cannot be ended',
    second: [MEMORY],
    secondOnly: 'threads in native calls',
  },
  {
    name: 'a-thread-that-does-not-end-keeps-its-slot',
    file: HOST,
    find: `where: isolation.kind }, gone);
            this.over(run, crashOf(run, null), null);`,
    replace: 'where: isolation.kind }, gone);',
    suites: [ISOLATION],
    only: 'a thread that cannot be ended',
  },
  {
    name: 'claims-however-many-slots-are-lost',
    file: 'src/runtime.js',
    find: 'mayClaim: () => !this.isExhausted,',
    replace: '',
    suites: [MEMORY],
    only: 'threads in native calls',
  },
  {
    name: 'a-thread-runs-one-job-too-many',
    file: THREADS,
    find: 'jobs < maxJobs ?',
    replace: 'jobs <= maxJobs ?',
    suites: [ISOLATION],
    only: 'are replaced after their number of jobs',
  },
  {
    name: 'slots-of-threads-stay-as-they-were',
    file: HOST,
    find: `this.slots = slots;
        this.resized();`,
    replace: 'this.resized();',
    suites: [ISOLATION],
    only: '123 become more and fewer',
    second: [MEMORY],
    secondOnly: '123 a slot is a thread',
  },
  {
    name: 'a-process-is-killed-without-what-it-started',
    file: PROCESS,
    find: 'HAS_GROUPS ? -pid : pid',
    replace: 'pid',
    suites: [ISOLATION],
    only: 'with all that its handler has started',
  },
  {
    name: 'a-handler-process-sees-the-address-of-the-store',
    file: PROCESS,
    find: 'env: handlerEnvironment(process.env),',
    replace: 'env: process.env,',
    suites: [ISOLATION],
    only: 'sees no address of a store',
  },
  {
    name: 'a-busy-handler-process-outlives-its-parent',
    file: 'workers/parent-watch.js',
    find: 'process.ppid !== parent &&',
    replace: 'false &&',
    suites: [STOP],
    only: 'dies with its parent',
  },
  {
    name: 'cancellations-are-not-looked-for',
    file: 'src/actors/cancel-watch.js',
    find: 'if (!this.options.isTold())',
    replace: 'if (false)',
    suites: [MEMORY],
    only: '64 .* where none does',
  },
  {
    name: 'cancellations-are-not-told',
    file: 'src/backends/memory/backend.js',
    find: 'cancelListeners.add(onCancel);',
    replace: ';',
    suites: [MEMORY],
    only: '64 .* where hints arrive',
  },
  {
    name: 'what-runs-at-the-deadline-is-not-aborted',
    file: 'src/actors/shutdown.js',
    find: "actor.abort(abortReason('SHUTTING_DOWN', 'the worker is stopping', actor.job.id));",
    replace: '',
    suites: [MEMORY],
    only: '124 what has not ended at the deadline',
  },
  {
    name: 'nobody-is-dangerous',
    file: 'src/actors/trial.js',
    find: 'return crashes > 0 && (isLastChance',
    replace: 'return false && (isLastChance',
    suites: [TRIAL],
    second: ['test/conformance/sqlite.test.ts'],
    secondOnly: 'poison',
  },
  {
    name: 'claims-beside-a-trial',
    file: DISPATCHER,
    find: ' && !this.trial.isOn',
    replace: '',
    suites: [TRIAL],
  },
  {
    name: 'on-trial-before-the-others-are-back',
    file: DISPATCHER,
    find: 'this.inFlight.isNone && this.queue.isEmpty ? this.trial.start() : null',
    replace: 'this.trial.start()',
    suites: [TRIAL],
  },
  {
    name: 'dangerous-jobs-claimed-beyond-the-free-slots',
    file: 'src/actors/claim-request.js',
    find: 'limited === undefined && this.bareClaims === 0',
    replace: 'limited === undefined',
    suites: [TRIAL],
  },
  {
    name: 'one-lane-in-two-asks-beyond-the-free-slots',
    file: 'src/actors/claim-request.js',
    find: 'jobs.some(isDangerous) ? this.lanes.length :',
    replace: 'jobs.some(isDangerous) ? 1 :',
    suites: [TRIAL],
  },
  {
    name: 'a-trial-taken-for-a-standstill',
    file: 'src/runtime.js',
    find: 'this.dispatcher.trial.isOn ? TRIAL_MS : 0',
    replace: '0',
    suites: [TRIAL],
  },
  {
    name: 'a-trial-without-end',
    file: 'src/actors/trial.js',
    find: 'this.timer = this.timers.set(over, TRIAL_MS, true);',
    replace: '',
    suites: [TRIAL],
  },
  {
    name: 'a-dangerous-job-waits-without-a-slot',
    file: DISPATCHER,
    find: 'if (this.running >= slots)',
    replace: 'if (false)',
    suites: [TRIAL],
  },
  {
    name: 'a-stopped-worker-claims-on',
    file: 'src/actors/backend-actor.js',
    find: 'this.withdrawn.add(claim);',
    replace: 'void claim;',
    suites: [MEMORY],
    only: 'a worker that has stopped claims nothing',
  },
  {
    name: 'late-grants-are-kept',
    file: DISPATCHER,
    find: "=== 'stopped')",
    replace: "=== 'full')",
    suites: [MEMORY],
    only: 'what an answer brings to a worker that has stopped',
  },
  {
    name: 'lost-slots-are-waited-for-in-vain',
    file: 'src/runtime.js',
    find: 'this.stopping !== null || this.fatal !== null;',
    replace: 'this.stopping !== null;',
    suites: [MEMORY],
    only: 'runUntilEmpty gives up',
  },
]
