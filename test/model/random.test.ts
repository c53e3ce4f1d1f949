/** Ids sort in the order they were made, whatever the clock does, and nonces do not repeat. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createUlidFactory, nonce, systemRandom } from '#dist/src/random.js'
import { SeededRandom } from '../simulation/random.ts'

const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const clockOf = (at: { ms: number }) => ({ now: () => at.ms, monotonic: () => at.ms })

test('15 ids made in sequence sort in that order as text, also when the clock stands still or goes back', () => {
  const jump = fc.oneof(fc.constant(0), fc.integer({ min: -100_000, max: 100_000 }), fc.constantFrom(-3_600_000, 0.4))
  fc.assert(
    fc.property(fc.array(jump, { maxLength: 200 }), fc.nat(), (jumps, seed) => {
      const at = { ms: 1_800_000_000_000 }
      const next = createUlidFactory(clockOf(at), new SeededRandom(seed))
      const ids = jumps.map((by) => {
        at.ms += by
        return next()
      })
      expect([...ids].sort()).toEqual(ids)
      expect(new Set(ids).size).toBe(ids.length)
      for (const id of ids) expect(id).toMatch(ULID)
    }),
  )
})

test('15 the last digits carry over when they overflow within one millisecond', () => {
  const ones = { next: () => 0.999, bytes: (count: number) => new Uint8Array(count).fill(0xff) }
  const next = createUlidFactory(clockOf({ ms: 5 }), ones)
  const ids = Array.from({ length: 3_000 }, next)
  expect(ids[0]).toBe('0000000005FZZZZZZZZZZZZZZZ')
  expect(ids[1]).toBe('0000000005G000000000000000')
  expect([...ids].sort()).toEqual(ids)
})

test('15 the time part is that of the clock, and two makers do not collide', () => {
  const at = { ms: 1_469_918_176_385 }
  // The example of the specification: https://github.com/ulid/spec
  expect(createUlidFactory(clockOf(at), systemRandom)().slice(0, 10)).toBe('01ARYZ6S41')
  const [a, b] = [createUlidFactory(clockOf(at), systemRandom), createUlidFactory(clockOf(at), systemRandom)]
  expect(new Set(Array.from({ length: 20_000 }, (_, index) => (index % 2 === 0 ? a() : b()))).size).toBe(20_000)
})

test('nonces carry 96 bits and do not repeat', () => {
  const nonces = Array.from({ length: 50_000 }, () => nonce(systemRandom))
  expect(new Set(nonces).size).toBe(nonces.length)
  for (const text of nonces.slice(0, 100)) expect(text).toMatch(/^[0-9a-f]{24}$/)
})

test('system randomness is even: numbers in [0, 1), bytes of every value', () => {
  const seen = new Set<number>()
  let sum = 0
  for (let index = 0; index < 20_000; index += 1) {
    const number = systemRandom.next()
    expect(number >= 0 && number < 1).toBe(true)
    sum += number
    for (const byte of systemRandom.bytes(2)) seen.add(byte)
  }
  expect(sum / 20_000).toBeCloseTo(0.5, 1)
  expect(seen.size).toBe(256)
  expect(systemRandom.bytes(10_000)).toHaveLength(10_000)
})
