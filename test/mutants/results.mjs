/** Bugs planted in what handlers say of their jobs, and in the wait for results. */

const LUA = 'src/lua'
const SQLITE = 'src/backends/sqlite/statement'
const POSTGRES = 'src/backends/postgres'

const NOTES = 'test/runtime/notes.test.ts'
const RESULTS = 'test/runtime/results.test.ts'
const FAILURE = 'test/model/failure.test.ts'
const LOG_WINDOW = 'test/pool/log-window.test.ts'
const LOG_FLOOD = 'test/pool/log-flood.test.ts'
const MEMORY = 'test/conformance/memory.test.ts'
const SQLITE_MODEL = 'test/sqlite/model.test.ts'
const SQLITE_STORE = 'test/sqlite/store.test.ts'
const POSTGRES_MODEL = 'test/postgres/model.test.ts'
const REDIS_MODEL = 'test/redis/model.test.ts'
const REDIS_ENDS = 'test/redis/ends.test.ts'

/** @type {readonly import('./catalog.mjs').Mutant[]} */
export const RESULT_MUTANTS = [
  {
    name: 'note-last-words-lost',
    file: 'src/actors/job-actor.js',
    find: '? settlement : { ...settlement, note }',
    replace: '? settlement : settlement',
    suites: [NOTES],
  },
  {
    name: 'note-on-its-way-forgotten',
    file: 'src/actors/attempt-notes.js',
    find: 'const lines = [...this.underWay.lines, ...this.lines].slice(-keepLines);',
    replace: 'const lines = this.lines.slice(-keepLines);',
    suites: [NOTES],
  },
  {
    name: 'note-of-a-failed-call-dropped',
    file: 'src/actors/attempt-notes.js',
    find: 'this.lines = [...lines, ...this.lines];',
    replace: '',
    suites: [NOTES],
  },
  {
    name: 'note-without-a-pause',
    edits: [
      {
        file: 'src/actors/note-writer.js',
        find: 'return notes.isUrgent || now - notes.changedAt >= INTERVAL_MS / 2;',
        replace: 'return true;',
      },
      { file: 'src/actors/note-writer.js', find: 'Math.max(1, waitMs)', replace: '1' },
    ],
    suites: [NOTES],
  },
  {
    name: 'note-held-without-end',
    file: 'src/actors/attempt-notes.js',
    find: 'this.lines = this.lines.slice(-keepLines);',
    replace: 'return;',
    suites: [NOTES],
  },
  {
    name: 'memory-line-stored-twice',
    file: 'src/backends/memory/settle.js',
    find: 'number > known',
    replace: 'number > 0',
    suites: [SQLITE_MODEL],
  },
  {
    name: 'sqlite-one-line-too-few',
    file: `${SQLITE}/job_note.sql`,
    find: 'OFFSET :room',
    replace: 'OFFSET max(0, :room - 1)',
    suites: [SQLITE_MODEL],
  },
  {
    name: 'sqlite-lines-outlive-their-record',
    file: `${SQLITE}/archive_prune.sql`,
    find: 'DELETE FROM holdfast_job_log WHERE job_seq IN (',
    replace: 'DELETE FROM holdfast_job_log WHERE 0 AND job_seq IN (',
    suites: [SQLITE_STORE],
  },
  {
    name: 'postgres-lines-left-behind',
    file: `${POSTGRES}/include/ending.sql`,
    find: 'FROM holdfast.job_log AS log WHERE log.job_seq = ended.seq',
    replace: 'FROM holdfast.job_log AS log WHERE log.job_seq = ended.seq AND log.lease_epoch = ended.lease_epoch',
    suites: [POSTGRES_MODEL],
  },
  {
    name: 'lua-line-stored-twice',
    file: `${LUA}/include/note.lua`,
    find: 'tonumber(number) <= last',
    replace: 'tonumber(number) < last',
    suites: [REDIS_MODEL],
  },
  {
    name: 'lua-log-left-behind',
    file: `${LUA}/include/finish.lua`,
    find: 'ipairs({ failures, terms, history, outputs, progress, logs, concurrency })',
    replace: 'ipairs({ failures, terms, history, outputs, progress, concurrency })',
    suites: [REDIS_MODEL],
  },
  {
    name: 'lua-ends-told-to-nobody-in-particular',
    file: `${LUA}/script/job_turn.lua`,
    find: 'if waited > now then',
    replace: 'if waited >= 0 then',
    suites: [REDIS_ENDS],
  },
  {
    name: 'results-looked-at-without-a-gap',
    file: 'src/result-waiters.js',
    find: 'const GAP_MS = 20;',
    replace: 'const GAP_MS = 0;',
    suites: [RESULTS],
  },
  {
    name: 'results-without-a-last-look',
    file: 'src/result-waiters.js',
    find: `waiter.isLate = true;
                waiter.dueAt = now;`,
    replace: 'this.giveUp(waiter);',
    suites: [RESULTS],
  },
  {
    name: 'results-follow-every-hint',
    file: 'src/result-hints.js',
    find: 'Math.min(GAP_MAX_MS, hints.gapMs * 2)',
    replace: 'GAP_MIN_MS',
    suites: [RESULTS],
  },
  {
    name: 'failure-calls-getters',
    file: 'src/failure.js',
    find: 'TRUSTED_GETTERS.has(property.get)',
    replace: 'property.get !== undefined',
    suites: [FAILURE],
  },
  {
    name: 'log-lines-of-a-thread-without-limit',
    file: 'workers/log-window.js',
    find: 'this.#held.length === 0 && this.#room > 0',
    replace: 'true',
    suites: [LOG_WINDOW],
    second: [LOG_FLOOD],
  },
  {
    name: 'log-lines-left-out-without-a-word',
    file: 'workers/log-window.js',
    find: 'this.#leftOut += from;',
    replace: '',
    suites: [LOG_WINDOW],
  },
  {
    name: 'log-lines-taken-are-not-counted',
    file: 'src/actors/thread-link.js',
    find: 'Atomics.add(lines.taken, 0, lines.fresh);',
    replace: ';',
    suites: [LOG_FLOOD],
    only: 'a burst',
  },
  {
    name: 'log-lines-held-at-the-exit-of-a-thread',
    file: 'workers/handler-worker.js',
    find: "process.once('exit', () => link.flush());",
    replace: '',
    suites: [LOG_FLOOD],
    only: 'a thread that exits',
  },
  {
    name: 'logger-is-given-what-was-logged',
    file: 'src/actors/job-log.js',
    find: 'const { fields, message } = loggedLine(first, second);\n    if (message === undefined)',
    replace: 'const { fields, message } = { fields: first, message: second };\n    if (message === undefined)',
    suites: [MEMORY],
    only: 'O8 fail no attempt inline',
  },
]
