/** Workers that get more and fewer slots, and workers that stop. Assertions 123, 124. */
import { defineJob, type HoldfastError, handle, inThread, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { eventually, gate, within } from '../support/event.ts'
import { over } from '../support/faulty-backend.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')
const THREAD_MODULE = new URL('../support/handlers/conformance.mjs', import.meta.url)
/** No lease runs out within a test: what comes back was given back. */
const LEASE = '10m'

export function stopSuite({ harness }: SuiteContext): void {
  describe('stop', () => {
    it('123 a slot that is added takes a job at once; one that is removed is waited for; the last one stays', async () => {
      const hf = await harness().connect()
      const ends = new Map(['a', 'b', 'c'].map((name) => [name, gate()]))
      const begun: unknown[] = []
      const handler = handle(task, async (name) => {
        begun.push(name)
        await ends.get(String(name))?.passed
      })
      const worker = await harness().worker(hf, { handlers: [handler], concurrency: 1, prefetch: 0 })
      for (const name of ['a', 'b', 'c']) await hf.enqueue(task, name)
      await eventually(() => begun.length === 1, 'one runs')
      expect(worker.addSlot()).toBe(2)
      await eventually(() => begun.length === 2, 'two run')
      let isRemoved = false
      const removed = worker.removeSlot().then((slots) => {
        isRemoved = true
        return slots
      })
      await new Promise(setImmediate)
      expect([isRemoved, worker.concurrency, worker.activeJobs]).toEqual([false, 1, 2])
      ends.get('b')?.open()
      expect(await within(removed, 'removeSlot')).toBe(1)
      expect(begun).toEqual(['a', 'b'])
      expect(await worker.removeSlot()).toBe(1)
      ends.get('a')?.open()
      await eventually(() => begun.length === 3, 'the third runs')
      ends.get('c')?.open()
    })

    it('123 a slot is a thread where the handler runs in one', async () => {
      const hf = await harness().connect()
      const contract = defineJob<unknown>('isolated')
      const handlers = [inThread(contract, THREAD_MODULE)]
      const worker = await harness().worker(hf, { handlers, concurrency: 1 })
      const enqueue = () => hf.enqueue(contract, { act: 'untilAborted' }, { retry: retry.none() })
      const hasBegun = (id: string) => eventually(async () => (await hf.get(id))?.progress === 'begun', 'it began')
      const [first, second, third] = [await enqueue(), await enqueue(), await enqueue()]
      await hasBegun(first.id)
      worker.addSlot()
      await hasBegun(second.id)
      const removed = worker.removeSlot()
      await hf.cancel(second.id)
      expect(await within(removed, 'removeSlot')).toBe(1)
      expect(await hf.get(third.id)).toMatchObject({ state: 'queued', progress: null })
      await hf.cancel(first.id)
      await hasBegun(third.id)
      await hf.cancel(third.id)
    })

    it('124 nothing is claimed after the call, and what ends by itself is stored', async () => {
      let claims = 0
      const hf = await harness().connect({
        wrap: (backend) =>
          over(backend, {
            call: (type, request) => {
              if ('claims' in request) claims += request.claims.filter(({ limit }) => limit > 0).length
              return backend.call(type, request)
            },
          }),
      })
      const [begun, end] = [gate(), gate()]
      const handler = handle(task, async () => {
        begun.open()
        await end.passed
        return 'ended'
      })
      const worker = await harness().worker(hf, { handlers: [handler], concurrency: 1, prefetch: 0, lease: LEASE })
      const [first, ...rest] = await hf.enqueueMany(Array.from({ length: 4 }, (_, n) => ({ job: task, input: n })))
      await within(begun.passed, 'the first runs')
      const stopped = worker.stop({ deadline: '1h' })
      const before = claims
      await hf.enqueue(task, 'after the call')
      end.open()
      await within(stopped, 'stop')
      expect(claims).toBe(before)
      expect(await first?.result()).toBe('ended')
      for (const { id } of rest) expect(await hf.get(id)).toMatchObject({ state: 'queued', attempts: 0 })
    })

    it('124 what has not ended at the deadline is given back at once, uncharged, and runs elsewhere', async () => {
      const hf = await harness().connect()
      const begun = gate()
      const reasons: HoldfastError[] = []
      const job = await hf.enqueue(task, 'long', { retry: retry.none() })
      const polite = handle(task, async (_input, { signal }) => {
        begun.open()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        reasons.push(signal.reason)
        throw signal.reason
      })
      const first = await harness().worker(hf, { handlers: [polite], lease: LEASE })
      await within(begun.passed, 'it runs')
      await within(first.stop({ deadline: 20 }), 'stop')
      expect(reasons.map(({ code }) => code)).toEqual(['SHUTTING_DOWN'])
      expect(await hf.get(job.id)).toMatchObject({ state: 'queued', attempts: 0, leaseExpiresAt: null })
      // C028: another worker of the same client, which has stopped one already.
      await harness().worker(hf, { handlers: [handle(task, () => 'of the second')] })
      expect(await job.result()).toBe('of the second')
      expect(await hf.get(job.id)).toMatchObject({ state: 'completed', attempts: 1 })
    })

    it('124 a handler that ignores its signal is given up after the grace, and what it returns later is refused', async () => {
      const hf = await harness().connect()
      const [begun, end, ended] = [gate(), gate(), gate<string>()]
      const job = await hf.enqueue(task, 'deaf', { retry: retry.none() })
      const deaf = handle(task, async (_input, ctx) => {
        begun.open()
        await end.passed
        const refused = await ctx.progress('late').then(
          () => 'stored',
          ({ code }) => code,
        )
        ended.open(refused)
        return 'of the deaf one'
      })
      const first = await harness().worker(hf, { handlers: [deaf], lease: LEASE })
      await within(begun.passed, 'it runs')
      await within(first.stop({ deadline: 0 }), 'stop')
      expect([first.lostSlots, first.activeJobs]).toEqual([1, 0])
      await harness().worker(hf, { handlers: [handle(task, () => 'of the second')] })
      expect(await job.result()).toBe('of the second')
      end.open()
      expect(await within(ended.passed, 'the deaf one ends')).toBe('LEASE_LOST')
      await eventually(() => first.lostSlots === 0, 'its slot is back')
      expect(await hf.get(job.id)).toMatchObject({ state: 'completed', output: 'of the second', progress: null })
    })

    it('124 a thread in an endless loop is ended with its worker, which costs the job nothing', async () => {
      const hf = await harness().connect()
      const contract = defineJob<unknown>('isolated')
      const handlers = [inThread(contract, THREAD_MODULE)]
      const job = await hf.enqueue(contract, { act: 'loopBeginning' }, { retry: retry.none() })
      const first = await harness().worker(hf, { handlers, lease: LEASE })
      await eventually(async () => (await hf.get(job.id))?.progress === 'begun', 'it loops')
      await within(first.stop({ deadline: 0 }), 'stop')
      expect(await hf.get(job.id)).toMatchObject({ state: 'queued', attempts: 0 })
      const second = handle(contract, () => 'of the second')
      await harness().worker(hf, { handlers: [second] })
      expect(await job.result()).toBe('of the second')
    })
  })
}
