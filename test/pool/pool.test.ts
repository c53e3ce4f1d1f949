/**
 * Handlers in threads and in processes: outcomes, isolation of every way a thread can die, aborts and kills. Each test awaits outcomes.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ThreadRun } from '#dist/src/actors/thread-run.js'
import { failure, output, recorder, TestPool } from '../support/thread-pool.ts'

describe.each(['thread', 'process'] as const)('a %s', (isolation) => {
  let pool: TestPool

  beforeAll(async () => {
    pool = new TestPool({}, { isolation })
    await pool.actor.start()
  })

  afterAll(() => pool.actor.stop())

  /** Whatever a test did, both threads must serve on. */
  afterEach(async () => {
    const outcomes = await Promise.all(Array.from({ length: 4 }, (_, n) => pool.act('echo', { value: n })))
    expect(outcomes.map(output)).toEqual([0, 1, 2, 3])
  })

  describe('a handler that ends by itself', () => {
    it('gives its output back, rich values included', async () => {
      expect(output(await pool.act('echo', { value: { a: [1, 'two', null] } }))).toEqual({ a: [1, 'two', null] })
      expect(output(await pool.act('echo'))).toBeUndefined()
      const rich = output(await pool.act('returnsRich'))
      expect(rich).toEqual({
        at: new Date(5),
        bytes: new Uint8Array([1, 2]),
        big: 7n,
        none: undefined,
        not: Number.NaN,
      })
    })

    it('sees the job in its context', async () => {
      expect(output(await pool.act('describe'))).toEqual({
        jobId: 'mail/01',
        type: 'test',
        lane: 'mail',
        attempt: 2,
        maxAttempts: 7,
        isLastAttempt: false,
        leaseEpoch: 1_700_000_000_000_001,
        workerId: 'worker-1',
        deadlineAt: new Date(1_900_000_000_000),
        metadata: { tenant: 'a' },
        traceId: 'trace-1',
        aborted: false,
        kinds: ['function', 'function', 'function'],
      })
    })

    it('has the context that setup() made, once a thread', async () => {
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => pool.act('context')))
      const seen = outcomes.map((outcome) => output(outcome) as { setupThread: number; thread: number; setups: number })
      expect(seen.every((one) => one.setupThread === one.thread && one.setups === 1)).toBe(true)
    })

    it('fails with what it threw, code, name and cause kept', async () => {
      const outcome = await pool.act('throws', { message: 'broken' })
      expect(outcome).toMatchObject({
        kind: 'failed',
        failure: { code: 'E_CUSTOM', name: 'TypeError', message: 'broken', cause: { message: 'below' } },
      })
      expect(failure(await pool.act('throwsText'))).toEqual({
        kind: 'failed',
        code: 'HANDLER_ERROR',
        message: 'plain text',
      })
      expect(failure(await pool.act('permanent'))).toEqual({ kind: 'failed', code: 'BAD_CARD', message: 'no use' })
      expect(await pool.act('retryAfter')).toMatchObject({ kind: 'failed', failure: { retryAfterMs: 30_000 } })
    })

    it('fails with BAD_OUTPUT when its output cannot leave the thread, naming the place; the thread lives', async () => {
      const before = output(await pool.act('thread'))
      for (const [act, place] of [
        ['returnsFunction', 'output.list[1].callback: a function'],
        ['returnsInstance', 'output.price: an instance of Money'],
        ['returnsProxy', 'output: cannot leave the thread'],
        ['returnsPort', 'output: an instance of MessagePort'],
        ['returnsDetached', 'output.list[0].bytes: a Uint8Array whose buffer was transferred'],
        ['returnsThrowing', 'output.trap: cannot leave the thread: sprung'],
        ['returnsSparse', 'output.list[0]: a hole in an array'],
        ['returnsMap', 'output.map: an instance of Map'],
      ] as const) {
        const { kind, code, message } = failure(await pool.act(act))
        expect({ kind, code }).toEqual({ kind: 'failed', code: 'BAD_OUTPUT' })
        expect(message).toContain(place)
      }
      const after = await Promise.all([pool.act('thread'), pool.act('thread')])
      expect(after.map(output)).toContain(before)
    })

    it('is read once, so that a getter which gives something else the next time does no harm', async () => {
      const before = output(await pool.act('thread'))
      expect(output(await pool.act('returnsFlip'))).toEqual({ flips: 'first' })
      const after = await Promise.all([pool.act('thread'), pool.act('thread')])
      expect(after.map(output)).toContain(before)
    })

    it('fails with BAD_PAYLOAD when its input cannot be sent', async () => {
      const outcome = await pool.act('echo', { value: () => 1 })
      expect(failure(outcome)).toMatchObject({ kind: 'failed', code: 'BAD_PAYLOAD' })
    })
  })

  describe('a thread that dies', () => {
    const deaths = [
      ['process.exit(7)', { act: 'exit', code: 7 }, 'exited with code 7'],
      ['process.exit(0)', { act: 'exit', code: 0 }, 'exited with code 0'],
      ['an exception in a timer', { act: 'timerThrows' }, 'thrown in a timer'],
      ['an unhandled rejection', { act: 'rejects' }, 'nobody caught this'],
    ] as const

    it.each(deaths)('%s crashes that attempt alone', async (_name, input, words) => {
      const dying = pool.run(input)
      const others = Array.from({ length: 20 }, (_, n) => pool.act('echo', { value: n }))
      const { kind, code, message } = failure(await dying.outcome)
      expect({ kind, code }).toEqual({ kind: 'crashed', code: 'PANIC' })
      expect(message).toContain(words)
      expect((await Promise.all(others)).map(output)).toEqual(Array.from({ length: 20 }, (_, n) => n))
    })

    it('does not touch what runs or waits beside it, even when all threads die at once', async () => {
      const dying = Array.from({ length: 6 }, () => pool.act('exit', { code: 1 }))
      const others = Array.from({ length: 10 }, (_, n) => pool.act('echo', { value: n }))
      const crashes = (await Promise.all(dying)).map(failure)
      expect(crashes.map(({ kind }) => kind)).toEqual(Array.from({ length: 6 }, () => 'crashed'))
      expect((await Promise.all(others)).map(output)).toEqual(Array.from({ length: 10 }, (_, n) => n))
    })

    it('is replaced with no attempt harmed when a left-over timer ends it between attempts', async () => {
      const crash = pool.nextIdleCrash()
      expect(output(await pool.act('leavesTimer'))).toBeUndefined()
      await crash
      expect(String(pool.idleCrashes.at(-1))).toContain('thrown after the end')
    })

    it('out of memory is a crash that says so, and the limit', async () => {
      const small = new TestPool({}, { isolation, maxHeapMb: 24 })
      await small.actor.start()
      try {
        const at = (input: object) => small.run(input)
        const beside = at({ act: 'untilAborted' })
        const { kind, code, message } = failure(await at({ act: 'fillsHeap' }).outcome)
        expect({ kind, code }).toEqual({ kind: 'crashed', code: 'PANIC' })
        expect(message).toMatch(/ran out of memory \((ERR_WORKER_OUT_OF_MEMORY|SIGABRT)\).*maxHeapMb is 24/)
        beside.abort({ code: 'SHUTTING_DOWN', message: 'enough' })
        expect(output(await beside.outcome)).toMatchObject({ code: 'SHUTTING_DOWN' })
        expect(output(await at({ act: 'echo', value: 1 }).outcome)).toBe(1)
      } finally {
        await small.actor.stop()
      }
    })
  })

  describe('kill', () => {
    it('ends an endless loop while 20 other attempts finish', async () => {
      const looping = pool.run({ act: 'loops' })
      const others = await Promise.all(Array.from({ length: 20 }, (_, n) => pool.act('echo', { value: n })))
      expect(others.map(output)).toEqual(Array.from({ length: 20 }, (_, n) => n))
      looping.kill()
      const outcome = await looping.outcome
      expect(failure(outcome)).toEqual({
        kind: 'crashed',
        code: 'PANIC',
        message: `the handler ${isolation} was terminated`,
      })
    })

    it('ends a handler that awaits for ever', async () => {
      const { services, seen } = recorder()
      const waiting = pool.run({ act: 'untilAborted' }, services)
      waiting.kill()
      waiting.kill()
      expect(failure(await waiting.outcome)).toMatchObject({ kind: 'crashed', code: 'PANIC' })
      expect(seen.logs.length).toBeLessThanOrEqual(1)
    })

    it('takes an attempt that waits for a thread out of the queue without ending a thread', async () => {
      const busy = [pool.run({ act: 'awaitsForever' }), pool.run({ act: 'awaitsForever' })]
      const { services, seen } = recorder()
      const queued = pool.run({ act: 'progress', value: 'never' }, services)
      queued.kill()
      expect(failure(await queued.outcome).kind).toBe('crashed')
      for (const run of busy) run.kill()
      await Promise.all(busy.map((run) => run.outcome))
      expect(output(await pool.act('echo', { value: 1 }))).toBe(1)
      expect(seen.progress).toEqual([])
    })
  })

  describe('abort', () => {
    it('fires the signal with a HoldfastError of the code', async () => {
      const run = await new Promise<ThreadRun>((resolve) => {
        const { services } = recorder({ log: () => resolve(started) })
        const started = pool.run({ act: 'untilAborted' }, services)
      })
      run.abort({ code: 'TIMEOUT', message: 'ran too long' })
      run.abort({ code: 'SHUTTING_DOWN', message: 'second' })
      expect(output(await run.outcome)).toMatchObject({
        name: 'HoldfastError',
        code: 'TIMEOUT',
        message: 'ran too long',
      })
    })

    it('shows as aborted when it came before the signal was looked at', async () => {
      const { services } = recorder({
        progress: async () => running.abort({ code: 'JOB_CANCELLED', message: 'cancelled' }),
      })
      const running = pool.run({ act: 'looksAtSignalLate' }, services)
      expect(output(await running.outcome)).toEqual({ aborted: true, code: 'JOB_CANCELLED' })
    })

    it('ends an attempt that waits for a thread at once, and its handler never begins', async () => {
      const busy = [pool.run({ act: 'awaitsForever' }), pool.run({ act: 'awaitsForever' })]
      const { services, seen } = recorder()
      const queued = pool.run({ act: 'progress', value: 'never' }, services)
      queued.abort({ code: 'DEADLINE_EXCEEDED', message: 'too late' })
      expect(failure(await queued.outcome)).toEqual({ kind: 'failed', code: 'DEADLINE_EXCEEDED', message: 'too late' })
      for (const run of busy) run.kill()
      await Promise.all(busy.map((run) => run.outcome))
      expect(output(await pool.act('echo', { value: 1 }))).toBe(1)
      expect(seen.progress).toEqual([])
    })

    it('reaches an attempt that was sent a moment ago, and no other', async () => {
      const run = pool.run({ act: 'untilAborted' })
      const other = pool.run({ act: 'looksAtSignalLate' })
      run.abort({ code: 'LEASE_LOST', message: 'lost' })
      const outcome = await run.outcome
      // Whether its handler had begun by then or not.
      const heard = outcome.kind === 'succeeded' ? outcome.output : failure(outcome)
      expect(heard).toMatchObject({ code: 'LEASE_LOST', message: 'lost' })
      expect(output(await other.outcome)).toEqual({ aborted: false, code: undefined })
    })
  })
})
