/** Stopping and closing at awkward moments: twice, during a start, in the middle of a run; every promise settles. */
import { defineJob, HoldfastError, handle, inThread } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { Backend } from '#dist/src/backends/backend.js'
import type { SuiteContext } from '../conformance/harness.ts'
import { codeOf, eventually, gate, within } from '../support/event.ts'
import { over } from '../support/faulty-backend.ts'

const task = defineJob<unknown>('task')
const noop = inThread(task, new URL('../support/handlers/noop.mjs', import.meta.url))

/** The turns of a store that is away: they are lost `before` they reach it, or their answers are `after`. */
function flaky(where: 'before' | 'after') {
  let isCut = false
  const counts = { lost: 0, answered: 0, granted: 0 }
  const outcome = where === 'before' ? 'notDone' : 'unknown'
  const away = () => new HoldfastError('STORE_UNAVAILABLE', 'the store is away', { details: { outcome } })
  const wrap = (backend: Backend): Backend =>
    over(backend, {
      call: async (type, request) => {
        if (type !== 'job.turn') return backend.call(type, request)
        if (isCut && where === 'before') {
          counts.lost += 1
          throw away()
        }
        const reply = await backend.call(type, request)
        counts.answered += 1
        if ('grants' in reply) counts.granted += reply.grants.reduce((sum, { jobs }) => sum + jobs.length, 0)
        if (!isCut) return reply
        counts.lost += 1
        throw away()
      },
    })
  return {
    wrap,
    cut: () => {
      isCut = true
    },
    mend: () => {
      isCut = false
      counts.answered = 0
    },
    lost: () => counts.lost,
    answered: () => counts.answered,
    granted: () => counts.granted,
  }
}

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

    it('close ends handlers at its deadline, and gives their jobs back; a later call may hurry an earlier one', async () => {
      const hf = await harness().connect()
      const begun = gate()
      const handler = handle(task, () => {
        begun.open()
        return new Promise(() => {})
      })
      const job = await hf.enqueue(task, 1)
      await hf.worker({ handlers: [handler], killGrace: 20 })
      await within(begun.passed, 'it runs')
      await expect(hf.close({ deadline: 'soon' as never })).rejects.toMatchObject({ code: 'INVALID_DURATION' })
      const patient = hf.close({ deadline: '10m' })
      await within(hf.close({ deadline: 0 }), 'close')
      await within(patient, 'the first close')
      const other = await harness().connect()
      expect(await other.get(job.id)).toMatchObject({ state: 'queued', attempts: 0 })
    })

    it('a worker that was stopped has no slots to give or take', async () => {
      const hf = await harness().connect()
      const worker = await hf.worker({ handlers: [handle(task, () => 1)] })
      await worker.stop()
      expect(() => worker.addSlot()).toThrow(/stopped/)
      await expect(worker.removeSlot()).rejects.toMatchObject({ code: 'CLOSED' })
    })

    it('a worker that has stopped claims nothing when a store that was away is back', async () => {
      const link = flaky('before')
      const hf = await harness().connect({ wrap: link.wrap })
      const worker = await hf.worker({ handlers: [handle(task, () => 1)], lease: '10m', poll: 20 })
      link.cut()
      await eventually(() => link.lost() > 1, 'a claim is repeated')
      await within(worker.stop({ deadline: 0 }), 'stop')
      const other = await harness().connect()
      const job = await other.enqueue(task, 1)
      link.mend()
      await eventually(() => link.answered() > 0, 'the claim gets through after all')
      await within(hf.close(), 'close')
      expect(await other.get(job.id)).toMatchObject({ state: 'queued', attempts: 0 })
      expect(link.granted()).toBe(0)
    })

    it('what an answer brings to a worker that has stopped goes back at once, uncharged', async () => {
      const link = flaky('after')
      const hf = await harness().connect({ wrap: link.wrap })
      const worker = await hf.worker({ handlers: [handle(task, () => 1)], lease: '10m', poll: 20 })
      link.cut()
      const job = await hf.enqueue(task, 1)
      await eventually(async () => (await hf.get(job.id))?.state === 'running', 'a claim whose answer is lost has it')
      await within(worker.stop({ deadline: 0 }), 'stop')
      link.mend()
      await eventually(async () => (await hf.get(job.id))?.state === 'queued', 'it is back')
      expect(await hf.get(job.id)).toMatchObject({ attempts: 0 })
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
