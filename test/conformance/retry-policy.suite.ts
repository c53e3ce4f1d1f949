/** Which retry policy counts, and for how long. Assertions 52–55. */
import { type AttemptRecord, defineJob, handle, type RetryOption, type RetryPolicy, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { SuiteContext } from './harness.ts'

const failing = (options: { readonly retry?: RetryOption } = {}) =>
  handle(defineJob<unknown>('task', options), () => {
    throw new Error('as always')
  })

export function retryPolicySuite({ harness, capabilities }: SuiteContext): void {
  describe('retry policy', () => {
    it('52 the policy of the job wins over its contract, that over its queue, that over its worker', async () => {
      const hf = await harness().connect()
      const own = { retry: retry.fixed(11, '1s') }
      const contract = { retry: retry.fixed(12, '2s') }
      const queues = { special: { retry: retry.fixed(13, '3s') } }
      const worker = { retry: retry.fixed(14, '4s') }
      const run = async (handler: ReturnType<typeof failing>, queue: string, options: object, more: object) => {
        const { id } = await hf.enqueue('task', null, { queue, ...options })
        await hf.runUntilEmpty({ handlers: [handler], lanes: [queue], ...more })
        const job = await hf.get(id)
        const [attempt] = await hf.attempts(id)
        return [job?.maxAttempts, (job?.runAt ?? 0) - (attempt?.finishedAt ?? 0)]
      }
      const all = { queues, ...worker }
      expect(await run(failing(contract), 'special', own, all)).toEqual([11, 1_000])
      expect(await run(failing(contract), 'special', {}, all)).toEqual([12, 2_000])
      expect(await run(failing(), 'special', {}, all)).toEqual([13, 3_000])
      expect(await run(failing(), 'plain', {}, all)).toEqual([14, 4_000])
      expect((await run(failing(), 'bare', {}, {}))[0]).toBe(7)
      // A budget of its own stays with the job whatever policy gives the delays.
      expect(await run(failing(contract), 'budget', { maxAttempts: 3 }, all)).toEqual([3, 2_000])
    })

    it('53 remaining retries follow the policy of the first failure', async () => {
      const hf = await harness().connect()
      const { id } = await hf.enqueue('task', null)
      await hf.runUntilEmpty({ handlers: [failing({ retry: retry.fixed(4, '10s') })] })
      const frozen = await hf.get(id)
      expect(frozen).toMatchObject({ maxAttempts: 4, retry: { kind: 'fixed', attempts: 4, baseMs: 10_000 } })
      let asked = 0
      const changed = failing({
        retry: () => {
          asked += 1
          return retry.none()
        },
      })
      for (const attempt of [2, 3]) {
        await harness().advance(10_001)
        await hf.runUntilEmpty({ handlers: [changed], retry: retry.immediate(99) })
        const job = await hf.get(id)
        expect(job).toMatchObject({ state: 'retry_wait', attempts: attempt, maxAttempts: 4, retry: frozen?.retry })
        expect((job?.runAt ?? 0) - ((await hf.attempts(id))[attempt - 1]?.finishedAt ?? 0)).toBe(10_000)
      }
      await harness().advance(10_001)
      await hf.runUntilEmpty({ handlers: [changed] })
      expect(await hf.get(id)).toMatchObject({ state: 'dlq', attempts: 4 })
      expect(asked).toBe(0)
    })

    if (capabilities.durableJobs) {
      it('53 the policy of the first failure outlives a restart', async () => {
        const first = await harness().connect()
        const { id } = await first.enqueue('task', null)
        await first.runUntilEmpty({ handlers: [failing({ retry: retry.fixed(4, '10s') })] })
        await harness().restart()
        const second = await harness().connect()
        await harness().advance(10_001)
        await second.runUntilEmpty({ handlers: [failing({ retry: retry.none() })] })
        expect(await second.get(id)).toMatchObject({ state: 'retry_wait', attempts: 2, retry: { kind: 'fixed' } })
      })
    }

    it('54 without retries there is one run; fixed(4, 5s) is four runs, five seconds apart', async () => {
      const hf = await harness().connect()
      const once = await hf.enqueue('task', null, { retry: retry.none() })
      const four = await hf.enqueue('task', null, { retry: retry.fixed(4, '5s') })
      await hf.runUntilEmpty({ handlers: [failing()] })
      for (let round = 0; round < 5; round += 1) {
        await harness().advance(4_000)
        expect(await hf.runUntilEmpty({ handlers: [failing()] })).toBe(0)
        await harness().advance(1_001)
        expect(await hf.runUntilEmpty({ handlers: [failing()] })).toBe(round < 3 ? 1 : 0)
      }
      expect(await hf.get(once.id)).toMatchObject({ state: 'dlq', attempts: 1 })
      expect(await hf.get(four.id)).toMatchObject({ state: 'dlq', attempts: 4, dlqCode: 'MAX_ATTEMPTS_EXCEEDED' })
      const starts = (await hf.attempts(four.id)).map(({ startedAt }) => startedAt)
      for (const [n, startedAt] of starts.slice(1).entries()) {
        expect(startedAt - (starts[n] ?? Number.NaN)).toBeGreaterThanOrEqual(5_000)
      }
    })

    it('55 a policy function that fails gives way to the default of the worker, and that is recorded', async () => {
      const hf = await harness().connect()
      const broken: readonly RetryOption[] = [
        () => {
          throw new Error('no policy today')
        },
        () => Promise.reject(new Error('no policy today')),
        () => 'nonsense' as unknown as RetryPolicy,
        () => ({ kind: 'fixed', attempts: -1, baseMs: 0, capMs: 0, jitter: 0 }),
        () => undefined as unknown as RetryPolicy,
      ]
      for (const policy of broken) {
        const { id } = await hf.enqueue('task', null)
        await hf.runUntilEmpty({ handlers: [failing({ retry: policy })], retry: retry.fixed(5, '7s') })
        const job = await hf.get(id)
        const [attempt] = (await hf.attempts(id)) as [AttemptRecord]
        expect(job).toMatchObject({ state: 'retry_wait', maxAttempts: 5, lastFailure: { message: 'as always' } })
        expect((job?.runAt ?? 0) - (attempt.finishedAt ?? 0)).toBe(7_000)
        expect(attempt.failure?.policyError).toBeTruthy()
        expect(job?.lastFailure?.policyError).toBe(attempt.failure?.policyError)
      }
    })

    it('55 a policy function that works is told of the failure and decides', async () => {
      const hf = await harness().connect()
      const told: unknown[] = []
      const handler = failing({
        retry: async (failure, { jobId, type, lane, attempt, metadata }) => {
          told.push({ code: failure.code, jobId, type, lane, attempt, metadata })
          return retry.fixed(9, '3s')
        },
      })
      const { id } = await hf.enqueue('task', null, { metadata: { tenant: 'a' } })
      await hf.runUntilEmpty({ handlers: [handler], retry: retry.none() })
      expect(told).toEqual([
        { code: 'HANDLER_ERROR', jobId: id, type: 'task', lane: 'default', attempt: 1, metadata: { tenant: 'a' } },
      ])
      const job = await hf.get(id)
      expect(job).toMatchObject({ state: 'retry_wait', maxAttempts: 9 })
      expect(job?.lastFailure?.policyError).toBeUndefined()
    })
  })
}
