/** What the memory model cannot show: group commit, namespaces, restarts, damage in the file, bounded upkeep. */
import { expect, test } from 'vitest'
import type { Grant } from '#dist/src/backends/protocol/index.js'
import { logBytes } from '#dist/src/backends/sqlite/connection.js'
import { runGroup } from '#dist/src/backends/sqlite/group-commit.js'
import type { SqliteStore } from '#dist/src/backends/sqlite/store.js'
import { HoldfastError } from '#dist/src/errors.js'
import { claim, freshPath, job, ManualClock, openStore } from './support.ts'

const enqueueOf = (...ids: string[]) =>
  ({ type: 'job.enqueue', request: { jobs: ids.map((id) => job(id)) }, nowMs: null }) as const

const take = (store: SqliteStore, more: Parameters<typeof claim>[0] = {}): Grant => {
  const grant = store.call('job.turn', { settlements: [], claims: [claim(more)], resend: false }).grants[0]
  if (grant === undefined) throw new Error('no grant')
  return grant
}

const isThere = (store: SqliteStore, ...ids: string[]): readonly boolean[] =>
  store.call('job.get', { ids: ids.map((id) => `mail/${id}`) }).jobs.map((found) => found !== null)

function codeOf(run: () => unknown): unknown {
  try {
    run()
    return null
  } catch (error) {
    return error instanceof HoldfastError ? error.code : error
  }
}

test.each([true, false])('a token of an earlier grant settles nothing, attempts on record: %s', (started) => {
  const store = openStore()
  store.call('job.enqueue', { jobs: [job('1')] })
  const id = 'mail/1'
  const stale = take(store).jobs[0]?.token ?? ''
  const release = { kind: 'release', id, token: stale, durationMs: 0, keepMs: null, started } as const
  store.call('job.turn', { settlements: [release], claims: [], resend: false })
  const token = take(store, { nonce: 'n2' }).jobs[0]?.token ?? ''
  const dump = () => [store.call('job.get', { ids: [id] }), store.call('job.history', { ids: [id] })]
  const before = dump()
  const failure = { code: 'HANDLER_ERROR', message: 'no' }
  const retry = { kind: 'fixed', attempts: 3, baseMs: 10, capMs: 10, jitter: 0 } as const
  const settlements = [null, 0, 100].flatMap((keepMs) => {
    const base = { id, token: stale, durationMs: 1, keepMs, failure, crashes: 0 }
    return [
      { ...base, kind: 'complete' as const, output: '1', keepOutputMs: null },
      { ...base, kind: 'retry' as const, delayMs: 0, retry, maxAttempts: 3 },
      { ...base, kind: 'dead' as const, code: 'PERMANENT' },
      { ...base, kind: 'cancel' as const },
      { ...base, kind: 'release' as const, started: true },
      { ...base, kind: 'requeue' as const },
    ]
  })
  const { verdicts } = store.call('job.turn', { settlements, claims: [], resend: false })
  expect(new Set(verdicts)).toEqual(new Set(['leaseLost']))
  expect(dump()).toEqual(before)
  const renewed = store.call('lease.renew', {
    leases: [
      { id, token: stale },
      { id, token },
    ],
    leaseMs: 1,
  })
  expect(renewed.outcomes).toEqual(['leaseLost', 'renewed'])
  store.close()
})

test('messages that wait are one transaction', () => {
  const store = openStore()
  let commits = 0
  const { write } = store.connection
  store.connection.write = (run) => {
    commits += 1
    return write.call(store.connection, run) as ReturnType<typeof run>
  }
  const answers = runGroup(store, [enqueueOf('1'), enqueueOf('2'), enqueueOf('3')])
  expect(answers.every((answer) => 'reply' in answer)).toBe(true)
  expect(commits).toBe(1)
  store.close()
})

test('a message that fails does not fail its neighbours', () => {
  const store = openStore()
  // A number with a fraction is no priority: the table refuses it.
  const bad = {
    type: 'job.enqueue',
    request: { jobs: [job('ok'), job('bad', { priority: 0.5 })] },
    nowMs: null,
  } as const
  const answers = runGroup(store, [enqueueOf('1'), bad, enqueueOf('2')])
  expect(answers.map((answer) => ('error' in answer ? answer.error.details.outcome : 'done'))).toEqual([
    'done',
    'refused',
    'done',
  ])
  expect(isThere(store, '1', 'ok', 'bad', '2')).toEqual([true, false, false, true])
  store.close()
})

