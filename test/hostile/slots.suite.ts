/**
 * Slots that cannot be freed, as a worker and its client tell of them, and handlers in processes of their own: native calls, threads that
 * run out of memory, handlers that ignore their signal. F5, F7, F46, F47; C002, C027, C126.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  defineJob,
  type Handler,
  type Holdfast,
  handle,
  inThread,
  retry,
  type Worker,
  type WorkerOptions,
} from 'holdfast'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { SuiteContext } from '../conformance/harness.ts'
import { eventsOf, eventually, gate, nextEvent, within } from '../support/event.ts'
import { killPid, killWritten, writtenPid } from '../support/pid-file.ts'

const MODULE = new URL('../support/handlers/conformance.mjs', import.meta.url)
const isolated = defineJob<unknown>('isolated', { queue: 'mixed', retry: retry.none() })

export function slotsSuite({ harness }: SuiteContext): void {
  describe('slots', () => {
    let hf: Holdfast
    let folder: string
    beforeEach(async () => {
      folder = mkdtempSync(join(tmpdir(), 'holdfast-slots-'))
      hf = await harness().connect()
    })
    afterEach(() => rmSync(folder, { recursive: true, force: true }))

    const start = (handlers: readonly Handler[], options: Partial<WorkerOptions> = {}): Promise<Worker> =>
      harness().worker(hf, { handlers, ...options })

    /** Starts a job that sleeps in a native call, and gives back what can be killed to wake it. */
    async function sleeper(name: string, timeout: number): Promise<{ id: string; wake: () => void }> {
      const file = join(folder, name)
      const { id } = await hf.enqueue(isolated, { act: 'sleep', file, seconds: 120 }, { timeout })
      const pid = await writtenPid(file)
      return { id, wake: () => killPid(pid) }
    }

    describe('F7 threads in native calls', () => {
      it('are replaced, up to as many as there are slots; then nothing is claimed until one of them ends', async () => {
        const worker = await start([inThread(isolated, MODULE)], { concurrency: 2 })
        const [lost, recovered] = [eventsOf(worker, 'slotLost'), eventsOf(worker, 'slotRecovered')]
        const first = await sleeper('first', 100)
        await eventually(() => worker.lostSlots === 1, 'a slot is lost')
        expect(lost).toEqual([
          { jobId: first.id, type: 'isolated', attempt: 1, where: 'thread', workerId: worker.id, lostSlots: 1 },
        ])
        await eventually(async () => (await hf.get(first.id))?.state === 'dlq', 'the attempt is over')
        expect((await hf.get(first.id))?.lastFailure).toMatchObject({ code: 'TIMEOUT' })
        expect((await hf.health()).claiming).toMatchObject({ ok: true, lostSlots: 1 })
        const others = await Promise.all([1, 2, 3].map((value) => hf.enqueue(isolated, { act: 'echo', value })))
        expect(await Promise.all(others.map((job) => job.result()))).toEqual([1, 2, 3])

        const second = await sleeper('second', 100)
        await eventually(() => worker.lostSlots === 2, 'both slots are lost')
        expect(await hf.health()).toMatchObject({ ok: false, claiming: { ok: false, workers: 0, lostSlots: 2 } })
        const waiting = await hf.enqueue(isolated, { act: 'echo', value: 'at last' })
        // Every worker that may claim has looked by the time that another of the same store has done it.
        const witness = await start([handle(defineJob('witness', { queue: 'apart' }), () => 'seen')])
        expect(await (await hf.enqueue('witness', null, { queue: 'apart' })).result()).toBe('seen')
        await witness.stop()
        expect(await hf.get(waiting.id)).toMatchObject({ state: 'queued', attempts: 0 })

        first.wake()
        expect(await waiting.result()).toBe('at last')
        second.wake()
        await eventually(() => worker.lostSlots === 0, 'all are back')
        expect(recovered.map(({ jobId }) => jobId)).toEqual([first.id, second.id])
        expect((await hf.health()).ok).toBe(true)
      })
    })

    it('F7 runUntilEmpty gives up when its slots are lost, and does not wait for what never ends', async () => {
      const options = { timeout: 100, maxAttempts: 1 }
      const files = [1, 2, 3, 4].map((n) => join(folder, `stuck${n}`))
      const inputs = files.map((file) => ({ act: 'sleep', file, seconds: 120 }))
      await hf.enqueueMany(inputs.map((input) => ({ job: isolated, input, options })))
      try {
        const running = hf.runUntilEmpty({ handlers: [inThread(isolated, MODULE)], concurrency: 2, killGrace: 50 })
        const refusal = { code: 'INTERNAL', message: expect.stringMatching(/cannot be ended/) }
        await expect(within(running, 'it gives up')).rejects.toMatchObject(refusal)
        // The slot of the first that was lost may have been used once more before the second was.
        expect((await hf.stats()).counts.queued).toBeGreaterThan(0)
      } finally {
        killWritten(files)
      }
    })

    describe('F5 F7 a process', () => {
      it('is killed in a native call after its grace, and no slot is lost', async () => {
        const worker = await start([inThread(isolated, MODULE, { isolation: 'process' })], { concurrency: 1 })
        const lost = eventsOf(worker, 'slotLost')
        const { id } = await sleeper('one', 300)
        const next = await hf.enqueue(isolated, { act: 'echo', value: 'next' })
        expect(await next.result()).toBe('next')
        expect(await hf.get(id)).toMatchObject({ state: 'dlq', lastFailure: { code: 'TIMEOUT' } })
        expect(lost).toEqual([])
      })

      it('123 is a slot that comes and goes', async () => {
        const worker = await start([inThread(isolated, MODULE, { isolation: 'process' })], { concurrency: 1 })
        const jobs = await Promise.all([1, 2].map(() => hf.enqueue(isolated, { act: 'untilAborted' })))
        const begun = async () => {
          const records = await Promise.all(jobs.map(({ id }) => hf.get(id)))
          return records.filter((record) => record?.progress === 'begun').map((record) => record?.id ?? '')
        }
        await eventually(async () => (await begun()).length === 1, 'one runs')
        worker.addSlot()
        await eventually(async () => (await begun()).length === 2, 'both run')
        const removed = worker.removeSlot()
        for (const { id } of jobs) await hf.cancel(id)
        expect(await within(removed, 'removeSlot')).toBe(1)
      })

      it('124 in an endless loop is ended with its worker, and the job goes back', async () => {
        const worker = await start([inThread(isolated, MODULE, { isolation: 'process' })])
        const job = await hf.enqueue(isolated, { act: 'loopBeginning' })
        await eventually(async () => (await hf.get(job.id))?.progress === 'begun', 'it loops')
        await within(worker.stop({ deadline: 0 }), 'stop')
        expect(await hf.get(job.id)).toMatchObject({ state: 'queued', attempts: 0 })
      })
    })

    describe('F46 F47 an inline handler that ignores its signal', () => {
      it('loses its slot, which is used again at once, and its outcome is refused when it comes', async () => {
        const deaf = defineJob<unknown>('deaf', { timeout: 40, retry: retry.none() })
        const end = gate()
        const worker = await start([handle(deaf, () => end.passed)], { concurrency: 1 })
        const lost = eventsOf(worker, 'slotLost')
        const jobs = await Promise.all([1, 2, 3].map(() => hf.enqueue(deaf, null)))
        for (const job of jobs) await expect(job.result()).rejects.toMatchObject({ code: 'JOB_DEAD' })
        expect([worker.lostSlots, lost.map(({ where }) => where)]).toEqual([3, ['inline', 'inline', 'inline']])
        // They hold memory and no thread: the worker goes on.
        expect((await hf.health()).claiming).toMatchObject({ ok: true, lostSlots: 3 })
        end.open()
        await eventually(() => worker.lostSlots === 0, 'all have ended')
        for (const { id } of jobs) expect(await hf.get(id)).toMatchObject({ state: 'dlq', attempts: 1 })
      })
    })

    it('C027 a signal that reaches fetch ends it with the reason: timeout, cancellation, shutdown', async () => {
      const server = createServer(() => {}).listen(0, '127.0.0.1')
      await new Promise((resolve) => server.once('listening', resolve))
      const { port } = server.address() as AddressInfo
      try {
        const asks = defineJob<string>('asks', { retry: retry.none() })
        const begun = new Map(['timeout', 'cancel', 'shutdown'].map((why) => [why, gate()]))
        const seen: string[] = []
        const handler = handle(asks, async (why, { signal }) => {
          const asked = fetch(`http://127.0.0.1:${port}/`, { signal })
          begun.get(why)?.open()
          await asked.catch((error) => {
            seen.push(`${why} ${error.code}`)
            throw error
          })
        })
        const worker = await start([handler])
        const slow = await hf.enqueue(asks, 'timeout', { timeout: 50 })
        await expect(slow.result()).rejects.toMatchObject({ code: 'JOB_DEAD' })
        const unwanted = await hf.enqueue(asks, 'cancel')
        await within(begun.get('cancel')?.passed ?? Promise.resolve(), 'it asks')
        const cancelled = nextEvent(worker, 'cancelled')
        await hf.cancel(unwanted.id)
        await cancelled
        const left = await hf.enqueue(asks, 'shutdown')
        await within(begun.get('shutdown')?.passed ?? Promise.resolve(), 'it asks')
        await within(worker.stop({ deadline: 0 }), 'stop')
        expect(seen).toEqual(['timeout TIMEOUT', 'cancel JOB_CANCELLED', 'shutdown SHUTTING_DOWN'])
        expect((await hf.get(slow.id))?.lastFailure).toMatchObject({ code: 'TIMEOUT' })
        expect((await hf.get(unwanted.id))?.lastFailure).toMatchObject({ code: 'CANCELLED' })
        expect(await hf.get(left.id)).toMatchObject({ state: 'queued', attempts: 0 })
      } finally {
        server.closeAllConnections()
        server.close()
      }
    })

    it('C002 a thread that computes for many leases keeps its own, while inline jobs go on', async () => {
      const inline = defineJob<number, number>('inline', { queue: 'mixed' })
      const worker = await start([inThread(isolated, MODULE), handle(inline, async (n) => n)], {
        lease: 800,
        concurrency: 3,
      })
      const lost = eventsOf(worker, 'lost')
      const spin = await hf.enqueue(isolated, { act: 'spin', ms: 3_200 })
      const beside = await hf.enqueueMany(Array.from({ length: 20 }, (_, n) => ({ job: inline, input: n })))
      expect(await Promise.all(beside.map((job) => job.result()))).toEqual(Array.from({ length: 20 }, (_, n) => n))
      expect(await spin.result()).toBe('spun')
      expect(await hf.attempts(spin.id)).toMatchObject([{ attempt: 1, outcome: 'succeeded' }])
      expect(lost).toEqual([])
    })

    it('C126 F5 a thread that runs out of memory fails its attempt by name, and its neighbours end', async () => {
      const worker = await start([inThread(isolated, MODULE, { maxHeapMb: 32 })], { concurrency: 2 })
      const greedy = await hf.enqueue(isolated, { act: 'fillHeap' }, { retry: retry.immediate(2) })
      const others = await Promise.all(
        Array.from({ length: 10 }, (_, value) => hf.enqueue(isolated, { act: 'echo', value })),
      )
      expect(await Promise.all(others.map((job) => job.result()))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
      await expect(greedy.result()).rejects.toMatchObject({ code: 'JOB_DEAD' })
      const attempts = await hf.attempts(greedy.id)
      expect(attempts).toMatchObject([{ outcome: 'crashed' }, { outcome: 'crashed' }])
      for (const { failure } of attempts) expect(failure?.message).toMatch(/out of memory.*maxHeapMb is 32/)
      expect(worker.lostSlots).toBe(0)
    })
  })
}
