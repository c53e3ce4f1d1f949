/** Who gets which job: exclusion, order, isolation of lanes, repeated turns. Assertions 16–18, 29, 30, 36, 37. */
import { connect, defineJob, handle } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { codeOf } from '../support/event.ts'
import { losingReplies } from '../support/faulty-backend.ts'
import { claim, claimOf, claimOne, complete, history, put, settle, stored } from '../support/protocol.ts'
import type { Harness, SuiteContext } from './harness.ts'

const task = defineJob<number, number>('task')

export function jobClaimSuite({ harness, capabilities }: SuiteContext): void {
  const raws = (count: number) => Promise.all(Array.from({ length: count }, () => harness().raw()))

  describe('job claim', () => {
    it('16 of 50 claimers of one job exactly one gets it', async () => {
      const stores = await raws(5)
      for (let round = 0; round < 5; round += 1) {
        const { id } = await put(stores[0] as (typeof stores)[0])
        const results = await Promise.all(
          Array.from({ length: 50 }, (_, n) =>
            claim(stores[n % 5] as (typeof stores)[0], { workerId: `worker-${n}`, limit: 3 }),
          ),
        )
        expect(results.flat().map((job) => job.id)).toEqual([id])
      }
    })

    it('17 claimers that come at once are never given the same job', async () => {
      const stores = await raws(4)
      const hf = await harness().connect()
      const enqueued = await hf.enqueueMany(Array.from({ length: 300 }, (_, n) => ({ job: 'task', input: n })))
      const given: string[] = []
      for (;;) {
        const results = await Promise.all(
          Array.from({ length: 20 }, (_, n) =>
            claim(stores[n % 4] as (typeof stores)[0], { workerId: `worker-${n}`, limit: (n % 5) + 1 }),
          ),
        )
        const ids = results.flat().map((job) => job.id)
        if (ids.length === 0) break
        given.push(...ids)
      }
      expect(given).toHaveLength(300)
      expect(new Set(given)).toEqual(new Set(enqueued.map(({ id }) => id)))
      expect((await hf.stats()).counts).toMatchObject({ running: 300, queued: 0 })
    })

    it('18 a job with a live lease is given to nobody else until the lease has expired', async () => {
      const [a, b] = (await raws(2)) as [Awaited<ReturnType<Harness['raw']>>, Awaited<ReturnType<Harness['raw']>>]
      const hf = await harness().connect()
      const { id } = await put(a)
      const first = await claimOne(a, { workerId: 'a', leaseMs: 60_000 })
      expect(await claim(b, { workerId: 'b' })).toEqual([])
      await harness().advance(50_000)
      expect((await hf.maintain()).reaped).toBe(0)
      expect(await claim(b, { workerId: 'b' })).toEqual([])
      await harness().advance(10_001)
      expect((await hf.maintain()).reaped).toBe(1)
      const second = await claimOne(b, { workerId: 'b' })
      expect(second).toMatchObject({ id, attempt: 2 })
      expect(second.token).not.toBe(first.token)
    })

    it('29 jobs come by priority, then time, then order of arrival', async () => {
      const raw = await harness().raw()
      const now = harness().now()
      const specs = [
        { priority: 0, runAt: now - 1_000 },
        { priority: 0, runAt: now - 5_000 },
        { priority: 5, runAt: now - 1_000 },
        { priority: -3, runAt: now - 90_000 },
        { priority: 0, runAt: now - 5_000 },
        { priority: 2 ** 31 - 1, runAt: now - 1 },
        { priority: 5, runAt: now - 2_000 },
        { priority: -(2 ** 31), runAt: 0 },
        { priority: 0, runAt: now - 5_000 },
        { priority: 1, runAt: now + 600_000 },
      ]
      const arrived: string[] = []
      for (const spec of specs) arrived.push((await put(raw, { ...spec, runAt: Math.floor(spec.runAt) })).id)
      await harness().advance(600_001)
      const wanted = [5, 6, 2, 9, 1, 4, 8, 0, 3, 7].map((index) => arrived[index])
      const [single] = await claim(raw)
      const batch = await claim(raw, { limit: 4 })
      const rest = await claim(raw, { limit: 100 })
      expect([single, ...batch, ...rest].map((job) => job?.id)).toEqual(wanted)
    })

    it('30 an order that the store does not offer is refused when the worker is made', async () => {
      const hf = await harness().connect()
      const worker = (ordering: unknown) =>
        harness().worker(hf, { handlers: [handle(task, () => 1)], ordering: ordering as 'fifo' })
      const offered = capabilities.ordering as readonly string[]
      for (const ordering of ['fastest', 'lifo', '', null]) {
        if (!offered.includes(String(ordering))) expect(await codeOf(worker(ordering))).toBe('UNSUPPORTED')
      }
      for (const ordering of offered) expect((await worker(ordering)).activeJobs).toBe(0)
    })

    it('36 lanes of any legal name are apart', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const long = 'x'.repeat(128)
      const lanes = [
        'a',
        'A',
        'a.',
        'a.b',
        'a-b',
        'a_b',
        '.',
        '..',
        '-',
        '_',
        '0',
        '00',
        '__proto__',
        'constructor',
        long,
      ]
      const ids = new Map<string, string>()
      for (const queue of lanes) ids.set(queue, (await hf.enqueue('task', 1, { queue, idempotencyKey: 'same' })).id)
      expect(new Set(ids.values()).size).toBe(lanes.length)
      for (const lane of lanes) {
        expect((await hf.list({ lane })).jobs.map(({ id }) => id)).toEqual([ids.get(lane)])
        expect((await hf.stats(lane)).counts.queued).toBe(1)
      }
      await hf.pause('a')
      for (const lane of lanes) {
        const jobs = await claim(raw, { lanes: [lane], limit: 10 })
        expect([lane, jobs.map(({ id }) => id)]).toEqual([lane, lane === 'a' ? [] : [ids.get(lane)]])
      }
      await hf.resume('a')
      expect((await claim(raw, { lanes: lanes, limit: 100 })).map(({ lane }) => lane)).toEqual(['a'])
    })

    it('36 names with other characters are refused wherever a name is taken', async () => {
      const hf = await harness().connect()
      const handlers = [handle(task, () => 1)]
      for (const name of [
        '',
        'a:b',
        'a{b',
        '{a}',
        'ü',
        '日本',
        'a/b',
        ' ',
        'a b',
        'a\n',
        'a\0',
        "a'",
        '%',
        '*',
        'x'.repeat(129),
      ]) {
        const calls = [
          () => hf.enqueue('task', 1, { queue: name }),
          () => hf.list({ lane: name }),
          () => hf.stats(name),
          () => hf.pause(name),
          () => hf.resume(name),
          () => hf.worker({ handlers, lanes: [name] }),
          () => connect('memory:', { namespace: name }),
          () => defineJob('task', { queue: name }),
        ]
        for (const call of calls)
          expect([name, String(call), await codeOf(call)]).toEqual([name, String(call), 'INVALID_NAME'])
      }
      expect((await hf.stats()).total).toBe(0)
    })

    it('37 a turn sent again gives the same jobs once more, charged once', async () => {
      const raw = await harness().raw()
      for (let n = 0; n < 5; n += 1) await put(raw)
      const same = claimOf({ limit: 3 })
      const turn = { settlements: [], claims: [same], resend: false }
      const first = (await raw.call('job.turn', turn)).grants[0]
      const again = (await raw.call('job.turn', { ...turn, resend: true })).grants[0]
      expect(first?.jobs).toHaveLength(3)
      expect(again?.jobs.map(({ id, token, attempt }) => ({ id, token, attempt }))).toEqual(
        first?.jobs.map(({ id, token, attempt }) => ({ id, token, attempt })),
      )
      const [ended] = first?.jobs ?? []
      if (ended === undefined) throw new Error('nothing was given')
      expect(await settle(raw, complete(ended))).toBe('applied')
      const third = (await raw.call('job.turn', { ...turn, resend: true })).grants[0]
      expect(third?.jobs.map(({ id }) => id)).not.toContain(ended.id)
      expect(await stored(raw, ended.id)).toMatchObject({ state: 'completed', attempts: 1 })
      expect(await history(raw, ended.id)).toHaveLength(1)
    })

    it('37 a worker whose every reply is lost once still calls each handler once', async () => {
      let turns = 0
      const wrap = (backend: Parameters<typeof losingReplies>[0]) =>
        losingReplies(backend, (type) => type === 'job.turn' && ++turns % 2 === 1)
      const hf = await harness().connect({ wrap })
      const calm = await harness().connect()
      const jobs = await calm.enqueueMany(Array.from({ length: 20 }, (_, n) => ({ job: task, input: n })))
      const calls: number[] = []
      await harness().worker(hf, { handlers: [handle(task, (n) => calls.push(n))], concurrency: 3 })
      await Promise.all(jobs.map((job) => job.result()))
      expect(calls.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n))
      expect((await calm.list()).jobs.map(({ attempts }) => attempts)).toEqual(Array(20).fill(1))
    })

    it('37 a hint for a job that is not queued any more calls no handler', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      let calls = 0
      await hf.pause('default')
      const gone = await hf.enqueue(task, 1)
      const worker = await harness().worker(hf, { handlers: [handle(task, () => ++calls)] })
      expect(await hf.cancel(gone.id)).toBe('cancelled')
      await hf.resume('default')
      const live = await hf.enqueue(task, 2)
      await live.result()
      expect(calls).toBe(1)
      expect(worker.activeJobs).toBe(0)
      expect(await stored(raw, gone.id)).toMatchObject({ state: 'cancelled', attempts: 0 })
    })
  })
}