test('reads that wait alone take no write lock', () => {
  const path = freshPath()
  const store = openStore({ path, busyDeadlineMs: 50 })
  const rival = openStore({ path })
  rival.connection.database.exec('BEGIN IMMEDIATE')
  const read = { type: 'job.get', request: { ids: ['mail/1'] }, nowMs: null } as const
  const idle = { type: 'lease.reap', request: { decisions: [], limit: 10 }, nowMs: null } as const
  expect(runGroup(store, [read, idle]).every((answer) => 'reply' in answer)).toBe(true)
  const answers = runGroup(store, [read, enqueueOf('1')])
  const errors = answers.map((answer) => ('error' in answer ? answer.error : null))
  expect(errors.map((error) => [error?.code, error?.details.outcome])).toEqual([
    ['STORE_BUSY', 'notDone'],
    ['STORE_BUSY', 'notDone'],
  ])
  rival.connection.database.exec('ROLLBACK')
  expect(isThere(store, '1')).toEqual([false])
  rival.close()
  store.close()
})

test('two namespaces of one file do not see each other', () => {
  const path = freshPath()
  const [a, b] = [openStore({ path, namespace: 'a' }), openStore({ path, namespace: 'b' })]
  const same = job('1', { idempotencyKey: 'k', deadlineAt: 1 })
  expect(a.call('job.enqueue', { jobs: [same] }).results[0]?.outcome).toBe('created')
  const other = job('2', { idempotencyKey: 'k' })
  expect(b.call('job.enqueue', { jobs: [other] }).results[0]?.outcome).toBe('created')
  expect(b.call('job.enqueue', { jobs: [{ ...same, idempotencyKey: null }] }).results[0]?.outcome).toBe('created')
  a.call('queue.policy', { changes: [{ lane: 'mail', paused: true }] })
  expect(b.call('queue.policy', { changes: [] }).policies).toEqual([])
  const grant = take(b, { keepDeadMs: null })
  expect([grant.jobs.map(({ id }) => id), grant.deadlined]).toEqual([['mail/2'], ['mail/1']])
  expect(a.call('job.get', { ids: ['mail/1', 'mail/2'] }).jobs.map((found) => found?.state)).toEqual([
    'queued',
    undefined,
  ])
  expect(a.call('job.cancel', { ids: ['mail/2'], force: true, keepMs: null }).outcomes).toEqual(['not_found'])
  const [held] = grant.jobs
  const lease = { id: held?.id ?? '', token: held?.token ?? '' }
  expect(a.call('lease.renew', { leases: [lease], leaseMs: 1 }).outcomes).toEqual(['gone'])
  const page = { lane: null, states: null, type: null, limit: 10, cursor: null }
  expect(a.call('job.list', page).jobs.map(({ id }) => id)).toEqual(['mail/1'])
  expect(a.call('queue.stats', { lanes: null }).lanes[0]?.counts).toMatchObject({ queued: 1, running: 0, dlq: 0 })
  a.close()
  b.close()
})

test('a restart keeps jobs, leases, keys, attempts and pauses, and the file is sound', () => {
  const path = freshPath()
  const clock = new ManualClock()
  const before = openStore({ path }, clock)
  const bytes = new Uint8Array([0, 1, 255])
  before.call('job.enqueue', {
    jobs: [
      job('1', { idempotencyKey: 'k', metadata: { a: [1] }, payload: bytes }),
      job('2', { delayMs: 5_000 }),
      job('3'),
      job('4', { lane: 'held' }),
    ],
  })
  before.call('queue.policy', { changes: [{ lane: 'held', paused: true }] })
  const [first, third] = take(before).jobs
  const failure = { code: 'HANDLER_ERROR', message: 'no' }
  const base = { durationMs: 3, keepMs: null }
  const retry = { kind: 'fixed', attempts: 3, baseMs: 10, capMs: 10, jitter: 0 } as const
  before.call('job.turn', {
    settlements: [
      {
        ...base,
        kind: 'retry',
        id: first?.id ?? '',
        token: first?.token ?? '',
        delayMs: 10,
        failure,
        crashes: 0,
        retry,
        maxAttempts: 3,
      },
      { ...base, kind: 'complete', id: third?.id ?? '', token: third?.token ?? '', output: '1', keepOutputMs: null },
    ],
    claims: [],
    resend: false,
  })
  const ids = ['mail/1', 'mail/2', 'mail/3', 'mail/4']
  const dump = (store: SqliteStore): unknown => [
    store.call('job.get', { ids }),
    store.call('job.history', { ids }),
    store.call('queue.stats', { lanes: null }),
    store.call('queue.policy', { changes: [] }),
  ]
  const seen = dump(before)
  before.close()

  const after = openStore({ path }, clock)
  expect(dump(after)).toEqual(seen)
  expect(after.call('job.get', { ids }).jobs[0]?.payload).toEqual(bytes)
  expect(after.call('job.enqueue', { jobs: [job('5', { idempotencyKey: 'k' })] }).results[0]).toEqual({
    outcome: 'deduplicated',
    id: 'mail/1',
    state: 'retry_wait',
  })
  expect(after.connection.database.pragma('integrity_check', { simple: true })).toBe('ok')
  after.close()
})

