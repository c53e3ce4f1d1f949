/** The explanation of a job agrees with its record and its attempts, in every state. Assertion 128. */
import { defineJob, type Explanation, type Holdfast, handle, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { claimOne, put, retryIn, settle } from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')

/** What must hold between the explanation of any job and what is stored of it. */
async function explainChecked(hf: Holdfast, id: string): Promise<Explanation> {
  const [explained, job, attempts] = [await hf.explain(id), await hf.get(id), await hf.attempts(id)]
  if (explained === null || job === null) throw new Error(`no job ${id}`)
  expect(explained).toMatchObject({
    jobId: job.id,
    type: job.type,
    lane: job.lane,
    state: job.state,
    attempts: job.attempts,
    maxAttempts: job.maxAttempts,
    retryCount: Math.max(0, job.attempts - 1),
    lastWorkerId: job.workerId,
    lastError: job.lastFailure,
    dlqCode: job.dlqCode,
    replayOf: job.replayOf,
    traceId: job.traceId,
  })
  expect(explained.workers).toEqual([...new Set(attempts.map(({ workerId }) => workerId))])
  const ended = explained.events.filter(({ kind }) => kind === 'attempt_ended')
  expect(ended.map(({ attempt, workerId, state, error }) => [attempt, workerId, state, error])).toEqual(
    attempts
      .filter(({ finishedAt }) => finishedAt !== null)
      .map(({ attempt, workerId, outcome, failure }) => [attempt, workerId, outcome, failure]),
  )
  expect(explained.events.filter(({ kind }) => kind === 'attempt_started')).toHaveLength(attempts.length)
  const times = explained.events.map(({ at }) => at)
  expect(times).toEqual([...times].sort((a, b) => a - b))
  expect(explained.summary).not.toBe('')
  expect(explained.summary).not.toContain('\n')
  const { totalMs, processingMs, waitingMs } = explained.durations
  for (const ms of [totalMs, processingMs, waitingMs]) expect(ms).toBeGreaterThanOrEqual(0)
  return explained
}

export function explainSuite({ harness }: SuiteContext): void {
  describe('explain', () => {
    it('128 a job that waits is explained', async () => {
      const hf = await harness().connect()
      const queued = await hf.enqueue(task, null, { metadata: { traceId: 'trace-m' } })
      const scheduled = await hf.enqueue(task, null, { delay: '1h' })
      expect(await explainChecked(hf, queued.id)).toMatchObject({
        state: 'queued',
        traceId: 'trace-m',
        nextAction: { kind: 'wait_for_worker' },
        suggestedAction: null,
      })
      const later = await explainChecked(hf, scheduled.id)
      expect(later.nextAction).toEqual({ kind: 'run_at', at: (await hf.get(scheduled.id))?.runAt })
      expect(later.summary).toMatch(/not due/)
    })

    it('128 a running job names its owner and the end of its lease', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await put(raw)
      const { id } = await claimOne(raw, { workerId: 'owner' })
      const explained = await explainChecked(hf, id)
      expect(explained.nextAction).toEqual({
        kind: 'running',
        workerId: 'owner',
        leaseExpiresAt: (await hf.get(id))?.leaseExpiresAt,
      })
      expect(explained.summary).toContain('owner')
      await hf.cancel(id)
      expect((await explainChecked(hf, id)).summary).toMatch(/cancel/)
    })

    it('128 a job with a past is explained from its attempts', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const job = await hf.enqueue(task, null, { traceId: 'trace-1', retry: retry.fixed(3, '10s') })
      await claimOne(raw, { workerId: 'crashed', leaseMs: 60_000 })
      await harness().advance(60_001)
      await hf.maintain()
      expect(await explainChecked(hf, job.id)).toMatchObject({ state: 'queued', lastError: { code: 'LEASE_EXPIRED' } })
      const failing = handle(task, () => {
        throw new Error('DEPENDENCY_DOWN: no mail server\nsecond line')
      })
      await hf.runUntilEmpty({ handlers: [failing], id: 'failed' })
      const waiting = await explainChecked(hf, job.id)
      expect(waiting).toMatchObject({ state: 'retry_wait', retryCount: 1, workers: ['crashed', 'failed'] })
      expect(waiting.nextAction).toEqual({ kind: 'retry_at', at: (await hf.get(job.id))?.runAt })
      expect(waiting.summary).toContain('DEPENDENCY_DOWN')
      await harness().advance(10_001)
      await hf.runUntilEmpty({ handlers: [failing], id: 'last' })
      const dead = await explainChecked(hf, job.id)
      expect(dead).toMatchObject({
        state: 'dlq',
        dlqCode: 'MAX_ATTEMPTS_EXCEEDED',
        workers: ['crashed', 'failed', 'last'],
        lastWorkerId: 'last',
        traceId: 'trace-1',
        nextAction: { kind: 'replayable' },
      })
      expect(dead.durations.processingMs).toBeGreaterThanOrEqual(60_001)
      expect(dead.suggestedAction).toMatch(/replay/)
      const replayed = await hf.replay(job.id)
      expect(await explainChecked(hf, replayed.id)).toMatchObject({ replayOf: job.id, attempts: 0, workers: [] })
    })

    it('128 jobs that ended are explained', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const done = await hf.enqueue(task, 'done')
      const late = await hf.enqueue(task, 'late', { deadline: harness().now() - 1 })
      await hf.runUntilEmpty({ handlers: [handle(task, () => 1)], id: 'worker-1' })
      const gone = await hf.enqueue(task, 'gone')
      await hf.cancel(gone.id)
      expect(await explainChecked(hf, done.id)).toMatchObject({
        state: 'completed',
        workers: ['worker-1'],
        nextAction: { kind: 'none' },
        suggestedAction: null,
      })
      expect(await explainChecked(hf, late.id)).toMatchObject({
        state: 'dlq',
        dlqCode: 'DEADLINE_EXCEEDED',
        attempts: 0,
        workers: [],
      })
      expect((await explainChecked(hf, gone.id)).summary).toMatch(/cancelled before it ran/)
      await put(raw)
      const lease = await claimOne(raw)
      await settle(raw, retryIn(lease, 5_000))
      await hf.cancel(lease.id)
      expect(await explainChecked(hf, lease.id)).toMatchObject({ state: 'cancelled', attempts: 1 })
    })
  })
}
