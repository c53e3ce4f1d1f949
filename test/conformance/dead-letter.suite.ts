/** What is kept of a dead job, and how it is run again. Assertions 58–62. */
import { defineJob, handle, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { codeOf } from '../support/event.ts'
import { picture } from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')
const failing = handle(task, (_input, ctx) => {
  throw new Error(`failure ${ctx.attempt}`)
})
const INPUT = { text: 'é\u0000😀', list: [1, { deep: [null, true] }], at: new Date(5), bytes: new Uint8Array([0, 255]) }

export function deadLetterSuite({ harness, capabilities }: SuiteContext): void {
  const deadJob = async (options: object = {}) => {
    const hf = await harness().connect()
    const { id } = await hf.enqueue(task, INPUT, { retry: retry.immediate(2), ...options })
    await hf.runUntilEmpty({ handlers: [failing] })
    expect((await hf.get(id))?.state).toBe('dlq')
    return { hf, id }
  }

  describe('dead letter', () => {
    it('58 everything about a dead job can be read', async () => {
      const hf = await harness().connect()
      const before = Math.floor(harness().now())
      const { id } = await hf.enqueue(task, INPUT, {
        retry: retry.fixed(2, '1s'),
        metadata: { tenant: 'a' },
        traceId: 'trace-1',
        priority: 3,
      })
      await hf.runUntilEmpty({ handlers: [failing], id: 'worker-1' })
      await harness().advance(1_001)
      await hf.runUntilEmpty({ handlers: [failing], id: 'worker-2' })
      const job = await hf.get(id)
      expect(job).toMatchObject({
        state: 'dlq',
        dlqCode: 'MAX_ATTEMPTS_EXCEEDED',
        attempts: 2,
        priority: 3,
        metadata: { tenant: 'a' },
        traceId: 'trace-1',
        workerId: 'worker-2',
        lastFailure: { code: 'HANDLER_ERROR', message: 'failure 2', name: 'Error' },
        hasOutput: false,
        leaseExpiresAt: null,
      })
      expect(job?.input).toEqual(INPUT)
      expect(job?.lastFailure?.stack).toContain('failure 2')
      expect(job?.finishedAt).toBeGreaterThanOrEqual(before + 1_001)
      expect(await hf.attempts(id)).toMatchObject([
        { attempt: 1, outcome: 'failed', workerId: 'worker-1', failure: { message: 'failure 1' } },
        { attempt: 2, outcome: 'failed', workerId: 'worker-2', failure: { message: 'failure 2' } },
      ])
      const { jobs } = await hf.list({ state: 'dlq' })
      expect(jobs).toMatchObject([{ id, dlqCode: 'MAX_ATTEMPTS_EXCEEDED', finishedAt: job?.finishedAt }])
    })

    it('59 a replay is a new job, and its source stays as it was', async () => {
      const { hf, id } = await deadJob({
        idempotencyKey: 'once',
        priority: 4,
        timeout: '9s',
        metadata: { tenant: 'a' },
        traceId: 'trace-1',
        maxCrashes: 6,
      })
      const raw = await harness().raw()
      const before = await picture(raw, id)
      const replayed = await hf.replay(id)
      expect(await picture(raw, id)).toEqual(before)
      expect(replayed.id).not.toBe(id)
      expect(replayed.deduplicated).toBe(false)
      const job = await hf.get(replayed.id)
      expect(job).toMatchObject({
        state: 'queued',
        type: 'task',
        lane: 'default',
        replayOf: id,
        idempotencyKey: null,
        attempts: 0,
        crashes: 0,
        maxAttempts: 2,
        maxCrashes: 6,
        priority: 4,
        timeoutMs: 9_000,
        metadata: { tenant: 'a' },
        traceId: 'trace-1',
        dlqCode: null,
        lastFailure: null,
        workerId: null,
        startedAt: null,
        finishedAt: null,
      })
      expect(job?.input).toEqual(INPUT)
      expect(await hf.attempts(replayed.id)).toEqual([])
      const seen: unknown[] = []
      const mended = handle(task, (input) => {
        seen.push(input)
      })
      expect(await hf.runUntilEmpty({ handlers: [mended] })).toBe(1)
      expect(seen).toEqual([INPUT])
      expect(await picture(raw, id)).toEqual(before)
    })

    it('59 completed and cancelled jobs can be replayed, living ones cannot', async () => {
      const hf = await harness().connect()
      const done = await hf.enqueue(task, 1)
      await hf.runUntilEmpty({ handlers: [handle(task, () => 1)] })
      const waiting = await hf.enqueue(task, 2)
      const gone = await hf.enqueue(task, 3)
      await hf.cancel(gone.id)
      expect(await codeOf(hf.replay(waiting.id))).toBe('INVALID_STATE')
      for (const { id } of [done, gone]) expect((await hf.get((await hf.replay(id)).id))?.replayOf).toBe(id)
      expect((await hf.stats()).total).toBe(5)
    })

    it('60 a replay goes where and when, and with what, it is told', async () => {
      const { hf, id } = await deadJob()
      const runAt = Math.floor(harness().now()) + 3_600_000
      const replayed = await hf.replay(id, { queue: 'second-chance', runAt, input: { mended: true } })
      expect(replayed.id.startsWith('second-chance/')).toBe(true)
      expect(await hf.get(replayed.id)).toMatchObject({
        lane: 'second-chance',
        state: 'scheduled',
        runAt,
        input: { mended: true },
        replayOf: id,
      })
      expect((await hf.get(id))?.input).toEqual(INPUT)
      expect(await codeOf(hf.replay(id, { queue: 'a b' }))).toBe('INVALID_NAME')
      expect(await codeOf(hf.replay(id, { when: 1 } as object))).toBe('INVALID_ARGUMENT')
    })

    it('60 a deadline that has passed is not copied, one that has not is', async () => {
      const deadline = Math.floor(harness().now()) + 3_600_000
      const { hf, id } = await deadJob({ deadline })
      expect((await hf.get((await hf.replay(id)).id))?.deadlineAt).toBe(deadline)
      await harness().advance(3_600_001)
      expect(await hf.get((await hf.replay(id)).id)).toMatchObject({ deadlineAt: null, state: 'queued' })
    })

    it('61 two replays of one source are two jobs', async () => {
      const { hf, id } = await deadJob({ idempotencyKey: 'once' })
      const replays = await Promise.all([hf.replay(id), hf.replay(id), hf.replay(id)])
      expect(new Set(replays.map((replay) => replay.id)).size).toBe(3)
      const calls: string[] = []
      const mended = handle(task, (_input, ctx) => {
        calls.push(ctx.jobId)
      })
      await hf.runUntilEmpty({ handlers: [mended] })
      expect(calls.sort()).toEqual(replays.map((replay) => replay.id).sort())
    })

    it('62 a replay of a scheduled occurrence makes that one job and no schedule', async () => {
      const hf = await harness().connect()
      const { id } = await hf.enqueue(task, INPUT, { delay: '1h', retry: retry.none() })
      await harness().advance(3_600_001)
      await hf.runUntilEmpty({ handlers: [failing] })
      const replayed = await hf.replay(id)
      expect((await hf.get(replayed.id))?.state).toBe('queued')
      await hf.runUntilEmpty({ handlers: [handle(task, () => 'done')] })
      await harness().advance(7 * 86_400_000 - 60_000)
      expect(await hf.runUntilEmpty({ handlers: [handle(task, () => 'again')] })).toBe(0)
      expect((await hf.stats()).total).toBe(2)
      if (!capabilities.schedules)
        expect(await codeOf(() => hf.require({ schedules: true }))).toBe('CAPABILITY_MISSING')
    })
  })
}
