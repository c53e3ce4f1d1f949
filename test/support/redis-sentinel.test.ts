/** The private Sentinels of tests replace a master that is killed or frozen, and what comes back follows the new one. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RedisSentinels } from './redis-sentinel.ts'

let set: RedisSentinels
beforeAll(async () => {
  set = await RedisSentinels.start()
})
afterAll(() => set.stop())

describe('private Sentinels', () => {
  it('know the master and its replica', async () => {
    const master = await set.master()
    expect(master).toBe(set.servers[0])
    expect(set.sentinels).toHaveLength(3)
    expect(await master.command('SET', 'k', 'v')).toBe('OK')
    expect(await master.command('WAIT', 1, 2000)).toBe(1)
  })

  it('replace a master that was killed', async () => {
    const { old, promoted } = await set.failover()
    expect(old.pid).toBeNull()
    expect(await promoted.command('GET', 'k')).toBe('v')
    await old.restart()
    await set.follows(old)
  })

  it('replace a master that was frozen, which follows once it wakes', async () => {
    const { old, promoted } = await set.failover('pause')
    await promoted.command('SET', 'k', 'new')
    await old.resume()
    await set.follows(old)
    expect(await old.command('GET', 'k')).toBe('new')
  })
})
