/** Cancellation of jobs that wait and of jobs that run. Assertions 63–65. */
import { defineJob, type HoldfastError, handle, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { codeOf, gate, nextEvent, within } from '../support/event.ts'
import {
  cancelled,
  claim,
  claimOne,
  complete,
  grantOf,
  picture,
  put,
  release,
  renew,
  requeue,
  retryIn,
  settle,
  stored,
} from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')

export function cancelSuite({ harness }: SuiteContext): void {
  describe('cancel', () => {
    it('63 a cancelled job that waited never runs', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const queued = await hf.enqueue(task, 'queued')
      const scheduled = await hf.enqueue(task, 'scheduled', { delay: '1h' })
      const { id: retrying } = await put(raw, { lane: 'other' })
      await settle(raw, retryIn(await claimOne(raw, { lanes: ['other'] }), 3_600_000))
      const ids = [queued.id, scheduled.id, retrying]
      for (const id of ids) expect(await hf.cancel(id)).toBe('cancelled')
      for (const id of ids) expect(await hf.cancel(id)).toBe('already_terminal')
      await harness().advance(86_400_000)
      let calls = 0
      const handlers = [handle(task, () => ++calls)]
      expect(await hf.runUntilEmpty({ handlers, lanes: ['default', 'other'] })).toBe(0)
      expect(calls).toBe(0)
      for (const id of ids) {
        const job = await hf.get(id)
        expect(job).toMatchObject({ state: 'cancelled', dlqCode: null })
        expect(job?.finishedAt).not.toBeNull()
      }
      expect((await hf.stats()).counts).toMatchObject({ cancelled: 3, queued: 0, scheduled: 0, retry_wait: 0 })
    })

    it('63 of a cancellation and a claim that race exactly one wins', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const wins = { cancelled: 0, requested: 0 }
      for (let round = 0; round < 100; round += 1) {
        const { id } = await put(raw)
        const cancelling = () => hf.cancel(id)
        const claiming = () => claim(raw)
        const [outcome, jobs] =
          round % 2 === 0
            ? await Promise.all([cancelling(), claiming()])
            : await Promise.all([claiming(), cancelling()]).then(([b, a]) => [a, b] as const)
        if (outcome === 'already_terminal') throw new Error('nobody has ended the job')
        wins[outcome] += 1
        expect([outcome, jobs.length]).toEqual([outcome, outcome === 'cancelled' ? 0 : 1])
        const job = await stored(raw, id)
        expect(job.state).toBe(outcome === 'cancelled' ? 'cancelled' : 'running')
        for (const lease of jobs) expect(await settle(raw, cancelled(lease))).toBe('applied')
      }
      expect(wins.cancelled + wins.requested).toBe(100)
      expect((await grantOf(raw)).jobs).toEqual([])
    })

    it('64 force is true or false and nothing else', async () => {
      const hf = await harness().connect()
      const { id } = await hf.enqueue(task, 1)
      const refused = { code: 'INVALID_ARGUMENT', details: { field: 'force' } }
      await expect(hf.cancel(id, { force: 'yes' as never })).rejects.toMatchObject(refused)
      expect(await hf.get(id)).toMatchObject({ state: 'queued' })
    })

    it('64 cancelling a running job asks its owner, and takes nothing from it', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await put(raw)
      const lease = await claimOne(raw)
      const before = await stored(raw, lease.id)
      expect(await settle(raw, cancelled({ id: lease.id, token: 'not:the:token' }))).toBe('leaseLost')
      expect(await stored(raw, lease.id)).toEqual(before)
      expect(await hf.cancel(lease.id)).toBe('requested')
      expect(await hf.cancel(lease.id)).toBe('requested')
      expect(await stored(raw, lease.id)).toMatchObject({
        state: 'running',
        cancelRequested: true,
        leaseExpiresAt: before.leaseExpiresAt,
        workerId: before.workerId,
        finishedAt: null,
      })
      expect(await renew(raw, lease)).toBe('cancelRequested')
      // What the handler has done is not reported as undone.
      expect(await settle(raw, complete(lease))).toBe('applied')
      expect(await hf.get(lease.id)).toMatchObject({ state: 'completed', output: 'done' })
    })

    it('64 a job whose cancellation was requested is not run again', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      for (const give of [(lease: Parameters<typeof release>[0]) => retryIn(lease, 0), release]) {
        await put(raw)
        const lease = await claimOne(raw)
        expect(await hf.cancel(lease.id)).toBe('requested')
        expect(await settle(raw, give(lease))).toBe('cancelled')
        expect((await hf.get(lease.id))?.state).toBe('cancelled')
      }
      await put(raw)
      const expiring = await claimOne(raw, { leaseMs: 60_000 })
      expect(await hf.cancel(expiring.id)).toBe('requested')
      await harness().advance(60_001)
      await hf.maintain()
      expect((await hf.get(expiring.id))?.state).toBe('cancelled')
      await put(raw)
      const overtaken = await claimOne(raw, { leaseMs: 60_000 })
      await harness().advance(60_001)
      // The reaper has decided to requeue when the request comes.
      expect(await hf.cancel(overtaken.id)).toBe('requested')
      const { verdicts } = await raw.call('lease.reap', { decisions: [requeue(overtaken)], limit: 1 })
      expect(verdicts).toEqual(['cancelled'])
      expect((await hf.get(overtaken.id))?.state).toBe('cancelled')
      await harness().advance(86_400_000)
      expect(await claim(raw, { limit: 10 })).toEqual([])
    })

    it('64 the owner in another process learns of the request with its next renewal', async () => {
      const owner = await harness().connect()
      const other = await harness().connect()
      const started = gate()
      const reasons: HoldfastError[] = []
      const job = await other.enqueue(task, null)
      const handler = handle(task, async (_input, ctx) => {
        started.open()
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
        reasons.push(ctx.signal.reason)
        throw ctx.signal.reason
      })
      const worker = await harness().worker(owner, { handlers: [handler], lease: 1_000 })
      const event = nextEvent(worker, 'cancelled')
      await started.passed
      expect(await other.cancel(job.id)).toBe('requested')
      expect(await event).toMatchObject({ jobId: job.id, state: 'cancelled' })
      expect(reasons.map(({ code }) => code)).toEqual(['JOB_CANCELLED'])
      expect(await codeOf(job.result())).toBe('JOB_CANCELLED')
    })

    for (const [how, lane, hints] of [
      ['where hints arrive', 'told', true],
      ['where none does', 'looked', false],
    ] as const) {
      it(`64 the owner in another process learns of it long before its next renewal, ${how}`, async () => {
        const owner = await harness().connect({ hints })
        const other = await harness().connect()
        const begun = [gate(), gate()] as const
        const handler = handle(task, async (input, ctx) => {
          begun[input === 'asked' ? 0 : 1].open()
          await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
          throw ctx.signal.reason
        })
        const worker = await harness().worker(owner, { handlers: [handler], lanes: [lane], lease: '10m' })
        const asked = await other.enqueue(task, 'asked', { queue: lane })
        const forced = await other.enqueue(task, 'forced', { queue: lane })
        await Promise.all(begun.map(({ passed }) => within(passed, 'both run')))
        const [event, lost] = [nextEvent(worker, 'cancelled'), nextEvent(worker, 'lost')]
        expect(await other.cancel(asked.id)).toBe('requested')
        expect(await other.cancel(forced.id, { force: true })).toBe('cancelled')
        expect(await event).toMatchObject({ jobId: asked.id, state: 'cancelled' })
        expect(await lost).toMatchObject({ jobId: forced.id })
        for (const { id } of [asked, forced]) {
          expect(await other.get(id)).toMatchObject({ state: 'cancelled', attempts: 1 })
          expect(await other.attempts(id)).toMatchObject([{ outcome: 'cancelled', failure: { code: 'CANCELLED' } }])
        }
      })
    }

    it('65 a cancelled attempt is closed as cancelled', async () => {
      const hf = await harness().connect()
      const started = gate()
      const job = await hf.enqueue(task, null, { retry: retry.immediate(5) })
      const handler = handle(task, async (_input, ctx) => {
        started.open()
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
        throw new Error('whatever the handler says now')
      })
      const worker = await harness().worker(hf, { handlers: [handler] })
      const event = nextEvent(worker, 'cancelled')
      await started.passed
      expect(await hf.cancel(job.id)).toBe('requested')
      await event
      const record = await hf.get(job.id)
      expect(record).toMatchObject({ state: 'cancelled', attempts: 1, lastFailure: { code: 'CANCELLED' } })
      const attempts = await hf.attempts(job.id)
      expect(attempts).toMatchObject([{ attempt: 1, outcome: 'cancelled', failure: { code: 'CANCELLED' } }])
      expect(attempts[0]?.finishedAt).toBe(record?.finishedAt)
    })

    it('65 an attempt cancelled by force is closed at once, and its owner is fenced off', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await put(raw)
      const lease = await claimOne(raw, { workerId: 'owner' })
      expect(await hf.cancel(lease.id, { force: true })).toBe('cancelled')
      const before = await picture(raw, lease.id)
      expect(before).toMatchObject({
        job: { state: 'cancelled', leaseExpiresAt: null },
        attempts: [{ attempt: 1, outcome: 'cancelled', workerId: 'owner', failure: { code: 'CANCELLED' } }],
      })
      expect(await renew(raw, lease)).toBe('leaseLost')
      expect(await settle(raw, complete(lease))).toBe('leaseLost')
      expect(await settle(raw, cancelled(lease))).toBe('leaseLost')
      expect(await picture(raw, lease.id)).toEqual(before)
    })
  })
}
