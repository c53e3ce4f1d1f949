/** The explanation of a job agrees with its record and its attempts, in every state. Assertion 128. */
import { defineJob, type Explanation, type Holdfast, handle, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { HoldfastError } from '#dist/src/errors.js'
import { over } from '../support/faulty-backend.ts'
import { announce, beatOf, claimOne, put, release, retryIn, settle } from '../support/protocol.ts'
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
    cancelRequested: job.cancelRequested,
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
        startedAt: (await hf.get(id))?.startedAt,
        leaseExpiresAt: (await hf.get(id))?.leaseExpiresAt,
        owner: 'unknown',
      })
      expect(explained.blockers).toEqual([])
      expect(explained.summary).toContain('owner')
      await hf.cancel(id)
      expect(await explainChecked(hf, id)).toMatchObject({
        cancelRequested: true,
        summary: expect.stringMatching(/cancel/),
      })
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
      // The first one lasted for a minute of which nobody knows how much was spent in its handler.
      expect(dead.durations.totalMs).toBeGreaterThanOrEqual(70_002)
      expect(dead.durations.processingMs).toBeLessThan(60_000)
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

    it('128 an attempt that was given back is told among the others', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await put(raw)
      const lease = await claimOne(raw, { workerId: 'leaver' })
      await settle(raw, release(lease))
      const explained = await explainChecked(hf, lease.id)
      expect(explained.events.map(({ kind, state }) => [kind, state])).toContainEqual(['attempt_ended', 'released'])
      expect(explained.workers).toEqual(['leaver'])
    })
  })

  describe('why a job does not run', () => {
    const kindsOf = ({ blockers }: Explanation) => blockers.map(({ kind }) => kind)

    it('128 no live worker takes jobs of its lane', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const { id } = await hf.enqueue(task, null)
      const never = await explainChecked(hf, id)
      expect(never.blockers).toEqual([
        { kind: 'no_worker', lane: 'default', lastWorkerId: null, text: 'no live worker takes jobs of lane default' },
      ])
      expect(never.summary).toBe('ready; no live worker takes jobs of lane default')
      expect(never.suggestedAction).toMatch(/start a worker/i)
      await announce(raw, [beatOf('elsewhere', { lanes: ['other'] }), beatOf('dead'), beatOf('leaves')])
      expect(kindsOf(await explainChecked(hf, id))).toEqual([])
      await harness().advance(20_000)
      await announce(raw, [beatOf('elsewhere', { lanes: ['other'] }), beatOf('leaves', { isStopping: true })])
      const [stopping] = (await explainChecked(hf, id)).blockers
      expect(stopping).toMatchObject({ kind: 'no_worker', lastWorkerId: 'leaves' })
      expect(stopping?.text).toBe('no live worker takes jobs of lane default; leaves is stopping')
      await announce(raw, [], ['leaves'])
      const [gone] = (await explainChecked(hf, id)).blockers
      expect(gone?.text).toMatch(/^no live worker takes jobs of lane default; dead was last heard of 2\d(\.\d)? s ago$/)
    })

    it('128 live workers of the lane have no handler for its type, or only some have', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const { id } = await hf.enqueue(task, null)
      await announce(raw, [beatOf('a', { types: ['other'] }), beatOf('b', { types: ['another'] })])
      const explained = await explainChecked(hf, id)
      const end = 'whichever takes the job puts it into the dead letters as UNKNOWN_JOB_TYPE'
      const text = `2 live workers of the lane, and none has a handler for task; they have another, other: ${end}`
      expect(explained.blockers).toEqual([
        { kind: 'no_handler', type: 'task', workers: 2, types: ['another', 'other'], text },
      ])
      expect(explained.suggestedAction).toMatch(/handler/)
      await announce(raw, [beatOf('b', { types: ['task'] })])
      expect((await explainChecked(hf, id)).blockers).toEqual([
        {
          kind: 'mixed_handlers',
          type: 'task',
          withHandler: 1,
          without: 1,
          text: `1 of 2 live workers of the lane has no handler for task: ${end}`,
        },
      ])
      await announce(raw, [beatOf('a', { types: ['other'], moreTypes: 5 })])
      expect(kindsOf(await explainChecked(hf, id))).toEqual([])
    })

    it('128 its lane is paused', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await announce(raw, [beatOf('a')])
      const { id } = await hf.enqueue(task, null)
      await hf.pause('elsewhere')
      expect(kindsOf(await explainChecked(hf, id))).toEqual([])
      await hf.pause('default')
      const paused = await explainChecked(hf, id)
      expect(paused.blockers).toEqual([{ kind: 'paused', lane: 'default', text: 'lane default is paused' }])
      expect(paused.suggestedAction).toMatch(/resume/i)
      await hf.resume('default')
      expect(kindsOf(await explainChecked(hf, id))).toEqual([])
    })

    it('128 it is not due, for the first time or again; its deadline has passed', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await announce(raw, [beatOf('a')])
      const later = await hf.enqueue(task, null, { delay: '1h' })
      const [notDue] = (await explainChecked(hf, later.id)).blockers
      expect(notDue).toMatchObject({ kind: 'not_due', at: (await hf.get(later.id))?.runAt })
      expect(notDue?.text).toMatch(/^it is due in (60 min|1 h)$/)
      await put(raw)
      const lease = await claimOne(raw)
      await settle(raw, retryIn(lease, 50_000))
      const [again] = (await explainChecked(hf, lease.id)).blockers
      expect(again?.text).toMatch(/^its next attempt is due in (50|49(\.\d)?) s$/)
      const late = await hf.enqueue(task, null, { deadline: harness().now() + 60_000 })
      await hf.pause('default')
      await harness().advance(61_000)
      await announce(raw, [beatOf('a')])
      expect(kindsOf(await explainChecked(hf, late.id))).toEqual(['deadline_passed', 'paused'])
    })

    it('128 others are ahead of it, and all slots are taken', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await announce(raw, [beatOf('a', { running: 3 }), beatOf('b', { running: 3, lanes: ['default', 'x'] })])
      await hf.enqueue(task, null)
      const second = await hf.enqueue(task, null)
      await hf.enqueue(task, null, { queue: 'x', priority: 9 })
      await hf.enqueue(task, null, { priority: 5 })
      await hf.enqueue(task, null, { priority: -5 })
      await hf.enqueue(task, null, { delay: '1h', priority: 7 })
      const low = await hf.enqueue(task, null, { priority: -5 })
      const urgent = await hf.enqueue(task, null, { priority: 6 })
      const cancelled = await hf.enqueue(task, null, { priority: 6 })
      await hf.cancel(cancelled.id)
      expect((await explainChecked(hf, second.id)).blockers).toEqual([
        { kind: 'busy', workers: 2, slots: 6, text: 'all 6 slots of 2 live workers of the lane are taken' },
        { kind: 'behind', ahead: 3, isMore: false, text: '3 jobs of the lane are ahead of it' },
      ])
      expect((await explainChecked(hf, low.id)).blockers).toContainEqual(
        expect.objectContaining({ kind: 'behind', ahead: 5 }),
      )
      await announce(raw, [beatOf('b', { running: 2 })])
      expect(kindsOf(await explainChecked(hf, urgent.id))).toEqual([])
      const { ahead } = await raw.call('job.ahead', { ids: [low.id, cancelled.id, urgent.id, 'x/none'], limit: 2 })
      expect(ahead).toEqual([2, null, 0, null])
    })

    it('128 its worker is not heard of any more, or its lease has run out', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await announce(raw, [beatOf('owner')])
      await put(raw)
      const { id } = await claimOne(raw, { workerId: 'owner', leaseMs: 30_000 })
      expect(await explainChecked(hf, id)).toMatchObject({ blockers: [], nextAction: { owner: 'alive' } })
      await harness().advance(20_000)
      const silent = await explainChecked(hf, id)
      expect(silent).toMatchObject({
        blockers: [{ kind: 'owner_silent', workerId: 'owner' }],
        nextAction: { owner: 'silent' },
      })
      expect(silent.summary).toMatch(
        /owner was last heard of 2\d(\.\d)? s ago; its lease runs out in \d.*the job runs again$/,
      )
      await hf.cancel(id)
      expect((await explainChecked(hf, id)).summary).toMatch(/its lease runs out in .*, then the job is cancelled$/)
      await harness().advance(20_000)
      const over = await explainChecked(hf, id)
      expect(kindsOf(over)).toEqual(['owner_silent', 'lease_expired'])
      expect(over.blockers[1]?.text).toMatch(/^its lease ran out (9|1\d)(\.\d)? s ago, and nobody has taken it back/)
      await hf.maintain()
      const ended = await explainChecked(hf, id)
      expect(ended).toMatchObject({ state: 'cancelled', blockers: [], summary: 'cancelled after 1 attempt' })
      // Nobody knows how long it ran.
      expect(ended.durations.processingMs).toBe(0)
    })

    it('128 a job that nobody started in time is advised upon as one that came too late', async () => {
      const hf = await harness().connect()
      const { id } = await hf.enqueue(task, null, { deadline: new Date(Date.now() + 5_000) })
      await harness().advance(10_000)
      const late = await explainChecked(hf, id)
      expect(kindsOf(late)[0]).toBe('deadline_passed')
      expect(late.suggestedAction).toMatch(/too late/)
    })

    it('128 a store that refuses to tell of workers and lanes still explains the job', async () => {
      const refuse = new HoldfastError('STORE_DENIED', 'not yours', { details: { outcome: 'refused' } })
      const types = ['worker.list', 'queue.policy', 'job.ahead']
      const hf = await harness().connect({
        wrap: (backend) =>
          over(backend, {
            call: (type, request) => (types.includes(type) ? Promise.reject(refuse) : backend.call(type, request)),
          }),
      })
      const { id } = await hf.enqueue(task, null)
      expect(await explainChecked(hf, id)).toMatchObject({
        state: 'queued',
        blockers: [],
        summary: 'ready; waits for a worker of lane default',
      })
    })
  })
}
