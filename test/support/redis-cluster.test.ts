/** The private Cluster of tests comes up, moves a slot key by key and survives the loss of a master. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ServerClock } from './clock/server-clock.ts'
import { rejection } from './event.ts'
import { RedisCluster, slotOf } from './redis-cluster.ts'

const HOUR = 3_600_000

let clock: ServerClock
let cluster: RedisCluster
beforeAll(async () => {
  clock = await ServerClock.make()
  cluster = await RedisCluster.start({ env: clock.env })
})
afterAll(async () => {
  await cluster.stop()
  await clock.remove()
})

const SLOT = slotOf('{tag}')

describe('a private Cluster', () => {
  it('has all its nodes, each of which knows who serves what', async () => {
    expect(cluster.nodes).toHaveLength(6)
    expect(cluster.url).toMatch(/^redis\+cluster:\/\/(127\.0\.0\.1:\d+,){5}127\.0\.0\.1:\d+$/)
    const master = await cluster.masterOf(SLOT)
    expect(await master.command('SET', '{tag}1', 'v')).toBe('OK')
    const other = await cluster.otherMaster(master)
    expect((await rejection(other.command('GET', '{tag}1'))).message).toBe(`MOVED ${SLOT} 127.0.0.1:${master.port}`)
  })

  it('stays in order when the clock of all its nodes moves', async () => {
    const master = await cluster.masterOf(SLOT)
    for (const shiftMs of [24 * HOUR, -HOUR, 0]) {
      clock.set(shiftMs)
      const [seconds] = (await master.command('TIME')) as [string]
      expect(Math.abs(Number(seconds) * 1000 - clock.now())).toBeLessThan(2000)
      await cluster.inOrder()
    }
    expect(await cluster.masterOf(SLOT)).toBe(master)
  })

  it('moves a slot, with a stop half way', async () => {
    const from = await cluster.masterOf(SLOT)
    const to = await cluster.otherMaster(from)
    for (const n of [1, 2, 3]) await from.command('SET', `{tag}${n}`, n)
    const migration = await cluster.migrate(SLOT, to)
    await migration.moveKeys(2)
    expect(await from.command('CLUSTER', 'COUNTKEYSINSLOT', SLOT)).toBe(1)
    expect((await rejection(from.command('GET', '{tag}none'))).message).toBe(`ASK ${SLOT} 127.0.0.1:${to.port}`)
    expect((await rejection(from.command('MGET', '{tag}1', '{tag}2', '{tag}3'))).message).toMatch(/^TRYAGAIN/)
    await migration.finish()
    expect(await cluster.masterOf(SLOT)).toBe(to)
    expect(await to.command('MGET', '{tag}1', '{tag}2', '{tag}3')).toEqual(['1', '2', '3'])
    expect((await rejection(from.command('GET', '{tag}1'))).message).toMatch(/^MOVED/)
  })

  it('gives the slots of a killed master to its replica, and takes it back as a replica', async () => {
    const { killed, promoted } = await cluster.failover(SLOT)
    expect(killed.pid).toBeNull()
    expect(promoted.pid).not.toBeNull()
    expect(await promoted.command('SET', '{tag}1', 'after')).toBe('OK')
    await killed.restart()
    await cluster.inOrder()
    expect(await cluster.masterOf(SLOT)).toBe(promoted)
    expect(((await killed.command('ROLE')) as unknown[])[0]).toBe('slave')
  }, 60_000)
})
