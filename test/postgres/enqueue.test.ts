/**
 * The usual batch, alike but for ids and payloads, has a statement of its own: what it stores, answers and refuses is what the general
 * one does. The seed is printed by fast-check when a case fails.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import type { JobDefinition } from '#dist/src/job.js'
import { PostgresServer } from '../support/postgres-server.ts'
import { claimOne, complete, definition, settle, stored, ulid } from '../support/protocol.ts'
import { openBackend } from './support.ts'

let server: PostgresServer
let backend: PostgresBackend

beforeAll(async () => {
  server = await PostgresServer.start()
  backend = await openBackend(server.url, 'enqueue')
})
afterAll(async () => {
  await backend.close()
  await server.stop()
})

const enqueue = async (jobs: readonly JobDefinition[], resend = false) =>
  (await backend.call('job.enqueue', { jobs, resend })).results

/** What is stored of a job, without what differs by when and under which name it was stored. */
async function picture(id: string): Promise<object> {
  const { id: _, createdAt, updatedAt, runAt, ...rest } = await stored(backend, id)
  expect(updatedAt).toBe(createdAt)
  // The delay, or an instant that was given.
  return { ...rest, runAt: Math.abs(runAt - createdAt) < 1_000_000 ? runAt - createdAt : runAt }
}

const optional = (arbitrary: fc.Arbitrary<number>) => fc.option(arbitrary, { nil: null })
const shared = fc.record({
  lane: fc.constantFrom('default', 'mail'),
  type: fc.constantFrom('task', 'täsk "of\\ quotes,{}'),
  priority: fc.constantFrom(0, -5, 7),
  runAt: optional(fc.constantFrom(0, 9_000_000_000_000)),
  delayMs: fc.constantFrom(0, 0, 60_000),
  deadlineAt: optional(fc.constant(9_000_000_000_001)),
  timeoutMs: optional(fc.constantFrom(0, 1_500)),
  maxAttempts: fc.constantFrom(1, 7),
  maxAttemptsFixed: fc.boolean(),
  maxCrashes: fc.constantFrom(1, 3),
  keepResultMs: optional(fc.constantFrom(0, 5_000)),
})
const payload = fc.oneof(
  fc.json().filter((text) => !text.includes('\\u0000')),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom('', '"\\\\x41"', '{"a":"{},\\"\\\\ "}', 'null'),
)

it('stores and answers as the general statement does', async () => {
  await fc.assert(
    fc.asyncProperty(shared, fc.array(payload, { minLength: 1, maxLength: 5 }), async (same, payloads) => {
      const jobsOf = () => payloads.map((each) => definition({ ...same, id: `${same.lane}/${ulid()}`, payload: each }))
      const alike = jobsOf()
      const [other, general] = [definition({ lane: 'other', type: 'other' }), jobsOf()]
      const answers = await enqueue(alike)
      // One that differs makes all of them go the general way.
      const expected = (await enqueue([other, ...general])).slice(1)
      expect(answers.map(({ id }) => id)).toEqual(alike.map(({ id }) => id))
      const pictures = (results: typeof answers) => results.map(({ id: _, ...rest }) => rest)
      expect(pictures(answers)).toEqual(pictures(expected))
      for (const [index, { id }] of alike.entries())
        expect(await picture(id)).toEqual(await picture(general[index]?.id ?? ''))
    }),
    { numRuns: Number(process.env.HOLDFAST_RUNS ?? 60) },
  )
})

it.each<Partial<JobDefinition>>([
  { lane: 'mail' },
  { type: 'other' },
  { priority: 3 },
  { runAt: 9_000_000_000_000 },
  { deadlineAt: 9_000_000_000_000 },
  { timeoutMs: 7 },
  { maxAttempts: 2 },
  { maxAttemptsFixed: true },
  { maxCrashes: 9 },
  { keepResultMs: 4 },
  { idempotencyKey: 'k' },
  { metadata: { a: 1 } },
  { retry: { kind: 'fixed', attempts: 2, delayMs: 3 } as never },
  { traceId: 't' },
  { replayOf: 'default/x' },
])('of two jobs that differ in one thing each keeps its own: %j', async (difference) => {
  const lane = difference.lane ?? 'default'
  const [plain, own] = [definition(), definition({ id: `${lane}/${ulid()}`, ...difference })]
  for (const jobs of [[plain, own], [own, definition()].toReversed()]) await enqueue(jobs.map((job) => ({ ...job })))
  expect(await stored(backend, own.id)).toMatchObject(difference)
  for (const [field, value] of Object.entries(difference))
    expect((await stored(backend, plain.id))[field as 'type']).not.toEqual(value)
})

it('keeps the order of the batch', async () => {
  const jobs = Array.from({ length: 200 }, () => definition({ lane: 'order', id: `order/${ulid()}` }))
  await enqueue(jobs)
  const order: string[] = []
  for (let n = 0; n < jobs.length; n += 50) {
    const { grants } = await backend.call('job.turn', {
      settlements: [],
      claims: [{ workerId: 'w', nonce: `nonce-${n}`, lanes: ['order'], limit: 50, leaseMs: 60_000, keepDeadMs: null }],
      resend: false,
    })
    order.push(...(grants[0]?.jobs.map(({ id }) => id) ?? []))
  }
  expect(order).toEqual(jobs.map(({ id }) => id))
})

it('of a batch with an id that is there, live or ended, nothing is stored twice, whatever the request says', async () => {
  const [live, done] = [definition({ lane: 'again' }), definition({ lane: 'ended' })]
  await enqueue([live])
  await enqueue([done])
  const { id, token } = await claimOne(backend, { lanes: ['ended'] })
  expect(await settle(backend, complete({ id, token }))).toBe('applied')
  const fresh = [definition({ lane: 'again' }), definition({ lane: 'again' })]
  expect(await enqueue([fresh[0] as JobDefinition, live, fresh[1] as JobDefinition])).toMatchObject([
    { outcome: 'created', state: 'queued' },
    { outcome: 'created', id: live.id, state: 'queued' },
    { outcome: 'created', state: 'queued' },
  ])
  expect(await enqueue([live, live])).toMatchObject([{ id: live.id }, { id: live.id }])
  expect(await enqueue([done], true)).toEqual([{ outcome: 'created', id: done.id, state: 'completed' }])
  const { jobs } = await backend.call('job.list', { lane: 'again', states: null, type: null, limit: 10, cursor: null })
  expect(jobs.map((job) => job.id).toSorted()).toEqual([live, ...fresh].map((job) => job.id).toSorted())
})

it('a value that is written as JSON and is none is kept as bytes, and its neighbours are accepted', async () => {
  const jobs = [definition(), definition({ payload: '{"n":' }), definition()]
  expect((await enqueue(jobs)).map(({ outcome }) => outcome)).toEqual(['created', 'created', 'created'])
  expect(Buffer.from((await stored(backend, jobs[1]?.id ?? '')).payload as Uint8Array).toString()).toBe('{"n":')
})
