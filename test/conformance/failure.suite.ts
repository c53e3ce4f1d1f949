/** What becomes of a failed attempt: codes, classes, crashes, decisions. Assertions 11, 12, 43–47, 56, 57. */
import fc from 'fast-check'
import { defineJob, type Handler, type Holdfast, handle, inThread, PermanentError, RetryAfter, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { decideFailure } from '#dist/src/backends/rules.js'
import { FAILURE_CLASSES, failureClass } from '#dist/src/job.js'
import { put } from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')
const THREAD_MODULE = new URL('../support/handlers/conformance.mjs', import.meta.url)

export function failureSuite({ harness }: SuiteContext): void {
  /** Runs one job whose handler throws `thrown`, once. */
  const runOnce = async (hf: Holdfast, thrown: unknown) => {
    const { id } = await hf.enqueue(task, null, { retry: retry.fixed(7, '1h') })
    const handler = handle(task, () => {
      throw thrown
    })
    await hf.runUntilEmpty({ handlers: [handler] })
    return { job: await hf.get(id), attempts: await hf.attempts(id) }
  }

  describe('failure', () => {
    it('11 an input that its schema refuses is dead after one attempt, and no handler sees it', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const strict = defineJob('strict', { input: z.object({ n: z.number() }) })
      const throwing = defineJob('throwing', {
        input: { '~standard': { version: 1, vendor: 'test', validate: () => Promise.reject(new Error('no schema')) } },
      })
      const wrong = await hf.enqueue('strict', { n: 'one' })
      const refused = await hf.enqueue('throwing', 1)
      const damaged = await put(raw, { type: 'strict', payload: '{"n":' })
      const right = await hf.enqueue('strict', { n: 1 })
      const seen: unknown[] = []
      const handlers = [handle(strict, ({ n }) => seen.push(n)), handle(throwing, () => seen.push('throwing'))]
      expect(await hf.runUntilEmpty({ handlers: handlers as Handler[] })).toBe(4)
      expect(seen).toEqual([1])
      for (const id of [wrong.id, refused.id, damaged.id]) {
        const { code, message } = (await hf.explain(id))?.lastError ?? { code: '', message: '' }
        expect([id, code]).toEqual([id, 'BAD_PAYLOAD'])
        expect(message).not.toBe('')
        expect(await hf.attempts(id)).toMatchObject([
          { attempt: 1, outcome: 'failed', failure: { code: 'BAD_PAYLOAD' } },
        ])
        expect((await hf.explain(id))?.state).toBe('dlq')
        expect((await hf.explain(id))?.dlqCode).toBe('BAD_PAYLOAD')
      }
      expect((await hf.get(right.id))?.state).toBe('completed')
    })

    it('12 C015 a type without a handler is dead at once, and the worker goes on', async () => {
      const hf = await harness().connect()
      const types = ['nobody', '__proto__', 'constructor', 'toString', 'Task']
      const strays = await Promise.all(types.map((type) => hf.enqueue(type, 1)))
      const known = await hf.enqueue(task, 1)
      await hf.runUntilEmpty({ handlers: [handle(task, () => 'done')] })
      expect(await known.result()).toBe('done')
      for (const { id } of strays) {
        expect(await hf.get(id)).toMatchObject({ state: 'dlq', dlqCode: 'UNKNOWN_JOB_TYPE', attempts: 1 })
      }
    })

    it('43 a permanent failure is dead after one attempt, however it is said', async () => {
      const hf = await harness().connect()
      const permanents: readonly (readonly [unknown, string])[] = [
        [new PermanentError('no use'), 'PERMANENT_ERROR'],
        [new PermanentError('no card', { code: 'PERMANENT' }), 'PERMANENT'],
        [new Error('PERMANENT: no use'), 'PERMANENT'],
        [new Error('PERMANENT_ERROR: no use'), 'PERMANENT_ERROR'],
        ['PERMANENT: said as text', 'PERMANENT'],
        [Object.assign(new Error('no use'), { permanent: true }), 'PERMANENT_ERROR'],
        [Object.assign(new Error('no use'), { code: 'BAD_PAYLOAD' }), 'BAD_PAYLOAD'],
      ]
      for (const [thrown, code] of permanents) {
        const { job, attempts } = await runOnce(hf, thrown)
        expect(job).toMatchObject({ state: 'dlq', attempts: 1, dlqCode: code })
        expect(attempts).toMatchObject([{ outcome: 'failed', failure: { code } }])
      }
    })

    it('43 a permanent error with a code of its own is dead after one attempt', async () => {
      const hf = await harness().connect()
      const { job } = await runOnce(hf, new PermanentError('declined', { code: 'CARD_DECLINED' }))
      expect(job).toMatchObject({ state: 'dlq', attempts: 1, lastFailure: { code: 'CARD_DECLINED' } })
    })

    it('44 the letter case of a code does not matter', async () => {
      const hf = await harness().connect()
      const mixed = (text: string) => [...text].map((c, n) => (n % 2 === 0 ? c.toLowerCase() : c)).join('')
      for (const [code, kind] of Object.entries(FAILURE_CLASSES)) {
        for (const spelt of [code, code.toLowerCase(), mixed(code)])
          expect([spelt, failureClass(spelt)]).toEqual([spelt, kind])
      }
      for (const thrown of [
        new Error('permanent: no use'),
        new Error('Permanent_Error: no use'),
        Object.assign(new Error('no use'), { code: 'permanent_error' }),
      ]) {
        expect((await runOnce(hf, thrown)).job?.state).toBe('dlq')
      }
      const limited = await runOnce(hf, new Error('rate_Limit: slow down'))
      expect(limited.job).toMatchObject({ state: 'retry_wait', lastFailure: { code: 'RATE_LIMIT' } })
    })

    it('45 a code that nobody knows is tried again', async () => {
      const hf = await harness().connect()
      for (const [thrown, code] of [
        [Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }), 'ECONNRESET'],
        [new Error('E_NOVEL: something new'), 'E_NOVEL'],
        [new Error('warning: this is prose, not a code'), 'HANDLER_ERROR'],
        [Object.assign(new Error('odd'), { code: 42 }), 'HANDLER_ERROR'],
        [Object.assign(new Error('odd'), { code: '__proto__' }), 'HANDLER_ERROR'],
      ] as const) {
        expect((await runOnce(hf, thrown)).job).toMatchObject({ state: 'retry_wait', lastFailure: { code } })
      }
    })

    it('46 failures of the system are told apart and tried again', async () => {
      const hf = await harness().connect()
      for (const code of [
        'DEPENDENCY_DOWN',
        'RATE_LIMIT',
        'DB_DEADLOCK',
        'SERIALIZATION',
        'DB_DISCONNECT',
        'SYSTEM_FAILURE',
      ]) {
        expect(failureClass(code)).toBe('system')
        const { job } = await runOnce(hf, new Error(`${code}: come back later`))
        expect(job).toMatchObject({ state: 'retry_wait', attempts: 1, lastFailure: { code } })
      }
    })

    it('47 whatever a handler throws is recorded, and the process lives', async () => {
      const hostile = {
        get message(): string {
          throw new Error('do not read me')
        },
        get code(): string {
          throw new Error('nor me')
        },
        toString: () => {
          throw new Error('nor this')
        },
      }
      const thrown: readonly unknown[] = [
        undefined,
        null,
        '',
        'text',
        0,
        Number.NaN,
        7n,
        Symbol('odd'),
        () => 1,
        {},
        Object.create(null),
        hostile,
        new Proxy(
          {},
          {
            get: () => {
              throw new Error('trap')
            },
          },
        ),
        Object.freeze(new Error('frozen')),
        new Error('\ud800 a lone surrogate'),
        new Error('x'.repeat(1_000_000)),
        new AggregateError([new Error('a')], 'several'),
      ]
      const hf = await harness().connect()
      const jobs = await hf.enqueueMany(
        thrown.flatMap((_, n) => [
          { job: task, input: { n, how: 'throws' }, options: { retry: retry.fixed(7, '1h') } },
          { job: task, input: { n, how: 'rejects' }, options: { retry: retry.fixed(7, '1h') } },
        ]),
      )
      const handler = handle(defineJob<{ n: number; how: string }>('task'), ({ n, how }) => {
        if (how === 'rejects') return Promise.reject(thrown[n])
        throw thrown[n]
      })
      expect(await hf.runUntilEmpty({ handlers: [handler] })).toBe(jobs.length)
      for (const { id } of jobs) {
        const [attempt] = await hf.attempts(id)
        expect((await hf.get(id))?.state).toBe('retry_wait')
        expect(attempt?.outcome).toBe('failed')
        expect(attempt?.failure?.code).toMatch(/^[A-Z][A-Z0-9_]+$/)
        expect(attempt?.failure?.message.length).toBeGreaterThan(0)
        expect(attempt?.failure?.message.length).toBeLessThanOrEqual(2_000)
      }
    })

    it('47 F5 a handler that ends its thread fails with PANIC, three in a row are dead, and all else lives', async () => {
      const hf = await harness().connect()
      const job = await hf.enqueue('thread', { act: 'exit' }, { retry: retry.immediate(50) })
      const neighbour = await hf.enqueue('thread', { act: 'echo', value: 'alive' })
      const handlers = [inThread(defineJob<unknown>('thread'), THREAD_MODULE)]
      const worker = await harness().worker(hf, { handlers, concurrency: 2 })
      const error = await job.result().catch((thrown) => thrown)
      expect(error).toMatchObject({ code: 'JOB_DEAD', details: { dlqCode: 'PANIC' } })
      expect(await neighbour.result()).toBe('alive')
      expect((await hf.attempts(job.id)).map(({ outcome, failure }) => [outcome, failure?.code])).toEqual([
        ['crashed', 'PANIC'],
        ['crashed', 'PANIC'],
        ['crashed', 'PANIC'],
      ])
      expect(await (await hf.enqueue('thread', { act: 'echo', value: 'still' })).result()).toBe('still')
      expect(worker.activeJobs).toBe(0)
    })

    it('47 a handler that ends its process fails with PANIC, as often as the contract says, and all else lives', async () => {
      const hf = await harness().connect()
      const contract = defineJob<unknown>('isolated', { maxCrashes: 2 })
      const job = await hf.enqueue(contract, { act: 'segfault' }, { retry: retry.immediate(50) })
      const neighbour = await hf.enqueue(contract, { act: 'echo', value: 'alive' })
      const handlers = [inThread(contract, THREAD_MODULE, { isolation: 'process' })]
      const worker = await harness().worker(hf, { handlers, concurrency: 2 })
      expect(await job.result().catch((thrown) => thrown)).toMatchObject({ details: { dlqCode: 'PANIC' } })
      expect(await neighbour.result()).toBe('alive')
      expect((await hf.attempts(job.id)).map(({ outcome, failure }) => [outcome, failure?.code])).toEqual([
        ['crashed', 'PANIC'],
        ['crashed', 'PANIC'],
      ])
      expect(worker.activeJobs).toBe(0)
    })

    it('47 two crashes and then a success leave no trace in the count of crashes', async () => {
      const hf = await harness().connect()
      const job = await hf.enqueue('thread', { act: 'exitUntil', attempt: 3 }, { retry: retry.immediate(50) })
      await harness().worker(hf, { handlers: [inThread(defineJob<unknown>('thread'), THREAD_MODULE)], concurrency: 1 })
      expect(await job.result()).toBe('attempt 3')
      expect((await hf.attempts(job.id)).map(({ outcome }) => outcome)).toEqual(['crashed', 'crashed', 'succeeded'])
    })

    it('56 every failed attempt has a code and a message', async () => {
      const hf = await harness().connect()
      const cases = [
        new Error(''),
        new Error('   '),
        '',
        null,
        undefined,
        {},
        // Long enough that the attempts are counted before the next one.
        new RetryAfter(600_000),
        new PermanentError(''),
      ]
      for (const thrown of cases) {
        const { attempts } = await runOnce(hf, thrown)
        expect(attempts).toHaveLength(1)
        expect(attempts[0]?.failure?.code).toBeTruthy()
        expect(attempts[0]?.failure?.message).toBeTruthy()
      }
    })

    it('57 the same failure and budget always lead to the same state', () => {
      const code = fc.oneof(
        fc.constantFrom(...Object.keys(FAILURE_CLASSES)),
        fc.string({ minLength: 1, maxLength: 20 }),
      )
      const budget = fc.record({
        attempt: fc.integer({ min: 1, max: 20 }),
        maxAttempts: fc.integer({ min: 1, max: 20 }),
        crashes: fc.integer({ min: 0, max: 5 }),
        maxCrashes: fc.integer({ min: 1, max: 5 }),
      })
      const roll = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
      fc.assert(
        fc.property(code, budget, roll, roll, (failureCode, spent, one, two) => {
          const decide = (next: number) =>
            decideFailure({ code: failureCode, message: 'm' }, spent, retry.exponential({ jitter: 0.5 }), {
              next: () => next,
              bytes: (count) => new Uint8Array(count),
            })
          const [a, b] = [decide(one), decide(two)]
          expect({ ...a, delayMs: 0 }).toEqual({ ...b, delayMs: 0 })
        }),
      )
    })

    it('57 jobs that fail alike end alike', async () => {
      const hf = await harness().connect()
      const jobs = await hf.enqueueMany(
        Array.from({ length: 12 }, (_, n) => ({
          job: task,
          input: null,
          options: { maxAttempts: (n % 3) + 1, retry: retry.fixed(5, '1h') },
        })),
      )
      const failing = handle(task, () => {
        throw new Error('SYSTEM_FAILURE: again')
      })
      await hf.runUntilEmpty({ handlers: [failing] })
      const states = await Promise.all(jobs.map(async ({ id }) => (await hf.get(id))?.state))
      expect(states).toEqual(Array.from({ length: 12 }, (_, n) => (n % 3 === 0 ? 'dlq' : 'retry_wait')))
    })
  })
}
