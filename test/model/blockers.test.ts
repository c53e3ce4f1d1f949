/** Why a job does not run, from what its lane allows: words and numbers come from the data alone, and what is not known is not said. */
import fc from 'fast-check'
import type { JobRecord, JobState } from 'holdfast'
import { JOB_STATES } from 'holdfast'
import { describe, expect, test } from 'vitest'
import { type Blocker, blockersOf, type ExplainContext, type LaneLimits, span } from '#dist/src/blockers.js'
import { explainJob } from '#dist/src/explain.js'
import type { WorkerInfo } from '#dist/src/worker-list.js'

const NOW = 1_700_000_000_000

const jobOf = (overrides: Partial<JobRecord> = {}): JobRecord => ({
  id: 'mail/1',
  type: 'send',
  lane: 'mail',
  state: 'queued',
  priority: 0,
  createdAt: NOW - 60_000,
  updatedAt: NOW - 60_000,
  runAt: NOW - 60_000,
  deadlineAt: null,
  timeoutMs: null,
  attempts: 0,
  maxAttempts: 7,
  crashes: 0,
  maxCrashes: 3,
  retry: null,
  idempotencyKey: null,
  metadata: null,
  traceId: null,
  concurrencyKey: null,
  replayOf: null,
  workerId: null,
  leaseEpoch: null,
  leaseExpiresAt: null,
  startedAt: null,
  finishedAt: null,
  cancelRequested: false,
  lastFailure: null,
  dlqCode: null,
  progress: null,
  ...overrides,
})

const workerOf = (overrides: Partial<WorkerInfo> = {}): WorkerInfo => ({
  id: 'w',
  lanes: ['mail'],
  types: ['send'],
  moreTypes: 0,
  moreLanes: 0,
  concurrency: 2,
  running: 1,
  isStopping: false,
  isAlive: true,
  lastBeatMs: 1_000,
  startedAt: NOW - 60_000,
  host: 'a',
  pid: 1,
  nodeVersion: '20.0.0',
  version: '1.0.0',
  ...overrides,
})

const nothing: ExplainContext = { nowMs: NOW, workers: null, isPaused: null, ahead: null, limits: null }
const withLimits = (limits: LaneLimits): readonly Blocker[] =>
  blockersOf(jobOf(), { ...nothing, workers: [workerOf()], limits })
const textsOf = (blockers: readonly Blocker[]): readonly string[] => blockers.map(({ text }) => text)

describe('the limits of a lane', () => {
  test('of jobs at once, when it is reached', () => {
    expect(textsOf(withLimits({ maxInFlight: 3, inFlight: 2 }))).toEqual([])
    expect(withLimits({ maxInFlight: 3, inFlight: 3 })).toEqual([
      { kind: 'limit', maxInFlight: 3, inFlight: 3, text: 'lane mail runs at most 3 at once, and 3 run' },
    ])
    expect(textsOf(withLimits({ maxInFlight: 1, inFlight: 1 }))).toEqual([
      'lane mail runs at most 1 at once, and 1 runs',
    ])
    expect(textsOf(withLimits({ maxInFlight: null, inFlight: 9 }))).toEqual([])
    expect(textsOf(withLimits({ maxInFlight: 0, inFlight: 0 }))).toEqual([
      'lane mail runs at most 0 at once, and 0 run',
    ])
  })

  test('of starts in a time, while it holds back', () => {
    expect(textsOf(withLimits({ rate: { limit: 5, perMs: 60_000 }, throttledInMs: 0 }))).toEqual([])
    expect(textsOf(withLimits({ rate: { limit: 5, perMs: 60_000 }, throttledInMs: 2_500 }))).toEqual([
      'lane mail starts at most 5 in 60 s; the next may start in 2.5 s',
    ])
    expect(textsOf(withLimits({ throttledInMs: 2_500 }))).toEqual([
      'lane mail starts a limited rate; the next may start in 2.5 s',
    ])
  })

  test('of a key, with those that hold it', () => {
    const key = { maxPerKey: 1, concurrencyKey: 'tenant-7', keyInFlight: 1 }
    expect(textsOf(withLimits({ ...key, keyInFlight: 0 }))).toEqual([])
    expect(textsOf(withLimits({ ...key, concurrencyKey: null }))).toEqual([])
    expect(withLimits({ ...key, holders: ['mail/0'] })).toEqual([
      {
        kind: 'key_limit',
        concurrencyKey: 'tenant-7',
        maxPerKey: 1,
        keyInFlight: 1,
        holders: ['mail/0'],
        text: 'key tenant-7 of lane mail allows 1 at once, and 1 runs, held by mail/0',
      },
    ])
    const many = Array.from({ length: 13 }, (_, index) => `mail/${index}`)
    expect(textsOf(withLimits({ ...key, keyInFlight: 13, holders: many }))[0]).toMatch(/mail\/9 and 3 more$/)
  })

  test('come after a paused lane and before a queue, and hold back only what is ready', () => {
    const context = { ...nothing, isPaused: true, workers: [], ahead: { count: 1_000, max: 1_000 } }
    const limits = { maxInFlight: 1, inFlight: 1 }
    const kinds = blockersOf(jobOf(), { ...context, limits }).map(({ kind }) => kind)
    expect(kinds).toEqual(['paused', 'no_worker', 'limit', 'behind'])
    const later = blockersOf(jobOf({ state: 'scheduled', runAt: NOW + 1 }), { ...context, limits })
    expect(later.map(({ kind }) => kind)).toEqual(['not_due', 'paused', 'no_worker'])
    expect(textsOf(blockersOf(jobOf(), { ...nothing, ahead: { count: 1_000, max: 1_000 } }))).toEqual([
      '1000 or more jobs of the lane are ahead of it',
    ])
  })
})

