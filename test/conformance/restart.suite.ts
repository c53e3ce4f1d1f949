/** What is still there after the process has ended and another opens the store. Assertions 71, 119. */
import { defineJob, handle, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { claim, claimOne, complete, picture, put, settle } from '../support/protocol.ts'
import { isSharedByProcesses, type SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')

export function restartSuite(context: SuiteContext): void {
  const { harness, capabilities } = context
  if (!capabilities.durableJobs) return

  describe('restart', () => {
    it('71 keys still answer after a restart', async () => {
      const hf = await harness().connect()
      const waiting = await hf.enqueue(task, 1, { idempotencyKey: 'waiting' })
      const done = await hf.enqueue(task, 2, { idempotencyKey: 'done', queue: 'run' })
      await hf.runUntilEmpty({ handlers: [handle(task, () => 'kept')], lanes: ['run'] })
      await harness().restart()
      const again = await harness().connect()
      expect(await again.enqueue(task, 1, { idempotencyKey: 'waiting' })).toMatchObject({
        id: waiting.id,
        deduplicated: true,
      })
      const second = await again.enqueue(task, 2, { idempotencyKey: 'done', queue: 'run' })
      expect(second).toMatchObject({ id: done.id, deduplicated: true })
      expect(await second.result()).toBe('kept')
      expect((await again.stats()).total).toBe(2)
    })

    if (isSharedByProcesses(context)) {
      it('71 keys of a process that was killed answer in the next one', async () => {
        const child = harness().spawn('enqueue.mjs', 'killed')
        const [, key = '', id = ''] = (await child.line('created')).split(' ')
        await child.kill()
        const hf = await harness().connect()
        expect(await hf.enqueue('task', null, { idempotencyKey: key })).toMatchObject({ id, deduplicated: true })
      })
    }

    it('119 every accepted job is still there after a restart, as it was', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const failing = handle(task, () => {
        throw new Error('once')
      })
      const retrying = await hf.enqueue(task, 1, { retry: retry.fixed(5, '1h') })
      await hf.runUntilEmpty({ handlers: [failing] })
      const queued = await hf.enqueue(task, { at: new Date(5), bytes: new Uint8Array([1, 2]) }, { priority: 3 })
      const scheduled = await hf.enqueue(task, 3, { delay: '1h', metadata: { a: [1] }, traceId: 'trace-1' })
      const running = await put(raw, { lane: 'held' })
      const lease = await claimOne(raw, { lanes: ['held'], leaseMs: 3_600_000 })
      const dead = await hf.enqueue(task, 4, { queue: 'dead', maxAttempts: 1 })
      await hf.runUntilEmpty({ handlers: [failing], lanes: ['dead'] })
      await hf.pause('default')
      const ids = [retrying.id, queued.id, scheduled.id, running.id, dead.id]
      const before = await Promise.all(ids.map((id) => picture(raw, id)))
      const stats = await hf.stats()

      await harness().restart()
      const again = await harness().connect()
      const rawAgain = await harness().raw()
      expect(await Promise.all(ids.map((id) => picture(rawAgain, id)))).toEqual(before)
      expect((await again.stats()).counts).toEqual(stats.counts)
      expect(await claim(rawAgain, { limit: 10 })).toEqual([])
      await again.resume('default')
      expect((await claim(rawAgain, { limit: 10 })).map(({ id }) => id)).toEqual([queued.id])
      // A lease belongs to its token, not to a connection.
      expect(await settle(rawAgain, complete(lease))).toBe('applied')
      await harness().advance(3_600_001)
      const due = (await claim(rawAgain, { limit: 10 })).map(({ id }) => id)
      expect(new Set(due)).toEqual(new Set([retrying.id, scheduled.id]))
    })

    it('119 ids, order and lease epochs go on where they were', async () => {
      const raw = await harness().raw()
      const first = await put(raw)
      const lease = await claimOne(raw)
      await settle(raw, {
        kind: 'release',
        id: lease.id,
        token: lease.token,
        durationMs: 0,
        keepMs: null,
        started: true,
      })
      const second = await put(raw)
      await harness().restart()
      await harness().advance(-60_000)
      const again = await harness().raw()
      const third = await put(again, { runAt: second.runAt ?? Math.floor(harness().now()) })
      expect(third.id > second.id).toBe(true)
      await harness().advance(120_000)
      const jobs = await claim(again, { limit: 10 })
      expect(new Set(jobs.map(({ id }) => id))).toEqual(new Set([first.id, second.id, third.id]))
      const regrant = jobs.find(({ id }) => id === first.id)
      expect(Number(regrant?.token.split(':')[0])).toBeGreaterThan(Number(lease.token.split(':')[0]))
      expect(
        (await again.call('job.list', { lane: null, states: null, type: null, limit: 10, cursor: null })).jobs.map(
          ({ id }) => id,
        ),
      ).toEqual([third.id, second.id, first.id])
    })
  })
}
