/** How long a link pauses before it tries again, by chance and failures that are handed in. */
import { expect, test } from 'vitest'
import { parseRedisUrl } from '#dist/src/backends/redis/url.js'
import { backOffMs, targetOf } from '#dist/src/backends/redis/wiring.js'

const always = (value: number) => ({ next: () => value, bytes: (count: number) => new Uint8Array(count) })

test('the bound doubles from 50 ms to one second', () => {
  expect([0, 1, 2, 3, 4, 5, 100, 10_000].map((failures) => backOffMs(failures, always(1)))).toEqual([
    50, 100, 200, 400, 800, 1000, 1000, 1000,
  ])
})

test('the pause is anything up to the bound', () => {
  expect([0, 0.5].map((chance) => backOffMs(3, always(chance)))).toEqual([0, 200])
})

test('each try begins with another Sentinel', () => {
  const { driver } = targetOf(parseRedisUrl('redis+sentinel://a,b,c/main'))
  expect([0, 1, 2, 3].map((attempt) => driver(attempt).sentinels?.[0]?.host)).toEqual(['a', 'b', 'c', 'a'])
})
