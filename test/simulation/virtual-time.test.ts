/** The simulation's own clockwork: order of events, pauses, kills, clock jumps, and the budget that ends a livelock. */
import { expect, test } from 'vitest'
import { SeededRandom } from './random.ts'
import { LivelockError, World } from './virtual-time.ts'

test('events fire by time, then in the order they were set; deferred work after the timers of its moment', async () => {
  const world = new World()
  const process = world.process('a')
  const seen: string[] = []
  process.set(() => seen.push('20'), 20)
  process.set(() => {
    seen.push('10a')
    process.defer(() => seen.push('deferred'))
    process.set(() => seen.push('10c'), 0)
  }, 10)
  process.set(() => seen.push('10b'), 10)
  await world.run(30)
  expect(seen).toEqual(['10a', '10b', '10c', 'deferred', '20'])
  expect(world.time).toBe(30)
})

test('microtasks drain before the next event, however long their chain', async () => {
  const world = new World()
  const seen: string[] = []
  const chain = async (): Promise<void> => {
    for (let step = 0; step < 500; step += 1) await null
    seen.push('chain done')
  }
  world.after(1, () => void chain())
  world.after(1, () => seen.push('next event'))
  await world.run(1)
  expect(seen).toEqual(['chain done', 'next event'])
})

test('a paused process fires nothing until it is resumed, then late and in order; a killed one never', async () => {
  const world = new World()
  const paused = world.process('paused')
  const killed = world.process('killed')
  const seen: string[] = []
  paused.set(() => seen.push(`first ${world.time}`), 5)
  paused.set(() => seen.push(`second ${world.time}`), 6)
  killed.set(() => seen.push('killed'), 5)
  paused.pause()
  killed.kill()
  world.after(50, () => paused.resume())
  await world.run(40)
  expect(seen).toEqual([])
  await world.run(100)
  expect(seen).toEqual(['first 50', 'second 50'])
})

test('a cleared timer does not fire, also when it was cleared while held by a pause', async () => {
  const world = new World()
  const process = world.process('a')
  let fired = 0
  const first = process.set(() => (fired += 1), 5)
  const second = process.set(() => (fired += 1), 6)
  process.clear(first)
  process.pause()
  await world.run(10)
  process.clear(second)
  process.resume()
  await world.run(20)
  expect(fired).toBe(0)
})

test('the wall clock of one process jumps; its monotonic clock and the other processes do not', async () => {
  const world = new World({ startMs: 1_000_000 })
  const [a, b] = [world.process('a'), world.process('b')]
  await world.run(500)
  a.jumpWallClock(-3_600_000)
  expect(a.now()).toBe(1_000_500 - 3_600_000)
  expect(a.monotonic()).toBe(500)
  expect(b.now()).toBe(1_000_500)
})

test('a system that spins without time passing is a failure, not a hang', async () => {
  const world = new World({ budget: 1_000 })
  const process = world.process('a')
  const spin = (): void => process.defer(spin)
  spin()
  await expect(world.run(10)).rejects.toThrow(LivelockError)
})

test('the same seed gives the same numbers and the same order of ties, another seed another', async () => {
  const order = async (seed: number): Promise<string> => {
    const world = new World({ tieBreak: new SeededRandom(seed) })
    const seen: number[] = []
    for (let index = 0; index < 12; index += 1) world.after(1, () => seen.push(index))
    await world.run(1)
    return seen.join()
  }
  expect(await order(7)).toBe(await order(7))
  expect(await order(7)).not.toBe(await order(8))
  expect(new SeededRandom(2 ** 40 + 1).next()).not.toBe(new SeededRandom(1).next())
  const random = new SeededRandom(3)
  const sum = Array.from({ length: 10_000 }, () => random.next()).reduce((total, value) => total + value, 0)
  expect(sum / 10_000).toBeCloseTo(0.5, 1)
})
