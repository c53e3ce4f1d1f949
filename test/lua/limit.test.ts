/** Limits of lanes in the bare scripts: what is damaged fails before anything is written, a claim is bounded, every key has its turn. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Answer, Lane } from './lane.ts'

let lane: Lane
beforeAll(async () => {
  lane = await Lane.open()
})
afterAll(() => lane.close())
beforeEach(() => lane.redis.flushall())

const LOOKED_MAX = 400
const DIGESTS_MAX = 100

const limit = (inFlight: string | number, rate: string, perKey: string | number, gate = '-') =>
  lane.run('lane_policy', ['-', inFlight, rate, perKey, gate])
const claimed = (answer: Answer): readonly string[] => (answer as readonly Answer[])[4] as readonly string[]
const claim = async (count: number): Promise<readonly string[]> =>
  claimed(await lane.run('job_claim', [count, 'w', 'n', 60_000, 0]))
const withKey = (id: string, key: string) => [id, `@${Buffer.byteLength(key)} ${key} 0    `] as const

async function enqueue(jobs: readonly (readonly [string, string])[]): Promise<void> {
  for (let from = 0; from < jobs.length; from += 250) await lane.enqueue(...jobs.slice(from, from + 250))
}

async function refusesUnchanged(call: () => Promise<unknown>): Promise<void> {
  const before = await lane.digest()
  await expect(call()).rejects.toThrow(/HOLDFAST_DAMAGED|WRONGTYPE/)
  expect(await lane.digest()).toBe(before)
}

test.each(['x', '1', '1 2 3', '-1    ', '     ', `${'9'.repeat(70)}    `, '1 2 3 4 5 6'])(
  'the limits %j fail every claim before anything is written',
  async (text) => {
    await lane.enqueue(['a', ''], ['b', ''])
    const token = (await lane.claim(1)).get('a') ?? ''
    await lane.redis.hset(lane.key('meta'), 'limits', text)
    await refusesUnchanged(() => claim(1))
    await refusesUnchanged(() => lane.turn({ forgotten: ['a', token] }, 1))
  },
)

test.each(['x', '1', '-1 0', '1 2 3', `${'9'.repeat(17)} 0`])(
  'a bucket %j fails claim and enqueue alike',
  async (text) => {
    await lane.enqueue(['a', ''], ['b', ''])
    await limit('', '5 1000 5', '', '5 1000')
    await lane.redis.hset(lane.key('meta'), 'starts', text, 'arrivals', text)
    await refusesUnchanged(() => claim(1))
    await refusesUnchanged(() => lane.enqueue(['c', '']))
    await refusesUnchanged(() => lane.run('job_enqueue', ['c', '', 't\n\nu']))
  },
)

test.each(['concurrency', 'parked'])('%s of another type fails a claim before anything is written', async (role) => {
  await lane.enqueue(['a', ''])
  await limit('', '', 1)
  await lane.redis.set(lane.key(role), 'text')
  await refusesUnchanged(() => claim(1))
})

test('a plain job of a lane that counts goes the long way, and its sequence comes back when it counts no more', async () => {
  expect(await lane.run('job_add', ['a', 't\n\nu'])).toBe('qnw')
  await limit('', '', '', '2 60000')
  expect(await lane.run('job_add', ['b', 't\n\nu'])).toBe('')
  expect(await lane.enqueue(['b', ''], ['c', ''], ['d', '']).then((answer) => (answer as Answer[])[0])).toBe('qqr')
  await limit('', '', '', '')
  expect(await lane.run('job_add', ['d', 't\n\nu'])).toBe('q')
  expect(Number(await lane.redis.hget(lane.key('meta'), 'sequence'))).toBeLessThan(10)
  expect(await claim(9)).toEqual(['a', 'b', 'c', 'd'])
})

test('of a flood of one key a claim moves a bounded part aside, once', async () => {
  const flood = Array.from({ length: 3_000 }, (_, n) => withKey(`f${n}`, 'flood'))
  await limit('', '', 1)
  await enqueue([...flood, withKey('other', 'other')])
  expect(await claim(2)).toEqual(['f0'])
  let calls = 1
  for (let given: readonly string[] = []; given.length === 0; calls += 1) {
    const parked = await lane.redis.zcard(lane.key('parked'))
    given = await claim(1)
    expect((await lane.redis.zcard(lane.key('parked'))) - parked).toBeLessThanOrEqual(LOOKED_MAX + 2)
    if (given.length > 0) expect(given).toEqual(['other'])
    expect(calls).toBeLessThan(3_000 / LOOKED_MAX + 2)
  }
  expect(await lane.redis.zcard(lane.key('parked'))).toBe(2_999)
  // Nothing is left to move: a claim that finds all keys full is a few look-ups.
  const before = await lane.digest()
  expect(await claim(5)).toEqual([])
  await lane.redis.hdel(lane.key('meta'), 'held_K')
  expect(await lane.digest()).toBe(before)
})

test('with more keys set aside than a claim looks at, each has its turn', async () => {
  const keys = Array.from({ length: 2 * DIGESTS_MAX + 50 }, (_, n) => `key ${n}`)
  await limit('', '', 1)
  await enqueue(keys.map((key, n) => withKey(`a${n}`, key)))
  await enqueue(keys.map((key, n) => withKey(`b${n}`, key)))
  const first: string[] = []
  for (let n = 0; n < 10 && first.length < keys.length; n += 1) first.push(...(await claim(200)))
  expect(first).toHaveLength(keys.length)
  expect(await claim(10)).toEqual([])
  await claim(10)
  expect(await lane.redis.zcard(lane.key('parked'))).toBe(keys.length)
  await lane.run('job_cancel', [1, '0', '{}', ...first])
  const second = new Set<string>()
  for (let n = 0; n < 10; n += 1) for (const id of await claim(200)) second.add(id)
  expect(second.size).toBe(keys.length)
})
