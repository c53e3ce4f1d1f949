/** Workers as a whole: concurrency, readiness, life without hints. Assertions 118, 122, 125. */
import { defineJob, handle, inThread } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { codeOf, eventually, gate, within } from '../support/event.ts'
import { tellingEmptyClaims } from '../support/faulty-backend.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')
const module = (name: string) => new URL(`../support/handlers/${name}`, import.meta.url)

export function workerSuite({ harness }: SuiteContext): void {
  describe('worker', () => {
    it('118 without any hint every job ends within poll and run time', async () => {
      const pollMs = 200
      const hf = await harness().connect({ hints: false })
      const producer = await harness().connect()
      const worker = await harness().worker(hf, { handlers: [handle(task, (n) => n)], poll: pollMs })
      const tookMs: number[] = []
      for (let n = 0; n < 5; n += 1) {
        await eventually(() => worker.activeJobs === 0, 'the worker is idle')
        const startedAt = performance.now()
        const job = await producer.enqueue(task, n)
        expect(await job.result({ timeout: '5s' })).toBe(n)
        tookMs.push(performance.now() - startedAt)
      }
      // The poll has a jitter of a fifth; the rest is slack for a busy machine.
      expect(Math.max(...tookMs)).toBeLessThan(pollMs * 1.2 + 1_500)
    })

    it('118 a delayed job needs no hint either', async () => {
      const hf = await harness().connect({ hints: false })
      const job = await hf.enqueue(task, 'x', { delay: 120 })
      const before = harness().now()
      await harness().worker(hf, { handlers: [handle(task, (x) => x)], poll: '10m' })
      expect(await job.result()).toBe('x')
      expect(harness().now() - before).toBeGreaterThanOrEqual(100)
    })

    it('122 no more handlers run at once than the worker has slots, and all slots are used', async () => {
      const hf = await harness().connect()
      let running = 0
      let most = 0
      const full = gate()
      const handler = handle(task, async () => {
        running += 1
        most = Math.max(most, running)
        if (running === 3) full.open()
        await full.passed
        await new Promise(setImmediate)
        running -= 1
      })
      const jobs = await hf.enqueueMany(Array.from({ length: 60 }, (_, n) => ({ job: task, input: n })))
      const worker = await harness().worker(hf, { handlers: [handler], concurrency: 3 })
      expect(worker.concurrency).toBe(3)
      await Promise.all(jobs.map((job) => job.result()))
      expect(most).toBe(3)
    })

    it('122 one slow handler does not hold up the others', async () => {
      const hf = await harness().connect()
      const end = gate()
      const handler = handle(task, async (input) => {
        if (input === 'slow') await end.passed
        return input
      })
      const slow = await hf.enqueue(task, 'slow', { priority: 9 })
      const fast = await hf.enqueueMany(Array.from({ length: 50 }, (_, n) => ({ job: task, input: n })))
      const worker = await harness().worker(hf, { handlers: [handler], concurrency: 2 })
      await Promise.all(fast.map((job) => job.result()))
      expect(worker.activeJobs).toBe(1)
      expect((await hf.get(slow.id))?.state).toBe('running')
      end.open()
      expect(await slow.result()).toBe('slow')
    })

    it('125 a worker that has started hears of the very next job', async () => {
      const hf = await harness().connect()
      const producer = await harness().connect()
      for (let round = 0; round < 5; round += 1) {
        // With polls this far apart only its first claim or a hint can bring the job.
        const lane = `lane-${round}`
        await harness().worker(hf, { handlers: [handle(task, (x) => x)], lanes: [lane], poll: '10m' })
        const job = await producer.enqueue(task, round, { queue: lane })
        expect(await job.result({ timeout: '8s' })).toBe(round)
      }
    })

    it('125 an idle worker hears of every job', async () => {
      let idle = gate()
      const hf = await harness().connect({ wrap: (backend) => tellingEmptyClaims(backend, () => idle.open()) })
      const producer = await harness().connect()
      await harness().worker(hf, { handlers: [handle(task, (x) => x)], poll: '10m' })
      for (let round = 0; round < 5; round += 1) {
        await within(idle.passed, 'an empty claim')
        const job = await producer.enqueue(task, round)
        expect(await job.result({ timeout: '8s' })).toBe(round)
        idle = gate()
        // The claim that went with the settlement may have been answered already.
        if (round < 4) await producer.enqueue(task, 'between')
      }
    })

    it('125 a worker whose thread modules do not load never starts', async () => {
      const hf = await harness().connect()
      const job = await hf.enqueue(task, 1)
      for (const name of ['load-throws.mjs', 'load-missing-default.mjs', 'no-such-file.mjs']) {
        const handlers = [inThread(task, module(name))]
        expect(await codeOf(harness().worker(hf, { handlers }))).toBe('HANDLER_MODULE_INVALID')
      }
      expect(await hf.get(job.id)).toMatchObject({ state: 'queued', attempts: 0 })
      expect((await hf.health()).claiming.workers).toBe(0)
    })

    it('125 two workers of one client do not share an id; one may be used again when its worker has stopped', async () => {
      const hf = await harness().connect()
      const options = { handlers: [handle(task, () => 1)], id: 'the-one' }
      const first = await harness().worker(hf, options)
      await expect(hf.worker(options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'id' } })
      await first.stop()
      const second = await harness().worker(hf, options)
      expect(second.id).toBe('the-one')
    })

    it('125 a listener for an event that there is not is refused', async () => {
      const hf = await harness().connect()
      const worker = await harness().worker(hf, { handlers: [handle(task, () => 1)] })
      for (const listen of ['on', 'once'] as const) {
        expect(() => worker[listen]('complete' as 'completed', () => undefined)).toThrow(
          /event: expected one of completed/,
        )
        expect(() => worker[listen]('completed', 3 as never)).toThrow(/listener: expected a function/)
      }
    })

    it('125 wrong options are refused before anything starts', async () => {
      const hf = await harness().connect()
      const handlers = [handle(task, () => 1)]
      for (const [options, code] of [
        [{ handlers: [] }, 'INVALID_ARGUMENT'],
        [{ handlers: [...handlers, ...handlers] }, 'DUPLICATE_HANDLER'],
        [{ handlers, concurrency: 0 }, 'INVALID_ARGUMENT'],
        [{ handlers, lanes: [] }, 'INVALID_ARGUMENT'],
        [{ handlers, lease: 5 }, 'INVALID_ARGUMENT'],
        [{ handlers, id: 'a:b' }, 'INVALID_NAME'],
        [{ handlers, concurency: 2 }, 'INVALID_ARGUMENT'],
      ] as const) {
        expect([options, await codeOf(hf.worker(options as { handlers: typeof handlers }))]).toEqual([options, code])
      }
      expect((await hf.health()).claiming.workers).toBe(0)
    })
  })
}
