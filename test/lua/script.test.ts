/** What each script answers: success, every letter of refusal, and the same call again. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ServerClock } from '../support/clock/server-clock.ts'
import { type Answer, Lane, other } from './lane.ts'

let lane: Lane
let clock: ServerClock
let tokens: ReadonlyMap<string, string>

beforeAll(async () => {
  clock = await ServerClock.make()
  lane = await Lane.open(clock.env)
})
afterAll(async () => {
  await lane.close()
  await clock.remove()
})
beforeEach(async () => {
  clock.set(0)
  tokens = await lane.fill()
})

const of = (id: string): string => tokens.get(id) ?? ''
const HOUR = 3_600_000
const list = (answer: Answer | undefined): readonly Answer[] => answer as readonly Answer[]
const first = (answer: Answer): Answer | undefined => list(answer)[0]
const state = async (id: string): Promise<string | undefined> => (await lane.redis.hget(lane.key('run'), id))?.[0]

describe('job_enqueue', () => {
  test('stores, and answers e for ids and d for keys that are there', async () => {
    const now = Date.now()
    const jobs = [
      ['n1', ''],
      ['n2', `0 ${now + HOUR}   `],
      ['n3', '0    k'],
      ['n1', ''],
      ['f1', ''],
      ['n4', '0    k'],
      ['n5', '0    my key'],
    ] as const
    expect(await lane.enqueue(...jobs)).toEqual(['qsqeedd', ['n3', 'i1'], ''])
    const before = await lane.digest()
    const sequence = (await lane.redis.hget(lane.key('meta'), 'sequence')) ?? ''
    expect(await lane.enqueue(...jobs)).toEqual(['eeeeedd', ['n3', 'i1'], ''])
    // Sequences that were counted for nothing are no harm.
    await lane.redis.hset(lane.key('meta'), { sequence })
    expect(await lane.digest()).toBe(before)
  })

  test('says w when the lane has something to start sooner than before', async () => {
    await lane.redis.flushall()
    const now = Date.now()
    expect(await lane.enqueue(['a', ''])).toEqual(['q', [], 'wn'])
    expect(await lane.enqueue(['b', ''])).toEqual(['q', [], ''])
    expect(await lane.enqueue(['c', `0 ${now + HOUR}   `])).toEqual(['s', [], 'w'])
    expect(await lane.enqueue(['d', `0 ${now + 2 * HOUR}   `])).toEqual(['s', [], ''])
    expect(await lane.enqueue(['e', `0 ${now + HOUR / 2}   `])).toEqual(['s', [], 'w'])
  })
})

describe('job_add', () => {
  test('q with n for the first of a lane and w for one that nothing stands before; e for an id that is there', async () => {
    await lane.redis.flushall()
    expect(await lane.run('job_add', ['a', 'type\n\nj1'])).toBe('qnw')
    expect(await lane.run('job_add', ['a', 'type\n\nj2'])).toBe('e')
    expect(await lane.run('job_add', ['b', 'type\n\nj3'])).toBe('q')
    expect([...(await lane.claim(9)).keys()]).toEqual(['a', 'b'])
    expect(await lane.run('job_add', ['c', 'type\n\nj4'])).toBe('qw')
    expect(await lane.redis.hget(lane.key('defs'), 'a')).toMatch(/^\d{13} 0{13}1 0 {2}\ntype\n\nj1$/)
  })

  test('with the wake list: one token, and only where there is something to start sooner than before', async () => {
    await lane.redis.flushall()
    const wakes = lane.key('wakes')
    const keys = [...lane.keysOf('job_add'), wakes]
    const tokens: number[] = []
    for (const id of ['a', 'b']) {
      await lane.run('job_add', [id, 'type\n\nj1'], keys)
      tokens.push(await lane.redis.llen(wakes))
    }
    await lane.claim(9)
    await lane.run('job_add', ['c', 'type\n\nj1'], keys)
    tokens.push(await lane.redis.llen(wakes))
    await lane.redis.del(wakes)
    await lane.run('job_enqueue', ['d', '', 'type\n\nj1'], [...lane.keysOf('job_enqueue'), wakes])
    tokens.push(await lane.redis.llen(wakes))
    await lane.claim(9)
    await lane.run('job_enqueue', ['e', '', 'type\n\nj1'], [...lane.keysOf('job_enqueue'), wakes])
    tokens.push(await lane.redis.llen(wakes))
    expect(tokens).toEqual([1, 1, 1, 0, 1])
  })

  test('w only when ready has nothing either', async () => {
    await lane.redis.flushall()
    await lane.enqueue(['first', '5    '])
    expect(await lane.run('job_add', ['a', 'type\n\nj1'])).toBe('q')
  })

  test('nothing, and nothing done, when the clock went back or the sequence is at its end', async () => {
    await lane.redis.flushall()
    await lane.redis.rpush(lane.key('fifo'), `9999999999999${'1'.padStart(14, '0')}later`)
    expect(await lane.run('job_add', ['a', 'type\n\nj1'])).toBe('')
    await lane.redis.del(lane.key('fifo'))
    await lane.redis.hset(lane.key('meta'), 'sequence', '99999999999999')
    expect(await lane.run('job_add', ['a', 'type\n\nj1'])).toBe('')
    expect(await lane.redis.hget(lane.key('meta'), 'sequence')).toBe('99999999999999')
    expect(await lane.redis.exists(lane.key('defs'))).toBe(0)
  })
})

describe('job_turn', () => {
  test('settles: a, then s; l for another token, g for no job', async () => {
    const settle = () =>
      lane.turn({
        forgotten: ['r1', of('r1'), 'r2', '1:w:x.0', 'none', of('r1')],
        kept: [HOUR, '', 1, 'r3', of('r3'), 7, ''],
      })
    expect(first(await settle())).toBe('alga')
    // What is not kept is gone with its token.
    expect(first(await settle())).toBe('glgs')
    expect(await state('r3')).toBe('C')
  })

  test.each([
    ['retry', 'a', 'W', { extra: HOUR }],
    ['dead', 'a', 'D', { extra: 'X' }],
    ['cancel', 'a', 'K', {}],
    ['release', 'a', 'Q', {}],
    ['requeue', 'a', 'Q', {}],
  ] as const)('%s is applied, and known as repeated', async (kind, verdict, after, options) => {
    const settle = (token: string) => lane.turn({ others: [other(kind, 'r1', token, options)] })
    expect(first(await settle(of('r2')))).toBe('l')
    expect(first(await settle(of('r1')))).toBe(verdict)
    expect(await state('r1')).toBe(after)
    expect(first(await settle(of('r1')))).toBe('s')
    expect(first(await lane.turn({ others: [other(kind, 'none', of('r1'), options)] }))).toBe('g')
  })

  test.each(['retry', 'release', 'requeue'])('%s of a job that is to be cancelled cancels it', async (kind) => {
    expect(first(await lane.turn({ others: [other(kind, 'x1', of('x1'), { extra: 5 })] }))).toBe('c')
    expect(await state('x1')).toBe('K')
  })

  test('a job whose definition is damaged is dead, with its crashes as they were', async () => {
    await lane.redis.hset(lane.key('defs'), 'r1', 'x')
    expect(first(await lane.turn({ others: [other('release', 'r1', of('r1'), { crashes: '' })] }))).toBe('a')
    expect(await lane.redis.hget(lane.key('run'), 'r1')).toMatch(/^D[^|]+\|1\|0\|\d{14}\|/)
  })

  test('claims by priority, time and order of arrival, and says what is left', async () => {
    clock.set(HOUR)
    await lane.run('lane_bury', [10, '', '{}'])
    const answer = list(await lane.turn({}, 3))
    expect(answer[4]).toEqual(['p1', 'f1', 'f2'])
    expect(answer[2]).toBe('m')
    expect(list(list(await lane.turn({}, 10))[4])).toEqual(expect.arrayContaining(['i1', 'w1', 's1', 'past']))
    expect(list(await lane.turn({}, 10))[2]).toBe('')
  })

  test('d: a deadline has passed, nothing is claimed; p: the lane is paused', async () => {
    expect(list(await lane.turn({}, 5)).slice(2, 5)).toEqual(['dm', expect.anything(), []])
    await lane.redis.hset(lane.key('meta'), 'paused', '1')
    expect(list(await lane.turn({}, 5)).slice(2, 5)).toEqual(['p', expect.anything(), []])
  })
})

describe('leases', () => {
  test('lease_renew: r, c, l, g', async () => {
    const args = ['r1', of('r1'), 'x1', of('x1'), 'r2', of('r1'), 'f1', '', 'none', '']
    expect(await lane.run('lease_renew', [HOUR, ...args])).toBe('rcllg')
    expect(await lane.run('lease_renew', [HOUR, ...args])).toBe('rcllg')
    expect(Number(await lane.redis.zscore(lane.key('leases'), 'r1'))).toBeGreaterThan(Date.now() + HOUR - 60_000)
  })

  test('lease_reap: names what ran out, then a, and l for one that was renewed or taken', async () => {
    expect(list(await lane.run('lease_reap', [10, 0]))[2]).toEqual([])
    const requeue = (id: string) => other('requeue', id, of(id), { crashes: 1 })
    expect(first(await lane.run('lease_reap', [0, 1, ...requeue('r1')]))).toBe('l')
    clock.set(HOUR)
    expect([...list(list(await lane.run('lease_reap', [10, 0]))[2])].sort()).toEqual(['r1', 'r2', 'r3', 'r4', 'x1'])
    await lane.run('lease_renew', [HOUR, 'r2', of('r2')])
    const decide = () => lane.run('lease_reap', [0, 3, ...requeue('r1'), ...requeue('r2'), ...requeue('x1')])
    expect(first(await decide())).toBe('alc')
    // The token of one that was taken is not known any more.
    expect(first(await decide())).toBe('lll')
    expect(first(await lane.turn({ forgotten: ['r1', of('r1')] }))).toBe('l')
  })

  test("lease_reap: a lease of what does not run is nobody's, and goes", async () => {
    await lane.redis.zadd(lane.key('leases'), '1', 'c1', '1', 'k1', '1', 'd1')
    expect(list(await lane.run('lease_reap', [10, 0]))[2]).toEqual([])
    expect(await lane.redis.zrangebyscore(lane.key('leases'), '0', '1')).toEqual([])
    expect([...(await lane.redis.zrange(lane.key('leases'), '0', '-1'))].sort()).toEqual(['r1', 'r2', 'r3', 'r4', 'x1'])
  })

  test('lease_find: what a claim was given, page by page', async () => {
    const page = list(await lane.run('lease_find', [':w:nonce.', 0, 3]))
    expect(page[1]).toBe(3)
    const rest = list(await lane.run('lease_find', [':w:nonce.', 3, 3]))
    expect([...list(page[2]), ...list(rest[2])].sort()).toEqual(['r1', 'r2', 'r3', 'r4', 'x1'])
    expect(list(await lane.run('lease_find', [':w:nonc.', 0, 9]))[2]).toEqual([])
  })

  test('job_note: a, l, g', async () => {
    const none = [9, 0]
    const first = [4, 'r1', of('r1'), 'j5', ...none, 'f1', '', 'j', ...none]
    const args = [...first, 'r2', of('r1'), 'j', ...none, 'none', '', 'j', ...none]
    expect(await lane.run('job_note', args)).toBe('allg')
    expect(await lane.redis.hget(lane.key('progress'), 'r1')).toBe('j5')
    expect(await lane.redis.hlen(lane.key('progress'))).toBe(1)
  })
})

describe('operators', () => {
  test('job_cancel: c, r, t, n, x; the same again', async () => {
    await lane.redis.hset(lane.key('defs'), 'i1', 'damaged')
    const ids = ['f1', 'p1', 's1', 'w1', 'r1', 'x1', 'c1', 'd1', 'none', 'i1', 'f1']
    expect(await lane.run('job_cancel', [0, '', '{}', ...ids])).toBe('ccccrrttnxt')
    expect(await lane.run('job_cancel', [0, '', '{}', ...ids])).toBe('ttttrrttnxt')
    expect(await lane.run('job_cancel', [1, '', '{}', 'r1', 'x1'])).toBe('cc')
    expect(first(await lane.turn({ forgotten: ['r1', of('r1')] }))).toBe('l')
    expect(await lane.run('job_cancel', [0, 0, '{}', 'f2', 'f2'])).toBe('cn')
  })

  test('job_promote: p, i, n, x; the same again', async () => {
    await lane.redis.hset(lane.key('defs'), 'i1', 'damaged')
    expect(await lane.run('job_promote', ['s1', 'w1', 'f1', 'r1', 'c1', 'none', 'i1'])).toBe('ppiiinx')
    expect(await lane.run('job_promote', ['s1', 'w1'])).toBe('ii')
    expect(await lane.redis.zcard(lane.key('scheduled'))).toBe(0)
  })

  test('lane_bury: only what is past its deadline, once', async () => {
    expect(await lane.run('lane_bury', [10, '', '{"code":"D"}'])).toEqual(['dl'])
    expect(await state('dl')).toBe('D')
    expect(await lane.run('lane_bury', [10, '', '{"code":"D"}'])).toEqual([])
  })

  test('lane_bury does not name what it could not read', async () => {
    await lane.redis.hset(lane.key('defs'), 'dl', 'damaged')
    expect(await lane.run('lane_bury', [10, '', '{}'])).toEqual([])
    expect(await lane.redis.zcard(lane.key('deadlines'))).toBe(0)
  })

  test('lane_maintain: outputs first go, then jobs, and due jobs are made ready', async () => {
    expect(await lane.run('lane_maintain', [100])).toEqual([0, 0, 0, 0, 1])
    clock.set(120_000)
    expect(await lane.run('lane_maintain', [100])).toEqual([0, 1, 2, 0, 1])
    expect(await lane.redis.hexists(lane.key('outputs'), 'c1')).toBe(0)
    clock.set(2 * HOUR)
    expect(await lane.run('lane_maintain', [1])).toEqual([1, 0, 0, 1, 1])
    expect(await lane.redis.hexists(lane.key('defs'), 'c1')).toBe(0)
    expect(await lane.run('lane_maintain', [1])).toEqual([0, 0, 0, 0, 1])
  })

  test('lane_maintain drops a member that names no job, and counts it', async () => {
    await lane.redis.zadd(lane.key('scheduled'), '1', 'junk')
    expect(list(await lane.run('lane_maintain', [100]))[2]).toBe(1)
    expect(list(await lane.run('lane_stats', []))[1]).toBe(1)
    expect(await lane.redis.zscore(lane.key('scheduled'), 'junk')).toBeNull()
  })

  test('lane_stats counts each state', async () => {
    const [paused, orphans, ...counts] = list(await lane.run('lane_stats', []))
    expect([paused, orphans]).toEqual([0, 0])
    expect(counts.slice(0, 7)).toEqual([6, 1, 1, 5, 1, 1, 1])
  })

  test('lane_probe: ready, next due, next expiry', async () => {
    const [ready, due, expires] = list(await lane.run('lane_probe', []))
    expect(ready).toBe(1)
    expect(Number(due)).toBeGreaterThan(0)
    expect(Number(expires)).toBeGreaterThan(0)
    const none = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => `hf:{lua:none}:${name}`)
    expect(list(await lane.run('lane_probe', [], [lane.key('lanes'), ...none])).slice(0, 3)).toEqual([0, '', ''])
    const mark = async () => list(await lane.run('lane_probe', [], [lane.key('lanes')]))
    expect(await mark()).toEqual(['0 '])
    await lane.redis.zadd(lane.key('lanes'), 5, 'a', 6, 'b')
    expect(await mark()).toEqual(['2 6'])
    await lane.redis.zrem(lane.key('lanes'), 'b')
    await lane.redis.zadd(lane.key('lanes'), 7, 'c')
    expect(await mark()).toEqual(['2 7'])
    await lane.redis.del(lane.key('lanes'))
  })

  test('lane_drop: 0 with jobs or a policy, 1 for a lane without', async () => {
    expect(await lane.run('lane_drop', [])).toBe(0)
    await lane.redis.del(lane.key('defs'))
    await lane.redis.hset(lane.key('meta'), 'paused', '1')
    expect(await lane.run('lane_drop', [])).toBe(0)
    await lane.redis.hdel(lane.key('meta'), 'paused')
    expect(await lane.run('lane_drop', [])).toBe(1)
    expect(await lane.redis.exists(lane.key('meta'))).toBe(0)
    expect(await lane.run('lane_drop', [])).toBe(1)
  })

  test('lane_forget: a lane noted before a time, and not one noted since', async () => {
    await lane.run('lane_register', ['a lane'])
    const at = Number(await lane.redis.zscore(lane.key('lanes'), 'a lane'))
    expect(await lane.run('lane_forget', ['a lane', at - 1])).toBe(0)
    expect(await lane.run('lane_forget', ['none', at])).toBe(0)
    expect(await lane.redis.zscore(lane.key('lanes'), 'a lane')).not.toBeNull()
    expect(await lane.run('lane_forget', ['a lane', at])).toBe(1)
    expect(await lane.redis.zscore(lane.key('lanes'), 'a lane')).toBeNull()
  })

  test('lane_register and wake_push: again changes nothing but the time', async () => {
    await lane.run('lane_register', ['a lane'])
    await lane.run('lane_register', ['a lane'])
    expect(await lane.redis.zrange(lane.key('lanes'), '0', '-1')).toEqual(['a lane'])
    expect([
      await lane.run('wake_push', [1]),
      await lane.run('wake_push', [1]),
      await lane.run('wake_push', [2]),
    ]).toEqual([1, 1, 2])
  })

  test('worker_beat, worker_gone, worker_list: who was heard of lately, and nothing of those who were not', async () => {
    await lane.redis.del(lane.key('workers'), lane.key('beats'))
    const ask = async (ms: number) => list(await lane.run('worker_list', [ms, 10])).slice(1)
    expect(await ask(60_000)).toEqual([])
    expect(await lane.run('worker_beat', [60_000, 'a', '{"n":1}', 'b', ''])).toBe(2)
    expect(await lane.run('worker_beat', [60_000, 'a', '{"n":2}'])).toBe(2)
    const at = Number(await lane.redis.zscore(lane.key('beats'), 'a'))
    expect(await ask(60_000)).toContain('{"n":2}')
    await lane.redis.zadd(lane.key('beats'), at - 70_000, 'a')
    expect((await ask(60_000)).filter((each) => each === 'a')).toEqual([])
    expect((await ask(80_000)).slice(-3)).toEqual(['a', `${at - 70_000}`, '{"n":2}'])
    await lane.run('worker_beat', [60_000, 'c', '{}'])
    expect((await lane.redis.hkeys(lane.key('workers'))).sort()).toEqual(['b', 'c'])
    await lane.redis.zadd(lane.key('beats'), at + 3_600_000, 'b')
    expect(await lane.run('worker_beat', [60_000, 'c', '{}'])).toBe(1)
    for (const role of ['workers', 'beats']) {
      const leftMs = await lane.redis.pttl(lane.key(role))
      expect(leftMs).toBeGreaterThan(60_000)
      expect(leftMs).toBeLessThanOrEqual(120_000)
    }
    expect(await lane.run('worker_gone', ['c', 'none'])).toBe(0)
    expect(await lane.redis.exists(lane.key('workers'), lane.key('beats'))).toBe(0)
  })

  test('keyspace_step: moves the version on for the owner of the lock alone, and only from where it was', async () => {
    const [version, lock] = [lane.key('keyspace'), lane.key('lock')]
    expect(await lane.run('keyspace_step', ['another', '1', '2'])).toBe(0)
    expect(await lane.redis.mget(version, lock)).toEqual(['1', 'token'])
    expect(await lane.run('keyspace_step', ['token', '1', ''])).toBe(0)
    expect(await lane.redis.mget(version, lock)).toEqual(['1', null])
    await lane.redis.set(lock, 'token')
    expect(await lane.run('keyspace_step', ['token', '7', '8'])).toBe(0)
    await lane.redis.set(lock, 'token')
    expect(await lane.run('keyspace_step', ['token', '1', '2'])).toBe(1)
    expect(await lane.redis.mget(version, lock)).toEqual(['2', null])
  })

  test('job_list: each source newest first, before a place', async () => {
    const [ids, sequences] = list(await lane.run('job_list', [Number.MAX_SAFE_INTEGER, 50, 'falckd'])).map(list)
    expect(new Set(ids)).toEqual(
      new Set(['r1', 'r2', 'r3', 'r4', 'x1', 'c1', 'k1', 'd1', 'w1', 'f1', 'f2', 'p1', 's1', 'dl', 'i1', 'past']),
    )
    const [older] = list(await lane.run('job_list', [Number(sequences?.[ids?.indexOf('f2') ?? 0]), 50, 'f'])).map(list)
    expect(older).toEqual(['f1'])
  })

  test('job_read: columns of a job, nothing for no job, no payload without values', async () => {
    const [found, none] = list(await lane.run('job_read', [1, 'c1', 'none']))
    expect(none).toBeNull()
    expect(list(found)[0]).toMatch(/\n\nj\{"n":1\}$|\nj\{"n":1\}$/)
    expect(list(found)[7]).toBe('j"out"')
    const [bare] = list(await lane.run('job_read', [0, 'c1']))
    expect(list(bare)[0]).toMatch(/type\n\n$/)
    expect(list(bare)[7]).toBeNull()
  })
})
