/** Which node owns a slot, as CLUSTER SLOTS tells it. */
import { expect, test } from 'vitest'
import { SlotMap, slotOf } from '#dist/src/backends/redis/slot-map.js'

const node = (host: string | null, port: number) => [
  host === null ? null : Buffer.from(host),
  port,
  Buffer.from('id'),
  [],
]
const asked = { host: 'asked', port: 1 }

test('keys of one hash tag share a slot', () => {
  expect(slotOf('123456789')).toBe(0x31c3)
  expect(slotOf('hf:{ns:lane}:ready')).toBe(slotOf('hf:{ns:lane}:meta'))
  expect(slotOf('hf:{ns:lane}:ready')).toBe(slotOf('ns:lane'))
})

test('the primary of each range owns its slots; replicas own none', () => {
  const map = SlotMap.read(
    [
      [0, 99, node('a', 1), node('r', 9)],
      [200, 16_383, node('b', 2)],
    ],
    asked,
  )
  expect([0, 99, 100, 199, 200, 16_383].map((slot) => map.ownerOf(slot))).toEqual([
    'a:1',
    'a:1',
    undefined,
    undefined,
    'b:2',
    'b:2',
  ])
  expect([...map.addresses()]).toEqual(['a:1', 'b:2'])
})

test('a node that does not know its own host is where it was asked', () => {
  const map = SlotMap.read(
    [
      [0, 1, node('', 5)],
      [2, 3, node(null, 6)],
      [4, 5, node('?', 7)],
      [6, 7, node('::1', 8)],
    ],
    asked,
  )
  expect([...map.addresses()]).toEqual(['asked:5', 'asked:6', 'asked:7', '[::1]:8'])
})

test('a changed owner is seen', () => {
  const map = SlotMap.read([[0, 99, node('a', 1)]], asked)
  expect(map.differsFrom(SlotMap.read([[0, 199, node('a', 1)]], asked))).toBe(false)
  expect(
    map.differsFrom(
      SlotMap.read(
        [
          [0, 50, node('a', 1)],
          [51, 99, node('b', 1)],
        ],
        asked,
      ),
    ),
  ).toBe(true)
  expect(map.assign(7, 'b:2')).toBe(true)
  expect(map.assign(7, 'b:2')).toBe(false)
  expect(map.ownerOf(7)).toBe('b:2')
  expect(map.ownerOf(8)).toBe('a:1')
})
