/** When a failed job runs again. Assertions 38–42. */
import fc from 'fast-check'
import { defineJob, handle, RetryAfter, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { retryDelayMs } from '#dist/src/backends/rules.js'
import { systemRandom } from '#dist/src/random.js'
import { claim, claimOne, complete, put, renew, retryIn, settle, stored } from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')
const failing = handle(task, () => {
  throw new Error('as always')
})

export function retrySuite({ harness }: SuiteContext): void {
  describe('retry', () => {
    it('38 delays are 1, 2, 4, 8, 16, 16', async () => {
      const policy = retry.exponential({ attempts: 8, base: '1s', cap: '16s', jitter: 0 })
      const wanted = [1, 2, 4, 8, 16, 16].map((seconds) => seconds * 1_000)
      expect(wanted.map((_, n) => retryDelayMs(policy, n + 1, systemRandom))).toEqual(wanted)
      const hf = await harness().connect()
      const { id } = await hf.enqueue(task, null, { retry: policy })
      for (const [n, delayMs] of wanted.entries()) {
        expect(await hf.runUntilEmpty({ handlers: [failing] })).toBe(1)
        const job = await hf.get(id)
        const attempts = await hf.attempts(id)
        expect(attempts).toHaveLength(n + 1)
        expect((job?.runAt ?? 0) - (attempts[n]?.finishedAt ?? 0)).toBe(delayMs)
        await harness().advance(delayMs)
      }
    })

    it('39 jitter keeps every delay within its share and under the cap', async () => {
      fc.assert(
        fc.property(
          fc.integer({ min: 1, max: 60_000 }),
          fc.integer({ min: 1, max: 120_000 }),
          fc.double({ min: 0, max: 1, noNaN: true }),
          fc.integer({ min: 1, max: 2_000 }),
          fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
          (base, cap, jitter, failures, next) => {
            const policy = retry.exponential({ base, cap, jitter })
            const exact = Math.min(cap, base * 2 ** Math.min(failures - 1, 1_023))
            const delay = retryDelayMs(policy, failures, { next: () => next, bytes: (n) => new Uint8Array(n) })
            expect(delay).toBeGreaterThanOrEqual(Math.max(0, Math.floor(exact * (1 - jitter))))
            expect(delay).toBeLessThanOrEqual(Math.min(cap, Math.ceil(exact * (1 + jitter))))
          },
        ),
      )
      const hf = await harness().connect()
      const wide = { retry: retry.exponential({ base: '100s', cap: '1h', jitter: 0.2 }) }
      const capped = { retry: retry.exponential({ base: '100s', cap: '100s', jitter: 0.2 }) }
      const jobs = await hf.enqueueMany(
        Array.from({ length: 40 }, (_, n) => ({ job: task, input: n, options: n < 20 ? wide : capped })),
      )
      await hf.runUntilEmpty({ handlers: [failing] })
      const delays = await Promise.all(
        jobs.map(async ({ id }) => ((await hf.get(id))?.runAt ?? 0) - ((await hf.attempts(id))[0]?.finishedAt ?? 0)),
      )
      for (const [n, delay] of delays.entries()) {
        expect(delay).toBeGreaterThanOrEqual(80_000)
        expect(delay).toBeLessThanOrEqual(n < 20 ? 120_000 : 100_000)
      }
      expect(new Set(delays.slice(0, 20)).size).toBeGreaterThan(5)
    })

    it('40 a job that always fails runs maxAttempts times and is dead', async () => {
      const hf = await harness().connect()
      const { id } = await hf.enqueue(task, null, { maxAttempts: 3, retry: retry.immediate(99) })
      let calls = 0
      const handlers = [
        handle(task, () => {
          calls += 1
          throw new Error(`failure ${calls}`)
        }),
      ]
      expect(await hf.runUntilEmpty({ handlers })).toBe(3)
      await harness().advance(86_400_000)
      expect(await hf.runUntilEmpty({ handlers })).toBe(0)
      expect(calls).toBe(3)
      expect(await hf.get(id)).toMatchObject({
        state: 'dlq',
        attempts: 3,
        maxAttempts: 3,
        dlqCode: 'MAX_ATTEMPTS_EXCEEDED',
        lastFailure: { message: 'failure 3' },
      })
      expect((await hf.attempts(id)).map(({ attempt, failure }) => [attempt, failure?.message])).toEqual([
        [1, 'failure 1'],
        [2, 'failure 2'],
        [3, 'failure 3'],
      ])
    })

    it('40 the default budget is seven runs', async () => {
      const hf = await harness().connect()
      const { id } = await hf.enqueue(task, null)
      let runs = 0
      for (let round = 0; round < 10; round += 1) {
        runs += await hf.runUntilEmpty({ handlers: [failing] })
        await harness().advance(900_001)
      }
      expect(runs).toBe(7)
      expect(await hf.get(id)).toMatchObject({ state: 'dlq', attempts: 7, maxAttempts: 7 })
    })

    it('41 a failure with budget left waits at least its delay, without a lease', async () => {
      const raw = await harness().raw()
      const { id } = await put(raw)
      const lease = await claimOne(raw)
      const before = Math.floor(harness().now())
      expect(await settle(raw, retryIn(lease, 90_000))).toBe('applied')
      const job = await stored(raw, id)
      expect(job).toMatchObject({ state: 'retry_wait', attempts: 1, leaseExpiresAt: null, finishedAt: null })
      expect(job.runAt).toBeGreaterThanOrEqual(before + 90_000)
      expect(job.retry?.kind).toBe('exponential')
      expect(await renew(raw, lease)).toBe('leaseLost')
      expect(await settle(raw, complete(lease))).toBe('leaseLost')
      // The same settlement sent again after a lost reply does not push the time out.
      expect(await settle(raw, retryIn(lease, 90_000))).toBe('alreadyApplied')
      expect((await stored(raw, id)).runAt).toBe(job.runAt)
    })

    it('41 a delay that the handler asks for counts instead of the policy', async () => {
      const hf = await harness().connect()
      const { id } = await hf.enqueue(task, null, { retry: retry.fixed(5, '1s') })
      await hf.runUntilEmpty({
        handlers: [
          handle(task, () => {
            throw new RetryAfter('10m')
          }),
        ],
      })
      const job = await hf.get(id)
      expect((job?.runAt ?? 0) - ((await hf.attempts(id))[0]?.finishedAt ?? 0)).toBe(600_000)
      expect(job?.retry).toMatchObject({ kind: 'fixed', baseMs: 1_000 })
    })

    it('42 a job that waits for its retry is given out when it is due, and not before', async () => {
      const raw = await harness().raw()
      const { id } = await put(raw)
      await settle(raw, retryIn(await claimOne(raw), 3_600_000))
      expect(await claim(raw)).toEqual([])
      await harness().advance(3_540_000)
      expect(await claim(raw)).toEqual([])
      await harness().advance(60_001)
      expect(await claimOne(raw, { workerId: 'next' })).toMatchObject({ id, attempt: 2 })
    })

    it('42 a due retry takes its place by its due time, however often it came back', async () => {
      const raw = await harness().raw()
      const [slow, fast] = [await put(raw), await put(raw)]
      const leases = await claim(raw, { limit: 2 })
      for (const lease of leases) await settle(raw, retryIn(lease, lease.id === slow.id ? 7_200_000 : 3_600_000))
      await harness().advance(3_600_001)
      const again = await claimOne(raw)
      expect(again.id).toBe(fast.id)
      await settle(raw, retryIn(again, 1_800_000))
      await harness().advance(1_800_001)
      expect((await claimOne(raw)).id).toBe(fast.id)
      await harness().advance(1_800_001)
      expect((await claimOne(raw)).id).toBe(slow.id)
    })
  })
}
