/** Jobs held beyond the free slots: worth having while handlers are fast, given back uncharged when they turn slow. */
import { connect, defineJob, type Holdfast, handle, type Worker } from 'holdfast'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { JobActor } from '#dist/src/actors/job-actor.js'
import { Prefetch } from '#dist/src/actors/prefetch.js'
import { eventually, type Gate, gate } from '../support/event.ts'
import { silent } from '../support/silent.ts'

const task = defineJob<string>('task')

describe('how many', () => {
  const prefetchAfter = (durationsMs: readonly number[], limit = 200): Prefetch => {
    const prefetch = new Prefetch(limit)
    for (const ms of durationsMs) prefetch.record(ms)
    return prefetch
  }

  it('none before anything is known, none for slow handlers, none when turned off', () => {
    expect(prefetchAfter([]).extra(10)).toBe(0)
    expect(prefetchAfter([80]).extra(10)).toBe(0)
    expect(prefetchAfter([0.01], 0).extra(10)).toBe(0)
  })

  it('as many as the slots can start within ten milliseconds, at most the limit', () => {
    expect(prefetchAfter([1]).extra(10)).toBe(100)
    expect(prefetchAfter([4]).extra(2)).toBe(5)
    expect(prefetchAfter([0.001]).extra(10)).toBe(200)
  })

  it('fewer soon after handlers turn slow', () => {
    expect(prefetchAfter([0.1, 0.1, 0.1, 60]).extra(10)).toBe(0)
  })

  it('gives out in order, and takes out what has waited too long', () => {
    const prefetch = new Prefetch(3)
    const actors = ['a', 'b', 'c'].map((id) => ({ job: { id } }) as JobActor)
    actors.forEach((actor, index) => {
      prefetch.hold(actor, index * 10)
    })
    expect(prefetch.hasRoom(0)).toBe(false)
    expect(prefetch.hasRoom(1)).toBe(true)
    expect(prefetch.take()).toBe(actors[0])
    expect(prefetch.takeHeldSince(15)).toEqual([actors[1]])
    expect(prefetch.size).toBe(1)
  })
})

describe('a worker whose handlers turn slow', () => {
  let hf: Holdfast
  let slow: Gate
  let slowStarted: Gate
  const ran: string[] = []

  const handler = (name: string) =>
    handle(task, async (input) => {
      ran.push(`${name} ${input}`)
      if (input !== 'slow') return
      slowStarted.open()
      await slow.passed
    })
  const start = (name: string, prefetch?: number): Promise<Worker> =>
    hf.worker({ id: name, handlers: [handler(name)], concurrency: 1, ...(prefetch === undefined ? {} : { prefetch }) })
  const fill = (): Promise<readonly { readonly id: string }[]> => {
    const inputs = [...Array(40).fill('fast'), 'slow', ...Array.from({ length: 10 }, (_, index) => `rest ${index}`)]
    return hf.enqueueMany(inputs.map((input: string) => ({ job: task, input })))
  }

  beforeEach(async () => {
    hf = await connect('memory:', { logger: silent })
    slow = gate()
    slowStarted = gate()
    ran.length = 0
  })
  afterEach(async () => {
    slow.open()
    await hf.close()
  })

  it('gives back what it holds, and another worker runs it uncharged', async () => {
    const jobs = await fill()
    await start('first')
    await slowStarted.passed
    expect((await hf.stats()).counts.running).toBeGreaterThan(1)
    await eventually(async () => (await hf.stats()).counts.running === 1, 'the held jobs are given back')
    await start('second')
    await eventually(
      () => ran.filter((entry) => entry.startsWith('second rest')).length === 10,
      'the second runs the rest',
    )
    for (const { id } of jobs.slice(41)) {
      await eventually(async () => (await hf.get(id))?.state === 'completed', 'it is completed')
      expect(await hf.get(id)).toMatchObject({ attempts: 1 })
    }
  })

  it('does not take again what it gave back while the slow one runs, however long the backlog', async () => {
    await fill()
    await hf.enqueueMany(Array.from({ length: 1_000 }, () => ({ job: task, input: 'later' })))
    await start('first')
    await slowStarted.passed
    await eventually(async () => (await hf.stats()).counts.running === 1, 'the held jobs are given back')
    const since = performance.now()
    await eventually(async () => {
      expect((await hf.stats()).counts.running).toBe(1)
      return performance.now() - since > 200
    }, 'four times as long as a job may be held')
  })

  it('starts a held job at once in a slot that was added', async () => {
    await fill()
    const worker = await start('first')
    await slowStarted.passed
    worker.addSlot()
    await eventually(() => ran.includes('first rest 0'), 'the new slot runs what was held')
  })

  // It is held for 50 ms. On a machine that stands still for longer it is back before it is cancelled, which says nothing of held ones.
  it('never runs a held job that was cancelled', { retry: 3 }, async () => {
    const jobs = await fill()
    await start('first')
    await slowStarted.passed
    const last = jobs.at(-1)?.id ?? ''
    expect(await hf.cancel(last)).toBe('requested')
    slow.open()
    await eventually(async () => (await hf.stats()).counts.completed === 50, 'all others are completed')
    await eventually(async () => (await hf.get(last))?.state === 'cancelled', 'it is cancelled')
    expect(ran).not.toContain('first rest 9')
  })

  it('holds nothing when told so', async () => {
    await fill()
    await start('first', 0)
    await slowStarted.passed
    expect((await hf.stats()).counts.running).toBe(1)
  })

  it('gives back what it holds when it stops', async () => {
    await fill()
    const worker = await start('first')
    await slowStarted.passed
    const stopped = worker.stop()
    await eventually(async () => (await hf.stats()).counts.queued === 10, 'the held jobs are queued again')
    slow.open()
    await stopped
    expect((await hf.stats()).counts).toMatchObject({ running: 0, queued: 10, completed: 41 })
  })
})
