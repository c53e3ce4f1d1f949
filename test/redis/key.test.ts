/** Names of keys: all of a lane are on one node of a Cluster, all of a namespace too, and an ACL pattern covers both. */
import { expect, test } from 'vitest'
import {
  keyPatterns,
  keyspaceKey,
  LaneKeys,
  laneOfWakeKey,
  nudgeKey,
  registryKey,
  wakeKey,
} from '#dist/src/backends/redis/key.js'
import { slotOf } from '#dist/src/backends/redis/slot-map.js'
import { loadCatalog } from '#dist/src/lua/catalog.js'

const keysOf = (namespace: string, lane: string): readonly string[] => {
  const keys = new LaneKeys(namespace, lane)
  return [...new Set(Object.values(loadCatalog()).flatMap((script) => keys.of(script)))]
}
const ofNamespace = (namespace: string): readonly string[] => [
  registryKey(namespace),
  keyspaceKey(namespace),
  wakeKey(namespace, 'mail'),
  wakeKey(namespace, 'default'),
  nudgeKey(namespace, 'me'),
]
const slotsOf = (keys: readonly string[]): ReadonlySet<number> => new Set(keys.map(slotOf))

test('the keys of a lane share a slot, those of another have their own', () => {
  expect(keysOf('ns', 'mail').length).toBeGreaterThan(20)
  expect(slotsOf(keysOf('ns', 'mail'))).toEqual(new Set([slotOf('ns:mail')]))
  expect(slotsOf(keysOf('ns', 'default'))).toEqual(new Set([slotOf('ns:default')]))
})

test('the keys of a namespace share a slot', () => {
  expect(slotsOf(ofNamespace('ns'))).toEqual(new Set([slotOf('ns')]))
})

test('no two names meet', () => {
  const all = ['ns', 'ns2'].flatMap((namespace) => [
    ...ofNamespace(namespace),
    ...['mail', 'wake', 'lanes'].flatMap((lane) => keysOf(namespace, lane)),
  ])
  // What a script declares of the namespace is not taken by lane.
  expect(new Set(all).size).toBe(all.length)
})

test('a wake list tells its lane', () => {
  expect(laneOfWakeKey(wakeKey('ns', 'mail'))).toBe('mail')
})

test('the patterns for an ACL user cover all keys of the namespace and none of another', () => {
  const isCovered = (key: string): boolean =>
    keyPatterns('ns').some((pattern) => key.startsWith(pattern.slice(0, -1)) && pattern.endsWith('*'))
  for (const key of [...keysOf('ns', 'mail'), ...ofNamespace('ns')]) expect([key, isCovered(key)]).toEqual([key, true])
  for (const key of [...keysOf('ns2', 'mail'), ...ofNamespace('ns2')])
    expect([key, isCovered(key)]).toEqual([key, false])
})
