/** What a store makes of an enqueue: defaults, times, refusals, ids. Assertions 1–4, 14, 15. */
import { describe, expect, it } from 'vitest'
import { rejection } from '../support/event.ts'
import { claim, grantOf } from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

const HOUR = 3_600_000

export function jobEnqueueSuite({ harness }: SuiteContext): void {
  describe('job enqueue', () => {
    it('1 a job without options has the documented defaults', async () => {
      const hf = await harness().connect()
      const before = harness().now()
      const handle = await hf.enqueue('greet', { name: 'World' })
      const after = harness().now()
      const job = await hf.get(handle.id)
      expect(handle.deduplicated).toBe(false)
      expect(handle.id).toMatch(/^default\/[0-9A-HJKMNP-TV-Z]{26}$/)
      expect(job).toMatchObject({
        id: handle.id,
        type: 'greet',
        lane: 'default',
        state: 'queued',
        priority: 0,
        attempts: 0,
        maxAttempts: 7,
        crashes: 0,
        maxCrashes: 3,
        deadlineAt: null,
        timeoutMs: null,
        idempotencyKey: null,
        replayOf: null,
        metadata: null,
        traceId: null,
        workerId: null,
        leaseExpiresAt: null,
        startedAt: null,
        finishedAt: null,
        lastFailure: null,
        dlqCode: null,
        cancelRequested: false,
        input: { name: 'World' },
        hasOutput: false,
      })
      expect(job?.createdAt).toBe(job?.runAt)
      expect(job?.createdAt).toBeGreaterThanOrEqual(Math.floor(before))
      expect(job?.createdAt).toBeLessThanOrEqual(Math.ceil(after))
      expect(await hf.attempts(handle.id)).toEqual([])
    })

    it('1 what the options say is what is stored', async () => {
      const hf = await harness().connect()
      const deadline = harness().now() + HOUR
      const { id } = await hf.enqueue('greet', [1], {
        queue: 'mail',
        priority: -2,
        deadline,
        timeout: '30s',
        maxAttempts: 4,
        maxCrashes: 9,
        metadata: { tenant: 'a', nested: { list: [1, null] } },
        traceId: 'trace-1',
      })
      expect(await hf.get(id)).toMatchObject({
        lane: 'mail',
        priority: -2,
        deadlineAt: Math.round(deadline),
        timeoutMs: 30_000,
        maxAttempts: 4,
        maxCrashes: 9,
        metadata: { tenant: 'a', nested: { list: [1, null] } },
        traceId: 'trace-1',
      })
    })

    it('2 a job of the future is scheduled and is not given out', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const delayed = await hf.enqueue('later', 1, { delay: '1h' })
      const dated = await hf.enqueue('later', 2, { runAt: harness().now() + 2 * HOUR })
      for (const { id } of [delayed, dated]) expect((await hf.get(id))?.state).toBe('scheduled')
      const grant = await grantOf(raw, { limit: 10 })
      expect(grant.jobs).toEqual([])
      expect(grant.more).toBe(false)
      expect(grant.dueInMs).toBeGreaterThan(HOUR - 60_000)
      expect(grant.dueInMs).toBeLessThanOrEqual(HOUR)
    })

    it('3 a scheduled job can be claimed once its time has come, and not before', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const { id } = await hf.enqueue('later', 1, { delay: '1h' })
      await harness().advance(HOUR - 60_000)
      expect(await claim(raw)).toEqual([])
      await harness().advance(60_001)
      expect((await claim(raw)).map((job) => job.id)).toEqual([id])
      expect(await hf.get(id)).toMatchObject({ state: 'running', attempts: 1 })
    })

    it('4 a job of the past can be claimed at once', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const old = await hf.enqueue('late', 1, { runAt: new Date(0) })
      const recent = await hf.enqueue('late', 2, { runAt: harness().now() - 1 })
      const unspoken = await hf.enqueue('late', 3, { delay: 0 })
      for (const { id } of [old, recent, unspoken]) expect((await hf.get(id))?.state).toBe('queued')
      expect(new Set((await claim(raw, { limit: 10 })).map((job) => job.id))).toEqual(
        new Set([old.id, recent.id, unspoken.id]),
      )
    })

    it('4 C077 however long ago, the past means now: all run in the order of their arrival', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const times = [undefined, -5, new Date(-8.64e15), '0001-01-01T00:00:00Z', 0, -1e12, -1e13, harness().now() - 1e9]
      const ids: string[] = []
      for (const runAt of times) {
        ids.push((await hf.enqueue('late', 1, runAt === undefined ? {} : { runAt })).id)
        await harness().advance(2)
      }
      const at = harness().now()
      expect((await hf.stats()).oldestReadyMs).toBeLessThan(60_000)
      expect((await claim(raw, { limit: 10 })).map((job) => job.id)).toEqual(ids)
      const [id = ''] = ids
      expect(await hf.cancel(id, { force: true })).toBe('cancelled')
      const again = await hf.replay(id, { runAt: -1e13 })
      expect((await hf.get(again.id))?.runAt).toBeGreaterThan(at - 60_000)
      expect((await claim(raw, { limit: 10 })).map((job) => job.id)).toEqual([again.id])
    })

    it('14 what is wrong is refused with a code of its own, and nothing is stored', async () => {
      const hf = await harness().connect({ payloadBytesMax: 100 })
      const refused = [
        ['INVALID_NAME', '', 1, {}],
        ['INVALID_NAME', 'x'.repeat(129), 1, {}],
        ['INVALID_NAME', 'line\nbreak', 1, {}],
        ['INVALID_ARGUMENT', 'task', 1, { maxAttempts: 0 }],
        ['INVALID_ARGUMENT', 'task', 1, { maxAttempts: -1 }],
        ['INVALID_ARGUMENT', 'task', 1, { maxAttempts: 1.5 }],
        ['INVALID_ARGUMENT', 'task', 1, { maxAttempts: Number.NaN }],
        ['INVALID_ARGUMENT', 'task', 1, { maxAttemps: 3 }],
        ['INVALID_ARGUMENT', 'task', 1, { delay: 5, runAt: 5 }],
        ['INVALID_ARGUMENT', 'task', 1, { priority: 2 ** 31 }],
        ['INVALID_ARGUMENT', 'task', 1, { idempotencyKey: '' }],
        ['INVALID_DURATION', 'task', 1, { delay: -1 }],
        ['INVALID_DURATION', 'task', 1, { delay: '5 minutes' }],
        ['INVALID_INSTANT', 'task', 1, { runAt: 'tomorrow' }],
        ['INVALID_INSTANT', 'task', 1, { deadline: Number.POSITIVE_INFINITY }],
        ['INVALID_PAYLOAD', 'task', () => 1, {}],
        ['PAYLOAD_TOO_LARGE', 'task', 'x'.repeat(99), {}],
        // 51 characters of two bytes each: the limit counts bytes.
        ['PAYLOAD_TOO_LARGE', 'task', 'é'.repeat(51), {}],
      ] as const
      for (const [code, type, input, options] of refused) {
        const error = await rejection(hf.enqueue(type, input, options as object))
        expect([code, options, error]).toMatchObject([error.code, options, { category: 'caller', retryable: false }])
      }
      expect((await hf.stats()).total).toBe(0)
      expect((await hf.enqueue('task', 'x'.repeat(98))).deduplicated).toBe(false)
    })

    it('14 one wrong entry of a batch leaves all of it out', async () => {
      const hf = await harness().connect()
      const entries = [0, 1, 2].map((n) => ({ job: n === 1 ? '' : 'task', input: n }))
      const error = await rejection(hf.enqueueMany(entries))
      expect(error).toMatchObject({ code: 'INVALID_NAME', details: { index: 1 } })
      expect((await hf.stats()).total).toBe(0)
    })

    it('15 ids sort as text in the order in which they were made, also when the clock goes back', async () => {
      const hf = await harness().connect()
      const ids: string[] = []
      for (let round = 0; round < 4; round += 1) {
        const batch = await hf.enqueueMany(Array.from({ length: 100 }, (_, n) => ({ job: 'task', input: n })))
        ids.push(...batch.map(({ id }) => id))
        ids.push((await hf.enqueue('task', null)).id)
        await harness().advance(round % 2 === 0 ? -60_000 : 5)
      }
      expect([...ids].sort()).toEqual(ids)
      expect(new Set(ids).size).toBe(404)
    })
  })
}
