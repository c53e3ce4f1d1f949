/** What a worker does when a lease is lost under it, and how it keeps those it has. Assertions 27, 28, 35. */
import { defineJob, type HoldfastError, handle } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { eventsOf, eventually, gate, nextEvent } from '../support/event.ts'
import { stored } from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<string, string>('task')

export function leaseLossSuite({ harness }: SuiteContext): void {
  describe('lease loss', () => {
    it('27 a lease lost at renewal fires the signal, and the outcome is not stored', async () => {
      const hf = await harness().connect()
      const other = await harness().connect()
      const job = await hf.enqueue(task, 'x')
      const started = gate()
      let reason: HoldfastError | null = null
      let calls = 0
      const handler = handle(task, async (_input, ctx) => {
        calls += 1
        if (calls > 1) return 'of the second run'
        started.open()
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
        reason = ctx.signal.reason
        return 'of the first run'
      })
      const worker = await harness().worker(hf, { handlers: [handler], lease: 300 })
      const completed = nextEvent(worker, 'completed')
      const lost = nextEvent(worker, 'lost')
      await started.passed
      // Its owner renews all the time, so expiry and reaping must fall between two renewals.
      await eventually(async () => {
        await harness().advance(10_000)
        return (await other.maintain()).reaped === 1
      }, 'the lease is reaped')
      expect(await lost).toMatchObject({ jobId: job.id, attempt: 1 })
      expect(reason).toMatchObject({ code: 'LEASE_LOST' })
      expect(await completed).toMatchObject({ jobId: job.id, attempt: 2 })
      expect(await job.result()).toBe('of the second run')
      expect((await hf.attempts(job.id)).map(({ outcome }) => outcome)).toEqual(['crashed', 'succeeded'])
    })

    it('27 a lease that a write finds lost is lost for the whole attempt: signal, writes, outcome', async () => {
      const hf = await harness().connect()
      const other = await harness().connect()
      const started = gate()
      const mayWrite = gate()
      const heard: string[] = []
      const codeOf = (work: Promise<unknown>): Promise<string> =>
        work.then(
          () => 'done',
          ({ code }: HoldfastError) => code,
        )
      const handler = handle(task, async (_input, ctx) => {
        started.open()
        await mayWrite.passed
        heard.push(await codeOf(ctx.progress(1)), (ctx.signal.reason as HoldfastError).code)
        heard.push(await codeOf(ctx.enqueue(task, 'never')), await codeOf(ctx.progress(2)))
        return 'too late'
      })
      const job = await hf.enqueue(task, 'x')
      const worker = await harness().worker(hf, { handlers: [handler], killGrace: '1h' })
      const lost = nextEvent(worker, 'lost')
      await started.passed
      expect(await other.cancel(job.id, { force: true })).toBe('cancelled')
      mayWrite.open()
      expect(await lost).toMatchObject({ jobId: job.id })
      expect(heard).toEqual(Array(4).fill('LEASE_LOST'))
      expect((await hf.stats()).total).toBe(1)
    })

    it('27 F46 a handler that ignores its signal after the loss costs its slot for the grace, and stores nothing', async () => {
      const hf = await harness().connect()
      const other = await harness().connect()
      const started = gate()
      const mayEnd = gate()
      const late: string[] = []
      const ended = gate()
      const handler = handle(task, async (input, ctx) => {
        if (input !== 'deaf') return input
        started.open()
        await mayEnd.passed
        // F47: from a timer, after its end, and twice.
        for (const value of [1, 2]) {
          await new Promise((resolve) => setTimeout(resolve, 1))
          await ctx.progress(value).catch(({ code }: HoldfastError) => late.push(code))
        }
        ended.open()
        return 'too late'
      })
      const deaf = await hf.enqueue(task, 'deaf')
      const worker = await harness().worker(hf, { handlers: [handler], concurrency: 1, lease: 300 })
      const lost = nextEvent(worker, 'lost')
      await started.passed
      expect(await other.cancel(deaf.id, { force: true })).toBe('cancelled')
      await lost
      const next = await hf.enqueue(task, 'next')
      expect(await next.result()).toBe('next')
      const before = await hf.get(deaf.id)
      mayEnd.open()
      await ended.passed
      expect(late).toEqual(['LEASE_LOST', 'LEASE_LOST'])
      expect(before?.state).toBe('cancelled')
      expect(await hf.get(deaf.id)).toEqual(before)
    })

    it('28 a lease lost at the end costs that outcome only; the worker goes on', async () => {
      const hf = await harness().connect()
      const other = await harness().connect()
      const raw = await harness().raw()
      const started = gate()
      const mayEnd = gate()
      const handler = handle(task, async (input) => {
        if (input !== 'first') return input
        started.open()
        await mayEnd.passed
        return 'too late'
      })
      const first = await hf.enqueue(task, 'first')
      const worker = await harness().worker(hf, { handlers: [handler], concurrency: 1 })
      const completed = eventsOf(worker, 'completed')
      const lost = nextEvent(worker, 'lost')
      await started.passed
      expect(await other.cancel(first.id, { force: true })).toBe('cancelled')
      mayEnd.open()
      expect(await lost).toMatchObject({ jobId: first.id })
      const done = nextEvent(worker, 'completed')
      const next = await hf.enqueue(task, 'second')
      expect(await next.result()).toBe('second')
      // Whoever reads the store may know of it before the worker has its answer.
      await done
      expect(completed.map(({ jobId }) => jobId)).toEqual([next.id])
      expect(await stored(raw, first.id)).toMatchObject({ state: 'cancelled', output: null })
      expect((await hf.health()).ok).toBe(true)
    })

    it('35 a main loop that stood still is told of, and the lease that was not taken meanwhile is kept', async () => {
      const hf = await harness().connect()
      const handler = handle(task, async () => {
        const until = performance.now() + 1_600
        while (performance.now() < until);
        return 'done'
      })
      const worker = await harness().worker(hf, { handlers: [handler], lease: 900 })
      const blocked = nextEvent(worker, 'blocked')
      const job = await hf.enqueue(task, null)
      expect((await blocked).blockedMs).toBeGreaterThan(1_000)
      expect(await job.result()).toBe('done')
    })

    it('35 slow handlers beside fast ones keep their leases', async () => {
      const leaseMs = 1_000
      const hf = await harness().connect()
      const other = await harness().connect()
      const handler = handle(task, async (input, ctx) => {
        if (input !== 'slow') return input
        const expiries = new Set<number>()
        const startedAt = performance.now()
        await eventually(async () => {
          const job = await other.get(ctx.jobId)
          expiries.add(job?.leaseExpiresAt ?? 0)
          expect((await other.maintain()).reaped).toBe(0)
          return performance.now() - startedAt > 2.5 * leaseMs
        }, 'two leases and a half have passed')
        return `renewed ${expiries.size > 3}`
      })
      const slow = await hf.enqueueMany(Array.from({ length: 3 }, () => ({ job: task, input: 'slow' })))
      const worker = await harness().worker(hf, { handlers: [handler], concurrency: 5, lease: leaseMs })
      const lost = eventsOf(worker, 'lost')
      const fast = await hf.enqueueMany(Array.from({ length: 40 }, () => ({ job: task, input: 'fast' })))
      expect(await Promise.all(fast.map((job) => job.result()))).toEqual(Array(40).fill('fast'))
      expect(await Promise.all(slow.map((job) => job.result()))).toEqual(Array(3).fill('renewed true'))
      expect(lost).toEqual([])
      for (const { id } of slow) expect(await hf.attempts(id)).toHaveLength(1)
    })
  })
}
