/** The store as a whole: what it declares, namespaces, retention. Assertions 117, 126, 127. */
import { readFile } from 'node:fs/promises'
import { defineJob, handle } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { Capabilities } from '#dist/src/backends/capabilities.js'
import { codeOf, rejection } from '../support/event.ts'
import { claim, claimOne, history, put, retryIn, settle } from '../support/protocol.ts'
import type { SuiteContext } from './harness.ts'

const task = defineJob<unknown>('task')
const MATRIX = new URL('../../docs/backends.md', import.meta.url)
const HOUR = 3_600_000

/** The column of a store in the table that users read. */
async function published(store: string): Promise<Record<string, string>> {
  const rows = (await readFile(MATRIX, 'utf8'))
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    )
  const column = rows[0]?.indexOf(store) ?? -1
  if (column < 1) throw new Error(`docs/backends.md has no column ${store}`)
  return Object.fromEntries(rows.slice(2).map((row) => [row[0], row[column] ?? '']))
}

const print = (value: unknown): string => {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return Array.isArray(value) ? value.join(', ') : String(value)
}

export function storeSuite({ column, harness, capabilities }: SuiteContext): void {
  describe('store', () => {
    it('117 the store declares what docs/backends.md says', async () => {
      const hf = await harness().connect()
      const declared = Object.fromEntries(Object.entries(hf.capabilities).map(([key, value]) => [key, print(value)]))
      expect(declared).toEqual(await published(column))
      expect(hf.capabilities).toEqual(capabilities)
      expect(Object.isFrozen(hf.capabilities)).toBe(true)
      expect(Object.isFrozen(hf.capabilities.ordering)).toBe(true)
    })

    it('117 what is not offered is refused by name', async () => {
      const hf = await harness().connect()
      const flags = Object.entries(capabilities).filter(([, value]) => typeof value === 'boolean')
      for (const [flag, value] of flags) {
        expect(() => hf.require({ [flag]: value } as Partial<Capabilities>)).not.toThrow()
        const error = await rejection(() => hf.require({ [flag]: !value } as Partial<Capabilities>))
        expect(error).toMatchObject({ code: 'CAPABILITY_MISSING', details: { missing: [flag] } })
      }
      const none = flags.filter(([, value]) => value === false).map(([flag]) => flag)
      const all = Object.fromEntries(none.map((flag) => [flag, true])) as Partial<Capabilities>
      const error = await rejection(() => hf.require(all))
      for (const flag of none) expect(error.message).toContain(flag)
      expect(await codeOf(() => hf.require({ teleport: true } as Partial<Capabilities>))).toBe('CAPABILITY_MISSING')
      if (!capabilities.transactionalEnqueue) {
        expect(await codeOf(hf.enqueueTx({} as never, task, 1))).toBe('UNSUPPORTED')
        expect((await hf.stats()).total).toBe(0)
      }
    })

    it('126 C045 two namespaces of one store share nothing', async () => {
      const [a, b] = [await harness().connect({ namespace: 'a' }), await harness().connect({ namespace: 'b' })]
      const [rawA, rawB] = [await harness().raw('a'), await harness().raw('b')]
      const key = { idempotencyKey: 'same' }
      const inA = await a.enqueue(task, 'of a', key)
      const inB = await b.enqueue(task, 'of b', key)
      expect(inB.deduplicated).toBe(false)
      expect([(await a.stats()).total, (await b.stats()).total]).toEqual([1, 1])
      expect((await a.list()).jobs.map(({ id }) => id)).toEqual([inA.id])
      expect(await b.get(inA.id)).toBeNull()
      expect(await b.explain(inA.id)).toBeNull()
      expect(await codeOf(b.cancel(inA.id, { force: true }))).toBe('JOB_NOT_FOUND')
      await a.pause('default')
      expect((await b.lanes()).map(({ lane, paused }) => [lane, paused])).toEqual([['default', false]])
      expect(await claim(rawA, { limit: 10 })).toEqual([])
      const lease = await claimOne(rawB, { leaseMs: 60_000 })
      expect(lease.id).toBe(inB.id)
      await harness().advance(60_001)
      expect((await a.maintain()).reaped).toBe(0)
      expect(await settle(rawA, { ...retryIn(lease, 0) })).toBe('gone')
      expect((await b.maintain()).reaped).toBe(1)
      await a.resume('default')
      const seen: unknown[] = []
      const handler = handle(task, (input) => {
        seen.push(input)
      })
      expect(await a.runUntilEmpty({ handlers: [handler] })).toBe(1)
      expect(seen).toEqual(['of a'])
      expect((await b.get(inB.id))?.state).toBe('queued')
    })

    it('127 retention removes ended jobs whose time is over, and nothing else', async () => {
      const hf = await harness().connect({ keepCompleted: '1h', keepCancelled: '2h' })
      const raw = await harness().raw()
      const completed = await hf.enqueue(task, 'x', { queue: 'run' })
      const failed = await hf.enqueue(task, 'fail', { queue: 'run', maxAttempts: 1 })
      const handler = handle(task, (input) => {
        if (input === 'fail') throw new Error('as told')
      })
      await hf.runUntilEmpty({ handlers: [handler], lanes: ['run'] })
      const gone = await hf.enqueue(task, 'gone')
      await hf.cancel(gone.id)
      const queued = await hf.enqueue(task, 'queued')
      const scheduled = await hf.enqueue(task, 'later', { delay: '100d' })
      const running = await put(raw, { lane: 'held' })
      await claimOne(raw, { lanes: ['held'], leaseMs: 1_000 * HOUR })
      const retrying = await put(raw, { lane: 'again' })
      await settle(raw, retryIn(await claimOne(raw, { lanes: ['again'] }), 1_000 * HOUR))
      const alive = [queued.id, scheduled.id, running.id, retrying.id, failed.id]
      const here = async (id: string) => (await hf.get(id)) !== null

      await harness().advance(HOUR - 60_000)
      expect((await hf.maintain()).pruned).toBe(0)
      await harness().advance(120_000)
      expect((await hf.maintain()).pruned).toBe(1)
      expect([await here(completed.id), await here(gone.id)]).toEqual([false, true])
      expect(await hf.attempts(completed.id)).toEqual([])
      await harness().advance(HOUR)
      expect((await hf.maintain()).pruned).toBe(1)
      expect(await here(gone.id)).toBe(false)
      await harness().advance(24 * HOUR)
      expect((await hf.maintain()).pruned).toBe(0)
      for (const id of alive) expect([id, await here(id)]).toEqual([id, true])
      expect((await hf.get(failed.id))?.state).toBe('dlq')
    })

    it('127 retention works in bounded batches', async () => {
      const hf = await harness().connect({ keepCompleted: '1h', keepDead: '1h' })
      const raw = await harness().raw()
      const jobs = await hf.enqueueMany(
        Array.from({ length: 60 }, (_, n) => ({ job: task, input: n, options: { maxAttempts: 1 } })),
      )
      const handler = handle(task, (n) => {
        if (Number(n) % 2 === 0) throw new Error('even')
      })
      await hf.runUntilEmpty({ handlers: [handler], concurrency: 20 })
      await harness().advance(HOUR + 1)
      const pruned: number[] = []
      for (;;) {
        const reply = await raw.call('store.maintain', { limit: 25, keepDeadMs: null })
        pruned.push(reply.pruned)
        if (!reply.more) break
        expect(pruned.length).toBeLessThan(10)
      }
      expect(pruned.slice(0, 3)).toEqual([25, 25, 10])
      expect((await hf.stats()).total).toBe(0)
      for (const { id } of jobs) expect(await history(raw, id)).toEqual([])
    })

    it('127 outputs can go before their jobs, and what is kept for 0 is gone at once', async () => {
      const hf = await harness().connect()
      const none = await harness().connect({ keepCompleted: 0 })
      const job = await hf.enqueue(task, 'x', { keepResult: '1h' })
      await hf.runUntilEmpty({ handlers: [handle(task, () => 'output')] })
      expect((await hf.get(job.id))?.output).toBe('output')
      await harness().advance(HOUR + 1)
      expect(await hf.maintain()).toMatchObject({ pruned: 0, outputsDropped: 1 })
      expect(await hf.get(job.id)).toMatchObject({ state: 'completed', hasOutput: false, input: 'x' })
      expect(await codeOf(job.result())).toBe('RESULT_NOT_KEPT')
      const brief = await none.enqueue(task, 'x', { idempotencyKey: 'brief' })
      await none.runUntilEmpty({ handlers: [handle(task, () => 'output')] })
      expect(await none.get(brief.id)).toBeNull()
      expect((await none.enqueue(task, 'x', { idempotencyKey: 'brief' })).deduplicated).toBe(false)
    })

    it('127 each lane may keep its ended jobs for a time of its own, dead letters by their deadline included', async () => {
      const retention = {
        completed: '2h',
        lanes: { brief: { completed: '1h', cancelled: '1h', dead: '1h' }, none: { completed: 0 } },
      } as const
      const hf = await harness().connect({ retention })
      const raw = await harness().raw()
      const ids = new Map<string, string>()
      const run = async (name: string, queue: string, options: object = {}) => {
        ids.set(name, (await hf.enqueue(task, name, { queue, ...options })).id)
      }
      await run('usual', 'default')
      await run('brief', 'brief')
      await run('none', 'none')
      await run('dead', 'default', { maxAttempts: 1 })
      await run('brief dead', 'brief', { maxAttempts: 1 })
      await run('late', 'default', { deadline: harness().now() - 1 })
      await run('brief late', 'brief', { deadline: harness().now() - 1 })
      await run('idle late', 'idle', { deadline: harness().now() - 1 })
      const handler = handle(task, (input) => {
        if (String(input).includes('dead')) throw new Error('as told')
      })
      await hf.runUntilEmpty({ handlers: [handler], lanes: ['default', 'brief', 'none'] })
      const cancelled = await hf.enqueue(task, 'cancelled', { queue: 'brief' })
      await hf.cancel(cancelled.id)
      ids.set('brief cancelled', cancelled.id)
      const crashed = await put(raw, { lane: 'brief', maxAttempts: 1 })
      await claimOne(raw, { lanes: ['brief'], leaseMs: 1_000 })
      await harness().advance(1_001)
      await hf.maintain()
      ids.set('brief crashed', crashed.id)
      const here = async () => {
        const found = await Promise.all([...ids].map(async ([name, id]) => ((await hf.get(id)) === null ? [] : [name])))
        return found.flat().sort()
      }
      const all = [...ids.keys()].sort()
      expect(await here()).toEqual(all.filter((name) => name !== 'none'))
      await harness().advance(HOUR + 1)
      await hf.maintain()
      expect(await here()).toEqual(['dead', 'idle late', 'late', 'usual'])
      await harness().advance(HOUR)
      await hf.maintain()
      expect(await here()).toEqual(['dead', 'idle late', 'late'])
    })

    it('127 a lane keeps so many of its ended jobs at most, the latest, and everything else', async () => {
      const retention = {
        completed: { count: 2 },
        cancelled: { count: 1 },
        lanes: { many: { completed: { count: 3 }, dead: { count: 1 } }, all: { completed: 'forever' } },
      } as const
      const hf = await harness().connect({ retention })
      const handler = handle(task, (input) => {
        if (input === 'fail') throw new Error('as told')
        return input
      })
      const lanes = ['default', 'many', 'all']
      const ids: Record<string, string[]> = {}
      for (const queue of lanes) {
        const inputs = ['1', 'fail', '2', '3', 'fail', '4', '5']
        const requests = inputs.map((input) => ({ job: task, input, options: { queue, maxAttempts: 1 } }))
        ids[queue] = (await hf.enqueueMany(requests)).map(({ id }) => id)
      }
      const keyed = await hf.enqueue(task, '0', { idempotencyKey: 'first', priority: 5 })
      await hf.runUntilEmpty({ handlers: [handler], lanes })
      const waiting: string[] = []
      for (let n = 0; n < 3; n += 1) waiting.push((await hf.enqueue(task, n)).id)
      for (const id of waiting.slice(0, 2)) await hf.cancel(id)
      expect((await hf.maintain()).pruned).toBe(3 + 1 + 2 + 1 + 1)
      const left = async (lane: string) => {
        const { jobs } = await hf.list({ lane, limit: 100 })
        return jobs.map(({ id, state }) => `${state} ${ids[lane]?.indexOf(id)}`).sort()
      }
      // What came first goes first: of seven, the last two that completed are numbers 5 and 6; the keyed one came after them.
      expect(await left('many')).toEqual(['completed 3', 'completed 5', 'completed 6', 'dlq 4'])
      expect((await left('all')).length).toBe(7)
      expect(await left('default')).toEqual(
        ['cancelled -1', 'completed -1', 'completed 6', 'dlq 1', 'dlq 4', 'queued -1'].sort(),
      )
      expect((await hf.get(waiting[1] ?? ''))?.state).toBe('cancelled')
      expect((await hf.enqueue(task, '0', { idempotencyKey: 'first' })).id).toBe(keyed.id)
      expect(await hf.maintain()).toMatchObject({ pruned: 0 })
      const { counts } = await hf.stats('many')
      expect([counts.completed, counts.dlq]).toEqual([3, 1])
    })

    it('127 what is too many goes in bounded batches, keys and attempts with it', async () => {
      const hf = await harness().connect()
      const raw = await harness().raw()
      const requests = Array.from({ length: 60 }, (_, n) => ({
        job: task,
        input: n,
        options: { maxAttempts: 1, idempotencyKey: `key-${n}` },
      }))
      const jobs = await hf.enqueueMany(requests)
      const handler = handle(task, (n) => {
        if (Number(n) % 2 === 0) throw new Error('even')
      })
      await hf.runUntilEmpty({ handlers: [handler], concurrency: 20 })
      const all = { completed: 5, cancelled: null, dlq: 0 }
      const pruned: number[] = []
      for (;;) {
        const request = { limit: 20, keepDeadMs: null, keepCounts: { all, lanes: {} } }
        const reply = await raw.call('store.maintain', request)
        pruned.push(reply.pruned)
        if (!reply.more) break
        expect(pruned.length).toBeLessThan(10)
      }
      expect(pruned.slice(0, 3)).toEqual([20, 20, 15])
      const { counts, total } = await hf.stats()
      expect([counts.completed, counts.dlq, total]).toEqual([5, 0, 5])
      const kept = jobs.filter((_, n) => n % 2 === 1).slice(-5)
      expect((await hf.list()).jobs.map(({ id }) => id).sort()).toEqual(kept.map(({ id }) => id).sort())
      for (const { id } of jobs.slice(0, 10)) expect(await history(raw, id)).toEqual([])
      expect((await hf.enqueue(task, 'again', { idempotencyKey: 'key-0' })).deduplicated).toBe(false)
      expect((await hf.enqueue(task, 'again', { idempotencyKey: 'key-59' })).deduplicated).toBe(true)
    })

    it('127 two that trim at once remove nothing that is to stay', async () => {
      const hf = await harness().connect({ retention: { completed: { count: 10 } } })
      const other = await harness().connect({ retention: { completed: { count: 10 } } })
      await hf.enqueueMany(Array.from({ length: 50 }, (_, n) => ({ job: task, input: n })))
      await hf.runUntilEmpty({ handlers: [handle(task, () => {})], concurrency: 20 })
      const done = await Promise.all([hf.maintain(), other.maintain(), hf.maintain(), other.maintain()])
      expect(done.reduce((sum, { pruned }) => sum + pruned, 0)).toBe(40)
      expect((await hf.stats()).counts.completed).toBe(10)
    })
  })
}
