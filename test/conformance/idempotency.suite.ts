/** One key, one job: within a lane, as long as the job is kept. Assertions 66–69, 72. */
import { defineJob, handle } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { put } from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')

export function idempotencySuite({ harness, capabilities }: SuiteContext): void {
  describe('idempotency', () => {
    it('66 a hundred enqueues at once with one key are one job', async () => {
      const clients = await Promise.all(Array.from({ length: 5 }, () => harness().connect()))
      const [hf] = clients as [(typeof clients)[0]]
      const handles = await Promise.all(
        Array.from({ length: 100 }, (_, n) => clients[n % 5]?.enqueue(task, n, { idempotencyKey: 'order-1' })),
      )
      expect(new Set(handles.map((each) => each?.id)).size).toBe(1)
      expect(handles.filter((each) => each?.deduplicated === false)).toHaveLength(1)
      expect((await hf.stats()).total).toBe(1)
      expect(await hf.runUntilEmpty({ handlers: [handle(task, () => 1)] })).toBe(1)
    })

    it('66 one batch may repeat its own keys', async () => {
      const hf = await harness().connect()
      const batch = Array.from({ length: 60 }, (_, n) => ({
        job: task,
        input: n,
        options: { idempotencyKey: `key-${n % 3}` },
      }))
      const [one, two] = await Promise.all([hf.enqueueMany(batch), hf.enqueueMany(batch)])
      expect(new Set([...one, ...two].map(({ id }) => id)).size).toBe(3)
      expect([...one, ...two].filter(({ deduplicated }) => !deduplicated)).toHaveLength(3)
      expect((await hf.stats()).total).toBe(3)
    })

    it('66 the same request sent again after a lost reply creates nothing twice', async () => {
      const raw = await harness().raw()
      const job = await put(raw, { idempotencyKey: 'order-1' })
      const { results } = await raw.call('job.enqueue', { jobs: [job, job] })
      expect(results.map(({ outcome, id }) => [outcome, id])).toEqual([
        ['created', job.id],
        ['created', job.id],
      ])
      expect((await raw.call('queue.stats', { lanes: null })).lanes[0]?.counts.queued).toBe(1)
    })

    it('67 the key of an ended job still answers with it while it is kept', async () => {
      const hf = await harness().connect({ keepCompleted: '1h' })
      let calls = 0
      const handlers = [handle(task, () => ++calls)]
      const first = await hf.enqueue(task, 1, { idempotencyKey: 'order-1' })
      await hf.runUntilEmpty({ handlers })
      await harness().advance(3_000_000)
      await hf.maintain()
      const again = await hf.enqueue(task, 1, { idempotencyKey: 'order-1' })
      expect([again.id, again.deduplicated]).toEqual([first.id, true])
      expect(await again.result()).toBe(1)
      expect(await hf.runUntilEmpty({ handlers })).toBe(0)
      await harness().advance(600_001)
      expect((await hf.maintain()).pruned).toBe(1)
      const fresh = await hf.enqueue(task, 1, { idempotencyKey: 'order-1' })
      expect(fresh.deduplicated).toBe(false)
      expect(fresh.id).not.toBe(first.id)
      expect(await hf.runUntilEmpty({ handlers })).toBe(1)
      expect(calls).toBe(2)
    })

    it('67 the keys of dead and cancelled jobs answer with them too', async () => {
      const hf = await harness().connect()
      const dead = await hf.enqueue(task, 1, { idempotencyKey: 'dead', timeout: 0, maxAttempts: 1 })
      await hf.runUntilEmpty({ handlers: [handle(task, () => 1)] })
      expect((await hf.get(dead.id))?.state).toBe('dlq')
      const gone = await hf.enqueue(task, 1, { idempotencyKey: 'gone' })
      await hf.cancel(gone.id)
      for (const [key, id] of [
        ['dead', dead.id],
        ['gone', gone.id],
      ] as const) {
        expect(await hf.enqueue(task, 1, { idempotencyKey: key })).toMatchObject({ id, deduplicated: true })
      }
    })

    it('68 within its lane a key counts whatever else differs; another lane is another scope', async () => {
      const hf = await harness().connect()
      const elsewhere = await harness().connect({ namespace: 'elsewhere' })
      const key = { idempotencyKey: 'order-1' }
      const first = await hf.enqueue(task, { n: 1 }, key)
      const variants = [
        hf.enqueue(task, { n: 2 }, key),
        hf.enqueue('another-type', null, key),
        hf.enqueue(task, 1, { ...key, delay: '5h' }),
        hf.enqueue(task, 1, { ...key, runAt: harness().now() + 7_200_000 }),
        hf.enqueue(task, 1, { ...key, priority: 9, maxAttempts: 1, metadata: { a: 1 } }),
      ]
      for (const same of await Promise.all(variants)) {
        expect([same.id, same.deduplicated]).toEqual([first.id, true])
      }
      expect(await hf.get(first.id)).toMatchObject({ input: { n: 1 }, type: 'task', priority: 0, state: 'queued' })
      const others = [await hf.enqueue(task, 1, { ...key, queue: 'other' }), await elsewhere.enqueue(task, 1, key)]
      for (const { deduplicated, id } of others) {
        expect(deduplicated).toBe(false)
        expect(id).not.toBe(first.id)
      }
      // Keys are compared exactly.
      for (const idempotencyKey of ['Order-1', 'order-1 ', 'order-1é', 'order-1e\u0301']) {
        expect((await hf.enqueue(task, 1, { idempotencyKey })).deduplicated).toBe(false)
      }
    })

    it('69 without a key every enqueue is a job', async () => {
      const hf = await harness().connect()
      const options = [{}, { idempotencyKey: null }, {}, { idempotencyKey: null }]
      const handles = await Promise.all(options.map((each) => hf.enqueue(task, 'same', each)))
      expect(new Set(handles.map(({ id }) => id)).size).toBe(4)
      expect(handles.map(({ deduplicated }) => deduplicated)).toEqual([false, false, false, false])
      // A text is a key, also one that looks like nothing.
      expect((await hf.enqueue(task, 1, { idempotencyKey: 'null' })).deduplicated).toBe(false)
      expect((await hf.enqueue(task, 1, { idempotencyKey: 'null' })).deduplicated).toBe(true)
    })

    if (!capabilities.durableJobs) {
      it('72 a restart forgets the key, as the capabilities say', async () => {
        const hf = await harness().connect()
        expect(hf.capabilities.durability).toBe('none')
        const first = await hf.enqueue(task, 1, { idempotencyKey: 'order-1' })
        await harness().restart()
        const again = await harness().connect()
        expect(await again.get(first.id)).toBeNull()
        expect((await again.enqueue(task, 1, { idempotencyKey: 'order-1' })).deduplicated).toBe(false)
      })
    }
  })
}
