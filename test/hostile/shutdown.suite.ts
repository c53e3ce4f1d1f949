/** Stopping and closing at awkward moments: twice, during a start, in the middle of a run; every promise settles. */
import { defineJob, handle, inThread } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { SuiteContext } from '../conformance/harness.ts'
import { codeOf, eventually, gate, within } from '../support/event.ts'

const task = defineJob<unknown>('task')
const noop = inThread(task, new URL('../support/handlers/noop.mjs', import.meta.url))

export function shutdownSuite({ harness }: SuiteContext): void {
  describe('shutdown', () => {
    it('a closed client makes no worker', async () => {
      const hf = await harness().connect()
      await hf.close()
      const handlers = [handle(task, () => 1)]
      expect(await within(codeOf(hf.worker({ handlers })), 'worker')).toBe('CLOSED')
      expect(await within(codeOf(hf.runUntilEmpty({ handlers })), 'runUntilEmpty')).toBe('CLOSED')
    })

    it('a client closed while its worker starts leaves no worker behind', async () => {
      for (const handler of [handle(task, () => 1), noop]) {
        const hf = await harness().connect()
        const starting = codeOf(hf.worker({ handlers: [handler] }))
        await within(hf.close(), 'close')
        expect(await within(starting, 'worker')).toBe('CLOSED')
        expect((await hf.health()).claiming.workers).toBe(0)
      }
    })

    it('runUntilEmpty ends when its client is closed', async () => {
      const hf = await harness().connect()
      const begun = gate()
      const end = gate()
      await hf.enqueueMany(Array.from({ length: 5 }, () => ({ job: task, input: 1 })))
      const handler = handle(task, async () => {
        begun.open()
        await end.passed
      })
      const running = codeOf(hf.runUntilEmpty({ handlers: [handler], concurrency: 1 }))
      await within(begun.passed, 'a handler runs')
      const closing = hf.close()
      end.open()
      expect(await within(running, 'runUntilEmpty')).toBe('CLOSED')
      await closing
    })

    it('every close resolves when the store is closed', async () => {
      const hf = await harness().connect()
      const end = gate()
      const begun = gate()
      const handler = handle(task, async () => {
        begun.open()
        await end.passed
      })
      await harness().worker(hf, { handlers: [handler] })
      await hf.enqueue(task, 1)
      await within(begun.passed, 'the handler runs')
      let closed = 0
      const both = [hf.close(), hf.close()].map(async (each) => {
        await each
        closed += 1
      })
      await new Promise(setImmediate)
      expect(closed).toBe(0)
      end.open()
      await within(Promise.all(both), 'both')
    })

    it('a worker that stops is hurried by a second stop with less patience', async () => {
      const hf = await harness().connect()
      const begun = gate()
      const handler = handle(task, async (_, { signal }) => {
        begun.open()
        await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      })
      const worker = await harness().worker(hf, { handlers: [handler] })
      const job = await hf.enqueue(task, 1)
      await within(begun.passed, 'the handler runs')
      const patient = worker.stop({ deadline: '1h' })
      await within(worker.stop({ deadline: 1 }), 'the second stop')
      await within(patient, 'the first stop')
      expect(await hf.get(job.id)).toMatchObject({ state: 'queued', attempts: 0 })
    })

    it('removeSlot resolves though a slot is added while it waits', async () => {
      const hf = await harness().connect()
      const end = gate()
      const worker = await harness().worker(hf, { handlers: [handle(task, () => end.passed)], concurrency: 2 })
      await hf.enqueueMany(Array.from({ length: 2 }, () => ({ job: task, input: 1 })))
      await eventually(() => worker.activeJobs === 2, 'all slots are used')
      const removed = worker.removeSlot()
      worker.addSlot()
      await within(removed, 'removeSlot')
      expect(worker.concurrency).toBe(2)
      end.open()
    })
  })
}