test('a worker that lists only some of its lanes and types is taken to serve what it does not list', () => {
  const shy = workerOf({ lanes: [], types: [], moreLanes: 1, moreTypes: 1 })
  expect(blockersOf(jobOf(), { ...nothing, workers: [shy] })).toEqual([])
})

test('a waiting job waits for its parent, an ended one for nothing', () => {
  const context = { ...nothing, isPaused: true, workers: [] }
  const kindsOf = (state: JobState) => blockersOf(jobOf({ state }), context).map(({ kind }) => kind)
  expect(kindsOf('waiting')).toEqual(['waiting_for_parent'])
  for (const state of ['completed', 'cancelled', 'dlq'] as const) expect(kindsOf(state)).toEqual([])
})

test('every explanation is whole sentences of one line, whatever is known', () => {
  const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })
  const number = fc.integer({ min: 0, max: 5 })
  const limits = fc.record({
    maxInFlight: maybe(number),
    inFlight: maybe(number),
    throttledInMs: maybe(fc.integer({ min: -10, max: 100_000 })),
    maxPerKey: maybe(number),
    concurrencyKey: maybe(fc.string({ minLength: 1 })),
    keyInFlight: maybe(number),
  })
  const worker = fc
    .record({
      id: fc.constantFrom('a', 'b'),
      lanes: fc.subarray(['mail', 'other']),
      types: fc.subarray(['send', 'receive']),
      isAlive: fc.boolean(),
      isStopping: fc.boolean(),
      running: number,
      lastBeatMs: fc.nat(600_000),
    })
    .map(workerOf)
  const context = fc.record({
    nowMs: fc.constant(NOW),
    workers: maybe(fc.array(worker, { maxLength: 3 })),
    isPaused: maybe(fc.boolean()),
    ahead: maybe(number.map((count) => ({ count, max: 4 }))),
    limits: maybe(limits),
  })
  const job = fc
    .record({
      state: fc.constantFrom(...JOB_STATES),
      runAt: fc.integer({ min: NOW - 100_000, max: NOW + 100_000 }),
      deadlineAt: maybe(fc.integer({ min: NOW - 100_000, max: NOW + 100_000 })),
      leaseExpiresAt: maybe(fc.integer({ min: NOW - 100_000, max: NOW + 100_000 })),
      workerId: maybe(fc.constantFrom('a', 'b', 'c')),
    })
    .map(jobOf)
  fc.assert(
    fc.property(job, context, (record, known) => {
      const explained = explainJob(record, [], known)
      for (const { text } of explained.blockers) expect(text).not.toMatch(/undefined|NaN|null|\n|-\d/)
      expect(explained.summary).not.toMatch(/undefined|NaN|\n/)
      if (known.workers === null) expect(explained.blockers.map(({ kind }) => kind)).not.toContain('no_worker')
    }),
  )
})

test('spans read as people say them', () => {
  expect([0, 1_449, 60_000, 120_000, 7_200_000, 259_200_000].map(span)).toEqual([
    '0 s',
    '1.4 s',
    '60 s',
    '2 min',
    '2 h',
    '3 d',
  ])
})