test('a damaged record does not hide the others of a list', () => {
  const store = openStore()
  store.call('job.enqueue', { jobs: ['1', '2', '3'].map((id) => job(id, { metadata: { id } })) })
  store.connection.database.exec("UPDATE holdfast_job SET metadata = '{', retry = '5' WHERE id = 'mail/2'")
  const query = { lane: 'mail', states: null, type: null, limit: 10, cursor: null }
  const { jobs } = store.call('job.list', query)
  expect(jobs.map(({ id, metadata, lastFailure }) => [id, metadata, lastFailure?.code])).toEqual([
    ['mail/3', { id: '3' }, undefined],
    ['mail/2', null, 'STORE_CORRUPT'],
    ['mail/1', { id: '1' }, undefined],
  ])
})

test('a damaged column is STORE_CORRUPT where it is read, and a claim puts the job aside and goes on', () => {
  const store = openStore()
  store.call('job.enqueue', { jobs: [job('1'), job('2'), job('3')] })
  const { database } = store.connection
  database.exec(`UPDATE holdfast_job SET metadata = '{"half' WHERE id = 'mail/1'`)
  database.exec(`UPDATE holdfast_job SET last_failure = '7' WHERE id = 'mail/3'`)
  expect(codeOf(() => store.call('job.get', { ids: ['mail/1'] }))).toBe('STORE_CORRUPT')
  expect(codeOf(() => store.call('job.get', { ids: ['mail/3'] }))).toBe('STORE_CORRUPT')
  const grant = take(store, { limit: 2 })
  expect(grant.jobs.map(({ id }) => id)).toEqual(['mail/2', 'mail/3'])
  expect(database.prepare("SELECT state, dlq_code FROM holdfast_archive WHERE id = 'mail/1'").get()).toEqual({
    state: 'dlq',
    dlq_code: 'STORE_CORRUPT',
  })
  expect(take(store)).toMatchObject({ jobs: [], more: false })
  store.close()
})

test('a state that is none is STORE_CORRUPT and not a guess', () => {
  const store = openStore()
  store.call('job.enqueue', { jobs: [job('1')] })
  store.connection.database.pragma('ignore_check_constraints = ON')
  store.connection.database.exec("UPDATE holdfast_job SET state = 'odd'")
  expect(codeOf(() => store.call('job.get', { ids: ['mail/1'] }))).toBe('STORE_CORRUPT')
  expect(codeOf(() => store.call('job.cancel', { ids: ['mail/1'], force: true, keepMs: null }))).toBe('STORE_CORRUPT')
  store.close()
})

test('upkeep works in bounded batches and says when there is more', () => {
  const clock = new ManualClock()
  const store = openStore({}, clock)
  store.call('job.enqueue', { jobs: Array.from({ length: 7 }, (_, index) => job(`done${index}`)) })
  const ids = Array.from({ length: 7 }, (_, index) => `mail/done${index}`)
  store.call('job.cancel', { ids, force: false, keepMs: 100 })
  store.call('job.enqueue', { jobs: Array.from({ length: 5 }, (_, index) => job(`due${index}`, { delayMs: 50 })) })
  store.call('job.enqueue', {
    jobs: Array.from({ length: 5 }, (_, index) => job(`late${index}`, { lane: 'late', deadlineAt: clock.ms + 60 })),
  })
  clock.ms += 99
  const upkeep = () => store.call('store.maintain', { limit: 4, keepDeadMs: null })
  expect(upkeep()).toEqual({ pruned: 0, outputsDropped: 0, promoted: 4, deadlined: 4, more: true })
  clock.ms += 1
  expect(upkeep()).toEqual({ pruned: 4, outputsDropped: 0, promoted: 1, deadlined: 1, more: true })
  expect(upkeep()).toEqual({ pruned: 3, outputsDropped: 0, promoted: 0, deadlined: 0, more: false })
  store.close()
})

