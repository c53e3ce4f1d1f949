/** Time-outs of attempts and deadlines of jobs. Assertions 48–51. */
import { defineJob, type HoldfastError, handle, inThread, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { codeOf, nextEvent } from '../support/event.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')
const THREAD_MODULE = new URL('../support/handlers/conformance.mjs', import.meta.url)
const HOUR = 3_600_000

export function limitSuite({ harness }: SuiteContext): void {
  describe('limit', () => {
    it('48 a handler that outlives its timeout is aborted with TIMEOUT and tried again', async () => {
      const hf = await harness().connect()
      const job = await hf.enqueue(task, null, { timeout: 60, retry: retry.immediate(3) })
      const reasons: HoldfastError[] = []
      const handler = handle(task, async (_input, ctx) => {
        if (ctx.attempt > 1) return 'in time'
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
        reasons.push(ctx.signal.reason)
        return 'after the time'
      })
      await harness().worker(hf, { handlers: [handler] })
      expect(await job.result()).toBe('in time')
      expect(reasons.map(({ code }) => code)).toEqual(['TIMEOUT'])
      const [first, second] = await hf.attempts(job.id)
      expect(first).toMatchObject({ outcome: 'failed', failure: { code: 'TIMEOUT' } })
      expect(first?.durationMs).toBeGreaterThanOrEqual(55)
      expect(second?.outcome).toBe('succeeded')
    })

    it('48 F46 a handler that ignores its signal gives its slot up after the grace', async () => {
      const hf = await harness().connect()
      const deaf = await hf.enqueue(task, 'deaf', { timeout: 40, retry: retry.none() })
      const handler = handle(task, (input) => (input === 'deaf' ? new Promise(() => {}) : 'next'))
      const worker = await harness().worker(hf, { handlers: [handler], concurrency: 1 })
      const dead = nextEvent(worker, 'dead')
      const next = await hf.enqueue(task, 'polite')
      expect(await dead).toMatchObject({ jobId: deaf.id, failure: { code: 'TIMEOUT' } })
      expect(await next.result()).toBe('next')
      expect(await hf.get(deaf.id)).toMatchObject({ state: 'dlq', dlqCode: 'MAX_ATTEMPTS_EXCEEDED' })
    })

    it('48 F7 a handler in a thread that never yields is terminated and tried again', async () => {
      const hf = await harness().connect()
      const options = { timeout: 300, retry: retry.immediate(20) }
      const job = await hf.enqueue('thread', { act: 'loopUntil', attempt: 2 }, options)
      await harness().worker(hf, { handlers: [inThread(defineJob<unknown>('thread'), THREAD_MODULE)], concurrency: 1 })
      // On a busy machine the time of a later attempt may be over before its thread has come up.
      expect(await job.result()).toMatch(/^attempt /)
      const attempts = await hf.attempts(job.id)
      const [last, ...stopped] = attempts.toReversed()
      expect(last?.outcome).toBe('succeeded')
      expect(stopped.length).toBeGreaterThanOrEqual(1)
      for (const { outcome, failure } of stopped) expect([outcome, failure?.code]).toEqual(['failed', 'TIMEOUT'])
    })

    it('49 a timeout of 0 fails at once with TIMEOUT; a negative one is refused', async () => {
      const hf = await harness().connect()
      let calls = 0
      const { id } = await hf.enqueue(task, null, { timeout: 0, retry: retry.fixed(3, '1h') })
      await hf.runUntilEmpty({ handlers: [handle(task, () => ++calls)] })
      expect(calls).toBe(0)
      expect(await hf.get(id)).toMatchObject({ state: 'retry_wait', attempts: 1, lastFailure: { code: 'TIMEOUT' } })
      expect(await codeOf(hf.enqueue(task, null, { timeout: -1 }))).toBe('INVALID_DURATION')
      expect(await codeOf(() => defineJob('task', { timeout: -1 }))).toBe('INVALID_DURATION')
      expect((await hf.stats()).total).toBe(1)
    })

    it('50 a job whose deadline passes before it starts is dead, and no handler is called', async () => {
      const hf = await harness().connect()
      const now = harness().now()
      const queued = await hf.enqueue(task, null, { deadline: now + HOUR })
      const scheduled = await hf.enqueue(task, null, { deadline: now + HOUR, delay: '2h' })
      const past = await hf.enqueue(task, null, { deadline: now - HOUR })
      const later = await hf.enqueue(task, 'later', { deadline: now + 3 * HOUR })
      await harness().advance(2 * HOUR)
      const calls: unknown[] = []
      const handler = handle(task, (input) => {
        calls.push(input)
      })
      await hf.runUntilEmpty({ handlers: [handler] })
      expect(calls).toEqual(['later'])
      for (const { id } of [queued, scheduled, past]) {
        expect(await hf.get(id)).toMatchObject({
          state: 'dlq',
          dlqCode: 'DEADLINE_EXCEEDED',
          attempts: 0,
          lastFailure: { code: 'DEADLINE_EXCEEDED' },
        })
        expect(await hf.attempts(id)).toEqual([])
      }
      expect((await hf.get(later.id))?.state).toBe('completed')
    })

    it('50 maintenance finds a passed deadline without any worker', async () => {
      const hf = await harness().connect()
      const { id } = await hf.enqueue(task, null, { deadline: harness().now() + HOUR, queue: 'nobody-works-here' })
      expect((await hf.maintain()).deadlined).toBe(0)
      await harness().advance(HOUR + 1)
      expect((await hf.maintain()).deadlined).toBe(1)
      expect(await hf.get(id)).toMatchObject({ state: 'dlq', dlqCode: 'DEADLINE_EXCEEDED' })
    })

    it('50 a deadline that passes during the run fires the signal and is the end of the job', async () => {
      const hf = await harness().connect()
      const handler = handle(task, async (_input, ctx) => {
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
        return 'too late'
      })
      const worker = await harness().worker(hf, { handlers: [handler] })
      const dead = nextEvent(worker, 'dead')
      const { id } = await hf.enqueue(task, null, { deadline: harness().now() + 400 })
      expect(await dead).toMatchObject({ jobId: id, dlqCode: 'DEADLINE_EXCEEDED' })
      expect(await hf.get(id)).toMatchObject({ state: 'dlq', dlqCode: 'DEADLINE_EXCEEDED', attempts: 1 })
    })

    it('51 a deadline that passes while the job waits for its retry is the end of it', async () => {
      const hf = await harness().connect()
      const deadline = harness().now() + HOUR
      const beforeDue = await hf.enqueue(task, null, { deadline, retry: retry.fixed(5, '2h') })
      const afterDue = await hf.enqueue(task, null, { deadline, retry: retry.fixed(5, '30m') })
      let calls = 0
      const handlers = [
        handle(task, () => {
          calls += 1
          throw new Error('not today')
        }),
      ]
      await hf.runUntilEmpty({ handlers })
      for (const { id } of [beforeDue, afterDue]) expect((await hf.get(id))?.state).toBe('retry_wait')
      await harness().advance(HOUR + 1)
      await hf.runUntilEmpty({ handlers })
      expect(calls).toBe(2)
      for (const { id } of [beforeDue, afterDue]) {
        expect(await hf.get(id)).toMatchObject({ state: 'dlq', dlqCode: 'DEADLINE_EXCEEDED', attempts: 1 })
        expect(await hf.attempts(id)).toHaveLength(1)
      }
    })
  })
}
