/** `result()` in any process: what it gives, how it rejects, and what many who wait cost the store. */
import { defineJob, type HoldfastError, handle, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { Backend } from '#dist/src/backends/backend.js'
import type { SuiteContext } from '../conformance/harness.ts'
import { codeOf, eventually, gate, rejection, within } from '../support/event.ts'
import { over } from '../support/faulty-backend.ts'

const task = defineJob<unknown, unknown>('task', { retry: retry.none() })
const UNKNOWN = 'default/01JDY5ABCDEFGHJKMNPQRSTVWX'

export function resultSuite({ harness }: SuiteContext): void {
  describe('results', () => {
    it('WS-52 are given to a client that has the id alone, and to any number of those who wait', async () => {
      const hf = await harness().connect()
      const other = await harness().connect()
      const job = await hf.enqueue(task, 20)
      const waiting = [job.result(), hf.result(job.id), ...Array.from({ length: 5 }, () => other.result(job.id))]
      await harness().worker(hf, { handlers: [handle(task, (n) => ({ twice: Number(n) * 2 }))] })
      expect(await within(Promise.all(waiting), 'all who wait')).toEqual(Array(7).fill({ twice: 40 }))
      expect(await other.result(job.id)).toEqual({ twice: 40 })
    })

    it('WS-52 reject with the failure of a dead job, a cancellation, the state at the time-out, or that nothing is there', async () => {
      const hf = await harness().connect()
      const other = await harness().connect()
      const dead = await hf.enqueue(task, 'x')
      const late = await hf.enqueue(task, 'x', { delay: '1h' })
      const cancelled = await hf.enqueue(task, 'x', { delay: '1h' })
      const cancellation = rejection(other.result(cancelled.id))
      await hf.cancel(cancelled.id)
      const fails = handle(task, () => {
        throw Object.assign(new TypeError('no such user'), { code: 'E_USER' })
      })
      await harness().worker(hf, { handlers: [fails] })
      expect(await within(rejection(other.result(dead.id)), 'the job ends')).toMatchObject({
        code: 'JOB_DEAD',
        details: { jobId: dead.id, failure: { code: 'E_USER', name: 'TypeError', message: 'no such user' } },
      })
      expect(await within(cancellation, 'the cancellation is seen')).toMatchObject({ code: 'JOB_CANCELLED' })
      expect(await rejection(other.result(late.id, { timeout: 30 }))).toMatchObject({
        code: 'RESULT_TIMEOUT',
        retryable: true,
        details: { jobId: late.id, state: 'scheduled' },
      })
      expect(await codeOf(other.result(UNKNOWN))).toBe('JOB_NOT_FOUND')
      expect(await codeOf(other.result('nonsense'))).toBe('JOB_NOT_FOUND')
      expect(await codeOf(other.result(late.id, { timeout: 'soon' } as never))).toBe('INVALID_DURATION')
    })

    it('WS-52 are kept as long as asked: for a time, not at all, or as long as the job', async () => {
      const hf = await harness().connect({ keepCompleted: '1d' })
      const worker = await harness().worker(hf, { handlers: [handle(task, (input) => input)] })
      const [none, short, long, nothing] = await hf.enqueueMany([
        { job: task, input: 'a', options: { keepResult: 0 } },
        { job: task, input: 'b', options: { keepResult: '1m' } },
        { job: task, input: 'c' },
        { job: task, input: undefined },
      ])
      if (!none || !short || !long || !nothing) throw new Error('four jobs')
      expect(await codeOf(within(none.result(), 'the job ends'))).toBe('RESULT_NOT_KEPT')
      expect(await short.result()).toBe('b')
      expect(await long.result()).toBe('c')
      expect(await nothing.result()).toBeUndefined()
      expect(await hf.get(nothing.id)).toMatchObject({ state: 'completed', hasOutput: true, output: undefined })
      expect(await hf.get(none.id)).toMatchObject({ state: 'completed', hasOutput: false })
      await worker.stop()
      await harness().advance(120_000)
      await hf.maintain()
      expect(await codeOf(short.result())).toBe('RESULT_NOT_KEPT')
      expect(await hf.get(short.id)).toMatchObject({ state: 'completed', hasOutput: false })
      expect(await long.result()).toBe('c')
    })

    it('WS-52 that are too large, or no value at all, are a failure of the handler', async () => {
      const hf = await harness().connect({ payloadBytesMax: 1_000 })
      const outputs = new Map<unknown, unknown>([
        ['large', '€'.repeat(400)],
        ['fits', 'x'.repeat(998)],
        ['function', () => 1],
      ])
      const worker = await harness().worker(hf, { handlers: [handle(task, (input) => outputs.get(input))] })
      const [large, fits, odd] = await hf.enqueueMany([...outputs.keys()].map((input) => ({ job: task, input })))
      for (const job of [large, odd]) {
        const error = (await within(rejection(job?.result() ?? Promise.resolve()), 'the job ends')) as HoldfastError
        expect(error).toMatchObject({ code: 'JOB_DEAD', details: { dlqCode: 'BAD_OUTPUT' } })
      }
      expect(await fits?.result()).toBe('x'.repeat(998))
      await worker.stop()
    })

    it('WS-52 a thousand who wait cost a bounded number of calls', async () => {
      const counts = { states: 0, jobs: 0, ids: 0 }
      const counted = (backend: Backend): Backend =>
        over(backend, {
          call: (type, request) => {
            if (type === 'job.states') counts.states += 1
            if (type === 'job.get') counts.jobs += 1
            if (type === 'job.get' && 'ids' in request) counts.ids += request.ids.length
            return backend.call(type, request)
          },
        })
      const hf = await harness().connect()
      const other = await harness().connect({ wrap: counted })
      const jobs = await hf.enqueueMany(Array.from({ length: 1_000 }, (_, n) => ({ job: task, input: n })))
      const startedAt = performance.now()
      const results = Promise.all(jobs.map((job) => other.result(job.id)))
      const mayRun = gate()
      await eventually(() => counts.states >= 3, 'looks at what does not end')
      expect(counts.jobs).toBe(0)
      await harness().worker(hf, {
        concurrency: 50,
        handlers: [handle(task, (n) => mayRun.passed.then(() => n))],
      })
      mayRun.open()
      expect(await within(results, 'all results')).toEqual(jobs.map((_, n) => n))
      const elapsedMs = performance.now() - startedAt
      // Each job is read once, and no more than one look begins in 20 ms however many wait.
      expect(counts.ids).toBe(1_000)
      expect(counts.states).toBeLessThanOrEqual(1 + elapsedMs / 20)
    })

    it('WS-52 are hinted at by the store when a job ends in another client, and only then looked at', async () => {
      const hints = { count: 0, lanes: [] as string[] }
      const heard = (backend: Backend): Backend =>
        over(backend, {
          awaitEnds: (lane, listener) => {
            hints.lanes.push(lane)
            return backend.awaitEnds(lane, () => {
              hints.count += 1
              listener()
            })
          },
        })
      const hf = await harness().connect()
      const other = await harness().connect({ wrap: heard })
      await harness().worker(hf, { handlers: [handle(task, (n) => n)] })
      const never = rejection(other.result((await hf.enqueue(task, 'x', { delay: '1h' })).id, { timeout: '30s' }))
      // The first ones may end before the word that somebody waits has come round.
      await eventually(async () => {
        await (await hf.enqueue(task, 1)).result()
        return hints.count > 0
      }, 'a hint')
      expect(new Set(hints.lanes)).toEqual(new Set(['default']))
      await other.close()
      expect(await never).toMatchObject({ code: 'CLOSED' })
    })
  })
}
