/** How a worker announces itself: every five seconds, one beat at a time, a goodbye after the last of them, and never at anybody's cost. */
import { defineJob, handle } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { Request } from '#dist/src/backends/protocol/index.js'
import { HoldfastError } from '#dist/src/errors.js'
import { settledAt, type VirtualClient, virtualClient } from '../support/virtual-client.ts'

const task = defineJob<unknown>('task')
const handlers = [handle(task, () => {})]

type Answer = 'soon' | 'late' | 'never' | 'denied'

/** A store that answers beats as told, and what it was sent of them, with the time. */
function hearing(): VirtualClient & {
  answer: Answer
  readonly beats: { at: number; workers: number; gone: number }[]
} {
  const beats: { at: number; workers: number; gone: number }[] = []
  const virtual = virtualClient((store) => ({
    call: async (type, request) => {
      if (type !== 'worker.beat') return store.call(type, request)
      const { workers, gone } = request as Request<'worker.beat'>
      beats.push({ at: virtual.world.time, workers: workers.length, gone: gone.length })
      const { answer } = told
      if (answer === 'denied') throw new HoldfastError('STORE_DENIED', 'no', { details: { outcome: 'refused' } })
      if (answer === 'never') return new Promise(() => {})
      if (answer === 'late') await new Promise<void>((resolve) => void virtual.process.set(resolve, 200))
      return store.call(type, request)
    },
  }))
  const told = Object.assign(virtual, { answer: 'soon' as Answer, beats })
  return told
}

async function timeOf(virtual: VirtualClient, work: Promise<unknown>): Promise<number> {
  const before = virtual.world.time
  return (await settledAt(virtual.world, work)) - before
}

describe('a worker', () => {
  it('beats at once and every five seconds', async () => {
    const virtual = hearing()
    await virtual.client.worker({ handlers })
    await virtual.world.run(60_000)
    expect(virtual.beats[0]?.at).toBeLessThan(10)
    const gaps = virtual.beats.slice(1).map(({ at }, index) => at - (virtual.beats[index]?.at ?? 0))
    expect(gaps.length).toBeGreaterThanOrEqual(10)
    expect(gaps.length).toBeLessThanOrEqual(13)
    for (const gap of gaps) {
      expect(gap).toBeGreaterThanOrEqual(4_500)
      expect(gap).toBeLessThanOrEqual(5_500)
    }
  })

  it('has one beat under way at most, however long the store takes', async () => {
    const virtual = hearing()
    virtual.answer = 'never'
    await virtual.client.worker({ handlers })
    await virtual.world.run(9_900)
    expect(virtual.beats).toHaveLength(1)
    virtual.answer = 'soon'
    await virtual.world.run(30_000)
    expect(virtual.beats.length).toBeGreaterThan(2)
  })

  it('says goodbye after the beat that is under way, so that it is not announced again', async () => {
    const virtual = hearing()
    virtual.answer = 'late'
    const worker = await virtual.client.worker({ handlers })
    await virtual.world.run(5)
    virtual.answer = 'soon'
    expect(await timeOf(virtual, worker.stop())).toBeGreaterThanOrEqual(150)
    await virtual.world.run(virtual.world.time + 1_000)
    expect(virtual.beats.map(({ workers, gone }) => [workers, gone])).toEqual([
      [1, 0],
      [0, 1],
    ])
    const listed = virtual.client.workers()
    await settledAt(virtual.world, listed)
    expect(await listed).toEqual([])
  })

  it('does not wait for a store that hears no goodbye', async () => {
    const virtual = hearing()
    const worker = await virtual.client.worker({ handlers })
    await virtual.world.run(1_000)
    virtual.answer = 'never'
    expect(await timeOf(virtual, worker.stop())).toBeLessThanOrEqual(450)
  })

  it('says once that it cannot be announced, and again after it could', async () => {
    const virtual = hearing()
    virtual.answer = 'denied'
    await virtual.client.worker({ handlers })
    await virtual.world.run(60_000)
    const told = () => virtual.warnings.filter(({ msg }) => msg.includes('announced')).length
    expect([told(), virtual.beats.length > 10]).toEqual([1, true])
    virtual.answer = 'soon'
    await virtual.world.run(70_000)
    virtual.answer = 'denied'
    await virtual.world.run(120_000)
    expect(told()).toBe(2)
  })

  it('tells of what it does and lists 200 of its types', async () => {
    const virtual = hearing()
    const held = handle(task, () => new Promise<void>(() => {}))
    const others = Array.from({ length: 249 }, (_, index) => handle(defineJob(`type-${index}`), () => {}))
    const worker = await virtual.client.worker({ handlers: [held, ...others], concurrency: 3, lanes: ['default'] })
    await virtual.client.enqueue(task, null)
    await virtual.world.run(6_000)
    const listOf = async () => {
      const listed = virtual.client.workers()
      await settledAt(virtual.world, listed)
      return (await listed)[0]
    }
    const listed = await listOf()
    expect(listed).toMatchObject({ running: 1, concurrency: 3, isStopping: false, moreTypes: 50, moreLanes: 0 })
    expect(listed?.types).toHaveLength(200)
    const stopped = worker.stop({ deadline: 20_000 })
    await virtual.world.run(virtual.world.time + 6_000)
    expect(await listOf()).toMatchObject({ isStopping: true, running: 1 })
    await settledAt(virtual.world, stopped)
    expect(await listOf()).toBeUndefined()
  })
})