test('attempts go with their job', () => {
  const clock = new ManualClock()
  const store = openStore({}, clock)
  store.call('job.enqueue', { jobs: [job('1'), job('2')] })
  const failure = { code: 'HANDLER_ERROR', message: 'no' }
  const settlements = take(store).jobs.map(
    ({ id, token }, index) =>
      ({ kind: 'dead', id, token, durationMs: 1, keepMs: index * 10, code: 'PERMANENT', failure, crashes: 0 }) as const,
  )
  store.call('job.turn', { settlements, claims: [], resend: false })
  const count = store.connection.database.prepare('SELECT count(*) FROM holdfast_attempt').pluck()
  expect(count.get()).toBe(1)
  clock.ms += 10
  expect(store.call('store.maintain', { limit: 10, keepDeadMs: null }).pruned).toBe(1)
  expect(count.get()).toBe(0)

  store.call('job.enqueue', { jobs: [job('3')] })
  const token = (): string => take(store, { nonce: `n${count.get()}` }).jobs[0]?.token ?? ''
  const base = { id: 'mail/3', durationMs: 1, keepMs: 0 }
  const release = { ...base, kind: 'release', token: token(), started: true } as const
  store.call('job.turn', { settlements: [release], claims: [], resend: false })
  expect(count.get()).toBe(1)
  const complete = { ...base, kind: 'complete', token: token(), output: null, keepOutputMs: null } as const
  store.call('job.turn', { settlements: [complete], claims: [], resend: false })
  expect(count.get()).toBe(0)
  store.close()
})

test('lines of a log go with their job: when it ends and is not kept, and when its record is pruned', () => {
  const clock = new ManualClock()
  const store = openStore({}, clock)
  const count = store.connection.database.prepare('SELECT count(*) FROM holdfast_job_log').pluck()
  store.call('job.enqueue', { jobs: [job('dropped'), job('kept'), job('live')] })
  for (const [id, keepMs] of [
    ['dropped', 0],
    ['kept', 50],
    ['live', null],
  ] as const) {
    const token = take(store, { nonce: id, limit: 1 }).jobs[0]?.token ?? ''
    const note = { progress: null, lines: [{ number: 1, text: '{}' }], keepLines: 5 }
    const noted = store.call('job.note', { notes: [{ id: `mail/${id}`, token, ...note }] })
    expect(noted).toEqual({ verdicts: ['applied'] })
    const base = { id: `mail/${id}`, token, durationMs: 0, keepMs }
    const complete = { ...base, kind: 'complete', output: null, keepOutputMs: null } as const
    if (id !== 'live') store.call('job.turn', { settlements: [complete], claims: [], resend: false })
  }
  expect(count.get()).toBe(2)
  clock.ms += 100
  expect(store.call('store.maintain', { limit: 10, keepDeadMs: null })).toMatchObject({ pruned: 1 })
  expect(count.get()).toBe(1)
  store.close()
})

test('a full store refuses with STORE_FULL, keeps what it has and takes what makes room', () => {
  const path = freshPath()
  const store = openStore({ path })
  store.call('job.enqueue', { jobs: [job('1')] })
  const { database } = store.connection
  database.pragma(`max_page_count = ${Number(database.pragma('page_count', { simple: true })) + 2}`)
  const big = {
    type: 'job.enqueue',
    request: { jobs: [job('big', { payload: 'x'.repeat(100_000) })] },
    nowMs: null,
  } as const
  const stop = { type: 'job.cancel', request: { ids: ['mail/1'], force: false, keepMs: 0 }, nowMs: null } as const
  const [full, stopped] = runGroup(store, [big, stop])
  expect(full !== undefined && 'error' in full ? [full.error.code, full.error.details.outcome] : null).toEqual([
    'STORE_FULL',
    'notDone',
  ])
  expect(stopped).toEqual({ reply: { outcomes: ['cancelled'] } })
  expect(isThere(store, 'big', '1')).toEqual([false, false])
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
  store.close()
})

test('the log that a long reader made grow is cut back once it has gone', () => {
  const path = freshPath()
  const store = openStore({ path })
  const reader = openStore({ path })
  reader.connection.database.exec('BEGIN; SELECT count(*) FROM holdfast_job;')
  const payload = 'x'.repeat(1_000_000)
  for (let index = 0; index < 52; index += 1) {
    store.call('job.enqueue', { jobs: [job(String(index), { payload })] })
  }
  store.connection.housekeep()
  expect(logBytes(store.connection)).toBeGreaterThan(50_000_000)
  reader.connection.database.exec('COMMIT')
  store.connection.housekeep()
  expect(logBytes(store.connection)).toBe(0)
  expect(isThere(store, '0', '51')).toEqual([true, true])
  reader.close()
  store.close()
})
