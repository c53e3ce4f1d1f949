/** The edges of what the scripts decide: whole tokens, the exact millisecond, order, and what a job leaves behind. Time stands still. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ServerClock } from '../support/clock/server-clock.ts'
import { type Answer, Lane, other } from './lane.ts'

let lane: Lane
let clock: ServerClock
let tokens: ReadonlyMap<string, string>
let now: number

const LEASE_MS = 60_000
const HOUR = 3_600_000

beforeAll(async () => {
  clock = await ServerClock.make()
  lane = await Lane.open(clock.env)
})
afterAll(async () => {
  await lane.close()
  await clock.remove()
})

async function fill(): Promise<void> {
  now = Date.now()
  clock.freeze(now)
  tokens = await lane.fill()
}

async function empty(): Promise<void> {
  now = Date.now()
  clock.freeze(now)
  await lane.redis.flushall()
}

const of = (id: string): string => tokens.get(id) ?? ''
const at = (ms: number): void => clock.freeze(now + ms)
const list = (answer: Answer | undefined): readonly Answer[] => answer as readonly Answer[]
const verdict = (answer: Answer): Answer | undefined => list(answer)[0]
const claimed = async (limit = 10): Promise<readonly Answer[]> => list(list(await lane.turn({}, limit))[4])
const afterUpkeep = async (): Promise<readonly Answer[]> => {
  await lane.run('lane_maintain', [10])
  // What upkeep made ready is given without a look at what is due.
  const looked = list(await lane.run('lane_stats', []))
  return looked[3] === 0 && looked[4] === 0 ? claimed() : []
}
const flags = async (limit: number): Promise<Answer | undefined> => list(await lane.turn({}, limit))[2]
const runOf = async (id: string): Promise<readonly string[]> =>
  ((await lane.redis.hget(lane.key('run'), id)) ?? '').split('|')
const epochOf = async (id: string): Promise<number> => Number((await lane.token(id)).split(':')[0])

describe('a token', () => {
  beforeEach(fill)

  const PARTS = [(token: string) => token.slice(0, -1), (token: string) => token.split(':')[0] ?? '', () => '']

  test.each(PARTS)('is compared to its end (%#)', async (partOf) => {
    const part = partOf(of('r1'))
    expect(await lane.run('lease_renew', [HOUR, 'r1', part])).toBe('l')
    expect(await lane.run('job_note', [1, 'r1', part, 'j9', 9, 0])).toBe('l')
    expect(verdict(await lane.turn({ forgotten: ['r1', part] }))).toBe('l')
    expect(verdict(await lane.turn({ kept: [HOUR, '', 1, 'r1', part, 7, ''] }))).toBe('l')
    expect(verdict(await lane.turn({ others: [other('release', 'r1', part)] }))).toBe('l')
    at(HOUR)
    expect(verdict(await lane.run('lease_reap', [0, 1, ...other('requeue', 'r1', part)]))).toBe('l')
    expect((await runOf('r1'))[0]).toBe(`R${of('r1')}`)
  })

  test.each(['c1', 'k1', 'd1', 'w1'])('of the attempt that is over holds nothing: %s', async (id) => {
    const before = await runOf(id)
    expect(await lane.run('lease_renew', [HOUR, id, of(id)])).toBe('l')
    expect(await lane.run('job_note', [1, id, of(id), 'j9', 9, 0])).toBe('l')
    expect(verdict(await lane.turn({ others: [other('release', id, of(id))] }))).not.toBe('a')
    expect(verdict(await lane.turn({ others: [other('dead', id, of(id), { extra: 'X' })] }))).not.toBe('a')
    expect(await runOf(id)).toEqual(before)
    expect(await lane.redis.zscore(lane.key('leases'), id)).toBeNull()
  })

  test('of another job takes nothing back', async () => {
    at(HOUR)
    expect(verdict(await lane.run('lease_reap', [0, 1, ...other('requeue', 'r1', of('r2'))]))).toBe('l')
    expect((await runOf('r1'))[0]).toBe(`R${of('r1')}`)
  })

  test('of a job that was taken back or cancelled by force is known no more', async () => {
    at(HOUR)
    expect(verdict(await lane.run('lease_reap', [0, 1, ...other('requeue', 'r1', of('r1'))]))).toBe('a')
    expect(await lane.run('job_cancel', [1, '', '{}', 'r2'])).toBe('c')
    for (const [id, kind] of [
      ['r1', 'requeue'],
      ['r1', 'release'],
      ['r2', 'cancel'],
      ['r2', 'retry'],
    ] as const) {
      expect(verdict(await lane.turn({ others: [other(kind, id, of(id), { extra: 5 })] }))).toBe('l')
    }
  })

  test('of a later attempt is higher, whatever the clock does, and follows the clock', async () => {
    await empty()
    await lane.enqueue(['e', ''])
    const release = async () => lane.turn({ others: [other('release', 'e', await lane.token('e'))] })
    const epochs: number[] = []
    for (const ms of [0, 0, -HOUR, HOUR]) {
      at(ms)
      expect(await claimed()).toEqual(['e'])
      epochs.push(await epochOf('e'))
      await release()
    }
    const [first = 0, second, third, last] = epochs
    expect(first).toBe(now * 1000)
    expect([second, third]).toEqual([first + 1, first + 2])
    expect(last).toBe((now + HOUR) * 1000)
  })
})

describe('the exact millisecond', () => {
  test('of a lease: over when its time is reached, not before', async () => {
    await fill()
    const decide = (id: string) => lane.run('lease_reap', [0, 1, ...other('requeue', id, of(id))])
    at(LEASE_MS - 1)
    expect(list(await lane.run('lease_reap', [10, 0]))[2]).toEqual([])
    expect(verdict(await decide('r1'))).toBe('l')
    at(LEASE_MS)
    expect(list(list(await lane.run('lease_reap', [10, 0]))[2])).toContain('r1')
    expect(verdict(await decide('r1'))).toBe('a')
  })

  test.each([
    ['a claim', claimed],
    ['upkeep', afterUpkeep],
  ] as const)('of delayed jobs and of retries, by %s', async (_who, take) => {
    await empty()
    await lane.enqueue(['retry', ''])
    tokens = await lane.claim(1)
    await lane.turn({ others: [other('retry', 'retry', of('retry'), { extra: 1000 })] })
    await lane.enqueue(['delayed', '0  1000  '])
    at(999)
    expect(await take()).toEqual([])
    at(1000)
    expect([...(await take())].sort()).toEqual(['delayed', 'retry'])
  })

  test('of a deadline', async () => {
    await empty()
    await lane.enqueue(['limited', `0   ${now + 1000} `], ['other', ''])
    at(999)
    expect(await flags(0)).toBe('m')
    expect(await lane.run('lane_bury', [10, '', '{}'])).toEqual([])
    at(1000)
    expect(await flags(5)).toBe('dm')
    expect(list(await lane.run('lane_maintain', [10]))[4]).toBe(1)
    expect(await lane.run('lane_bury', [10, '', '{}'])).toEqual(['limited'])
  })

  test('of a retention', async () => {
    await fill()
    await lane.turn({
      kept: [5000, 1000, 1, 'r1', of('r1'), 7, '=j1'],
      others: [other('dead', 'r2', of('r2'), { extra: 'X', keepMs: '3000' })],
    })
    const upkeep = async (ms: number) => {
      at(ms)
      return list(await lane.run('lane_maintain', [10])).slice(0, 2)
    }
    expect(await upkeep(999)).toEqual([0, 0])
    expect(await upkeep(1000)).toEqual([0, 1])
    expect(await upkeep(2999)).toEqual([0, 0])
    expect(await upkeep(3000)).toEqual([1, 0])
    expect(await upkeep(5000)).toEqual([1, 0])
    expect(await lane.redis.hmget(lane.key('defs'), 'r1', 'r2')).toEqual([null, null])
  })
})

describe('an order', () => {
  beforeEach(empty)

  test('of what became due: priority first, then time, then arrival', async () => {
    await lane.enqueue(
      ['b', '0  500  '],
      ['a', '0  500  '],
      ['low', '-1  100  '],
      ['high', '1  900  '],
      ['early', '0  400  '],
    )
    at(1000)
    expect(await claimed()).toEqual(['high', 'early', 'b', 'a', 'low'])
    const sequences = async (column: string, pattern: RegExp) =>
      Promise.all(['a', 'b'].map(async (id) => pattern.exec((await lane.redis.hget(lane.key(column), id)) ?? '')?.[1]))
    expect(await sequences('run', /\|(\d{14})\|/)).toEqual(await sequences('defs', /^\d+ (\d{14}) /))
  })

  test('of what was given back is what it was', async () => {
    await lane.enqueue(['low', '-1    '], ['first', ''], ['second', ''], ['high', '1    '])
    tokens = await lane.claim(4)
    await lane.turn({ others: [...tokens.keys()].map((id) => other('release', id, of(id))) })
    expect(await claimed()).toEqual(['high', 'first', 'second', 'low'])
  })

  test('goes past jobs that were cancelled while they waited, and counts without them', async () => {
    await lane.enqueue(...['1', '2', '3', '4', '5'].map((id) => [id, ''] as const))
    await lane.run('job_cancel', [0, '0', '{}', '1', '2', '4'])
    const queued = async () => list(await lane.run('lane_stats', []))[2]
    expect(await queued()).toBe(2)
    expect(await claimed(1)).toEqual(['3'])
    expect(await queued()).toBe(1)
    expect(await claimed()).toEqual(['5'])
    expect(await queued()).toBe(0)
    expect(await lane.redis.exists(lane.key('fifo'))).toBe(0)
  })

  test('has no place left of a job that was cancelled after its retry became due', async () => {
    await lane.enqueue(['retry', ''])
    tokens = await lane.claim(1)
    await lane.turn({ others: [other('retry', 'retry', of('retry'), { extra: 1000 })] })
    at(1000)
    await lane.run('lane_maintain', [10])
    expect(await lane.run('job_cancel', [0, '0', '{}', 'retry'])).toBe('c')
    expect(await lane.redis.exists(lane.key('ready'))).toBe(0)
  })

  test('names the next due time of both sets, and a look at many lanes sees what is due', async () => {
    await lane.enqueue(['retry', ''])
    tokens = await lane.claim(1)
    await lane.turn({ others: [other('retry', 'retry', of('retry'), { extra: 1000 })] })
    await lane.enqueue(['delayed', '0  2000  '])
    expect(list(await lane.turn({}, 1))[3]).toBe(String(now + 1000))
    expect(list(await lane.run('lane_probe', [])).slice(0, 2)).toEqual([0, '1000'])
    at(1000)
    expect(list(await lane.run('lane_probe', []))[0]).toBe(1)
  })
})

describe('what stays', () => {
  beforeEach(fill)

  test('of an attempt that was given back or crashed: its charge', async () => {
    await lane.turn({ others: [other('release', 'r1', of('r1')), other('requeue', 'r2', of('r2'), { crashes: 1 })] })
    expect((await runOf('r1')).slice(1, 3)).toEqual(['0', '0'])
    expect((await runOf('r2')).slice(1, 3)).toEqual(['1', '1'])
  })

  test('of a granted job: no deadline', async () => {
    await lane.enqueue(['limited', `9   ${now + HOUR} `])
    await lane.run('lane_bury', [10, '', '{}'])
    expect(await claimed(1)).toEqual(['limited'])
    expect(await lane.redis.zscore(lane.key('deadlines'), 'limited')).toBeNull()
  })

  test('of jobs that are not kept: nothing, under whatever key they were', async () => {
    await lane.run('lane_bury', [10, '', '{}'])
    await lane.enqueue(['keyed', '9    its key'])
    const token = (await lane.claim(1)).get('keyed') ?? ''
    await lane.run('job_note', [1, 'keyed', token, 'j1', 9, 1, '7 1 {}'])
    await lane.turn({ others: [other('retry', 'keyed', token, { extra: 0 })] })
    const again = (await lane.claim(1)).get('keyed') ?? ''
    await lane.turn({ forgotten: ['keyed', again] })
    for (const column of [
      'defs',
      'run',
      'failures',
      'terms',
      'history',
      'progress',
      'logs',
      'keyed',
      'ended',
      'outputs',
    ]) {
      expect([column, await lane.redis.hexists(lane.key(column), 'keyed')]).toEqual([column, 0])
    }
    expect(await lane.redis.hexists(lane.key('idempotency'), 'its key')).toBe(0)
    expect(await lane.redis.zscore(lane.key('leases'), 'keyed')).toBeNull()
    expect(verdict(await lane.enqueue(['next', '0    its key']))).toBe('q')
  })

  test.each([
    ['forgotten', (id: string) => ({ forgotten: [id, of(id)] })],
    ['kept', (id: string) => ({ kept: [HOUR, '', 1, id, of(id), 7, ''] })],
    ['dead', (id: string) => ({ others: [other('dead', id, of(id), { extra: 'X' })] })],
    ['to be tried again', (id: string) => ({ others: [other('retry', id, of(id), { extra: HOUR })] })],
  ])('of the lease of a job that is %s: nothing', async (_how, settlement) => {
    expect(verdict(await lane.turn(settlement('r1')))).toBe('a')
    expect(await lane.redis.zscore(lane.key('leases'), 'r1')).toBeNull()
    at(HOUR)
    expect(list(list(await lane.run('lease_reap', [10, 0]))[2])).not.toContain('r1')
  })
})
