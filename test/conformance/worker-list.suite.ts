/** Which workers there are: heard of every few seconds by the store's clock, and nothing but answers depends on it. Assertion 128. */
import { defineJob, type Holdfast, handle, type WorkerInfo } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { Backend } from '#dist/src/backends/backend.js'
import { HoldfastError } from '#dist/src/errors.js'
import { eventually, gate } from '../support/event.ts'
import { over } from '../support/faulty-backend.ts'
import { announce, beatOf } from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')
const FORGET_MS = 300_000

const idsOf = async (hf: Holdfast): Promise<readonly string[]> => (await hf.workers()).map(({ id }) => id).sort()

const find = (hf: Holdfast, id: string): Promise<WorkerInfo> =>
  eventually(async () => (await hf.workers()).find((worker) => worker.id === id), `the worker ${id}`)

/** The store, but for beats, which it never takes. */
const deaf = (backend: Backend): Backend =>
  over(backend, {
    call: (type, request) =>
      type === 'worker.beat'
        ? Promise.reject(new HoldfastError('STORE_DENIED', 'no beats here', { details: { outcome: 'refused' } }))
        : backend.call(type, request),
  })

export function workerListSuite({ harness }: SuiteContext): void {
  describe('the list of workers', () => {
    it('128 a worker is in it with what it does, until it has stopped', async () => {
      const hf = await harness().connect()
      const other = await harness().connect()
      expect(await hf.workers()).toEqual([])
      const worker = await harness().worker(hf, {
        handlers: [handle(task, () => {}), handle(defineJob('second'), () => {})],
        lanes: ['default', 'mail'],
        concurrency: 2,
        id: 'one',
      })
      const seen = await find(other, 'one')
      expect(seen).toMatchObject({
        lanes: ['default', 'mail'],
        types: ['task', 'second'],
        concurrency: 2,
        running: 0,
        isAlive: true,
        isStopping: false,
        pid: process.pid,
        nodeVersion: process.versions.node,
      })
      expect(seen.version).toMatch(/^\d+\.\d+\.\d+/)
      expect(seen.host).not.toBe('')
      expect(Math.abs(seen.startedAt - harness().now())).toBeLessThan(30_000)
      await worker.stop()
      expect(await other.workers()).toEqual([])
    })

    it('128 one that drains is known until it has, also when it started a moment ago', async () => {
      const hf = await harness().connect()
      const [started, held] = [gate(), gate()]
      const handler = handle(task, async () => {
        started.open()
        await held.passed
      })
      const worker = await harness().worker(hf, { handlers: [handler], id: 'drains' })
      await hf.enqueue(task, null)
      await started.passed
      await find(hf, 'drains')
      const stopped = worker.stop()
      expect(await idsOf(hf)).toEqual(['drains'])
      held.open()
      await stopped
      expect(await hf.workers()).toEqual([])
      const brief = await harness().worker(hf, { handlers: [handler], id: 'brief' })
      await brief.stop()
      expect(await hf.workers()).toEqual([])
    })

    it('128 one that is not heard of for 15 s counts as dead, and after 5 minutes nothing is left of it', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      await announce(raw, [beatOf('dies'), beatOf('lives')])
      await harness().advance(14_000)
      await announce(raw, [beatOf('lives', { running: 2, upMs: 74_000 })])
      expect((await find(hf, 'dies')).isAlive).toBe(true)
      await harness().advance(2_000)
      const [first, second] = await hf.workers()
      expect(first).toMatchObject({ id: 'lives', isAlive: true, running: 2 })
      expect(second).toMatchObject({ id: 'dies', isAlive: false, running: 1 })
      expect(second?.lastBeatMs).toBeGreaterThanOrEqual(16_000)
      expect(Math.abs((first?.startedAt ?? 0) - (second?.startedAt ?? 0))).toBeLessThan(5_000)
      await harness().advance(FORGET_MS - 15_000)
      expect(await idsOf(hf)).toEqual(['lives'])
      await announce(raw, [beatOf('lives')])
      await harness().advance(-FORGET_MS)
      // The record itself is gone, not only too old to be shown.
      expect(await idsOf(hf)).toEqual(['lives'])
    })

    it('128 a beat again and one that says goodbye are of the same worker; namespaces share none', async () => {
      const [hf, other] = [await harness().connect(), await harness().connect({ namespace: 'b' })]
      const raw = await harness().raw()
      await announce(raw, [beatOf('a'), beatOf('b')])
      await announce(raw, [beatOf('a'), beatOf('c', { lanes: ['x'], types: ['t.ü "quoted"\\'], moreTypes: 3 })])
      expect(await idsOf(hf)).toEqual(['a', 'b', 'c'])
      expect(await find(hf, 'c')).toMatchObject({ lanes: ['x'], types: ['t.ü "quoted"\\'], moreTypes: 3 })
      expect(await other.workers()).toEqual([])
      await announce(raw, [beatOf('d')], ['a', 'never there'])
      expect(await idsOf(hf)).toEqual(['b', 'c', 'd'])
      await announce(raw, [], ['b', 'c', 'd'])
      expect(await hf.workers()).toEqual([])
    })

    it('128 a worker that cannot be announced works all the same', async () => {
      const hf = await harness().connect({ wrap: deaf })
      await harness().worker(hf, { handlers: [handle(task, () => 'done')], id: 'unheard' })
      expect(await (await hf.enqueue(task, null)).result({ timeout: '10s' })).toBe('done')
      expect(await hf.workers()).toEqual([])
    })
  })
}
