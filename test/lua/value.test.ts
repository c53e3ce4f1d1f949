/** What passes through the scripts unchanged: any bytes, any id, large values, large numbers, empty and largest batches. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { BATCH } from '#dist/src/backends/redis/session.js'
import { SCRIPT_NAMES } from '#dist/src/lua/catalog.js'
import { type Answer, callOf, Lane, other } from './lane.ts'

let lane: Lane

beforeAll(async () => {
  lane = await Lane.open()
})
afterAll(() => lane.close())
beforeEach(() => lane.redis.flushall())

const list = (answer: Answer | undefined): readonly Answer[] => answer as readonly Answer[]

const ODD_IDS = [
  ...[
    'a|b',
    'a:b',
    '-1:x',
    '7:w:n.0',
    'a b',
    ' ',
    'a\nb',
    '\u0000',
    'a\u0000b',
    '{a}',
    '}',
    '%d',
    '.*',
    "'",
    '"',
    '\\',
  ],
  ...['0', '-', '1e9', 'nil', 'é', '漢字', '👍', 'x'.repeat(26), 'x'.repeat(27), 'x'.repeat(2000), '*', '[a-z]', '$1'],
]

describe('ids', () => {
  test('of any characters live through every move', async () => {
    const now = Date.now()
    await lane.enqueue(...ODD_IDS.map((id) => [id, `-7   ${now + 3_600_000} key of ${id}`] as const))
    expect(await lane.run('job_cancel', [0, '', '{}', 'none'])).toBe('n')
    const tokens = await lane.claim(100)
    expect([...tokens.keys()].sort()).toEqual(ODD_IDS.map((id) => Buffer.from(id).toString('latin1')).sort())
    for (const [move, state] of [
      ['retry', 'W'],
      ['promote', 'Q'],
      ['claim', 'R'],
      ['requeue', 'Q'],
      ['cancel', 'K'],
    ] as const) {
      for (const id of ODD_IDS) {
        const token = await lane.token(id)
        if (move === 'promote') expect(await lane.run('job_promote', [id])).toBe('p')
        else if (move === 'claim') await lane.turn({}, 1)
        else if (move === 'cancel') expect(await lane.run('job_cancel', [0, '', '{}', id])).toBe('c')
        else expect(list(await lane.turn({ others: [other(move, id, token, { extra: 60_000 })] }))[0]).toBe('a')
      }
      for (const id of ODD_IDS) expect([id, (await lane.redis.hget(lane.key('run'), id))?.[0]]).toEqual([id, state])
    }
    for (const place of ['ready', 'scheduled', 'retrying', 'aside', 'leases', 'deadlines', 'fifo'])
      expect([place, await lane.redis.exists(lane.key(place))]).toEqual([place, 0])
  })

  test('of any characters leave fifo when they are cancelled before they ran', async () => {
    await lane.enqueue(...ODD_IDS.map((id) => [id, ''] as const))
    expect(await lane.run('job_cancel', [0, 0, '{}', ...ODD_IDS])).toBe('c'.repeat(ODD_IDS.length))
    expect(await lane.redis.keys('hf:{lua:default}:*')).toEqual([lane.key('meta')])
  })
})

const ALL_BYTES = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256))

describe('values', () => {
  test.each([
    ['with every byte, NUL and newline', ALL_BYTES],
    ['of 1 MiB', Buffer.alloc(1_048_576, ALL_BYTES)],
    ['that is empty', Buffer.of()],
  ])('a payload, output, progress and failure %s comes back as it was', async (_what, bytes) => {
    const body = Buffer.concat([Buffer.from('type\n\nb'), bytes])
    await lane.run('job_enqueue', ['a', '', body, 'b', '', body])
    const answer = list(await lane.turn({}, 2))
    const definition = String(list(answer[5])[0])
    expect(Buffer.from(definition.slice(definition.indexOf('\n') + 1), 'latin1').equals(body)).toBe(true)
    const [a, b] = [await lane.token('a'), await lane.token('b')]
    const reported = Buffer.concat([Buffer.from('b'), bytes])
    await lane.run('job_note', [1, 'a', a, reported, 9, 0])
    expect((await lane.redis.hgetBuffer(lane.key('progress'), 'a'))?.equals(reported)).toBe(true)
    const failed = other('retry', 'b', b, { extra: 0 })
    failed[7] = bytes
    await lane.turn({ kept: ['', '', 1, 'a', a, 1, Buffer.concat([Buffer.from('='), bytes])], others: [failed] })
    expect((await lane.redis.hgetBuffer(lane.key('outputs'), 'a'))?.equals(bytes)).toBe(true)
    expect((await lane.redis.hgetBuffer(lane.key('failures'), 'b'))?.equals(bytes)).toBe(true)
  })

  test('a claim answers with as many jobs as fit into about half a megabyte, and leaves the rest in order', async () => {
    const body = Buffer.concat([Buffer.from('type\n\nb'), Buffer.alloc(400_000, 1)])
    for (let n = 0; n < 8; n += 1) await lane.run('job_enqueue', [`j${n}`, '', body])
    const claimed: Answer[] = []
    const sizes: number[] = []
    while (claimed.length < 8) {
      const ids = list(list(await lane.turn({}, 200))[4])
      claimed.push(...ids)
      sizes.push(ids.length)
    }
    expect(claimed).toEqual(Array.from({ length: 8 }, (_, n) => `j${n}`))
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4)
  })
})

describe('numbers of 16 digits', () => {
  const LARGE = 8_640_000_000_000_000

  test('are times, retentions, leases and delays', async () => {
    await lane.enqueue(
      ['s', `0 ${LARGE}   `],
      ['d', `0   ${LARGE} `],
      ['p', '9007199254740991    '],
      ['q', '-9007199254740991    '],
    )
    expect(await lane.redis.zscore(lane.key('scheduled'), '000000000000010:s')).toBe(String(LARGE))
    expect(await lane.run('job_cancel', [0, '', '{}', 's', 'q'])).toBe('cc')
    const answer = list(await lane.run('job_turn', [2, 'w', 'n', LARGE, 0, 0, 0, 0, 0]))
    expect(answer[4]).toEqual(['p', 'd'])
    const [p, d] = [await lane.token('p'), await lane.token('d')]
    const verdicts = await lane.turn({
      kept: [LARGE, LARGE, 1, 'd', d, LARGE, '=j1'],
      others: [other('retry', 'p', p, { extra: LARGE })],
    })
    expect(list(verdicts)[0]).toBe('aa')
    expect(Number(await lane.redis.zscore(lane.key('keep'), 'd'))).toBeGreaterThan(LARGE)
    expect(await lane.redis.zcard(lane.key('retrying'))).toBe(1)
    expect(await lane.run('job_promote', ['p'])).toBe('p')
  })
})

describe('batches', () => {
  test('that are empty change nothing', async () => {
    await lane.fill()
    const before = await lane.digest()
    expect(await lane.run('job_enqueue', [])).toEqual(['', [], ''])
    expect(await lane.run('job_note', [0])).toBe('')
    expect(await lane.run('job_promote', [])).toBe('')
    expect(await lane.run('job_cancel', [0, '', '{}'])).toBe('')
    expect(await lane.run('job_read', [1])).toEqual([])
    expect(await lane.run('lease_renew', [1000])).toBe('')
    expect(list(await lane.run('lease_reap', [0, 0]))[0]).toBe('')
    expect(list(await lane.turn({}, -1))[0]).toBe('')
    expect(await lane.run('lane_bury', [0, '', '{}'])).toEqual([])
    expect(await lane.digest()).toBe(before)
  })

  test('that are the largest the store sends, and ten times that, pass', async () => {
    const size = BATCH.enqueueJobs * 10
    const ids = Array.from({ length: size }, (_, n) => `job-${n}`)
    expect(list(await lane.enqueue(...ids.map((id) => [id, ''] as const)))[0]).toBe('q'.repeat(size))
    const tokens = await lane.claim(size)
    expect(tokens.size).toBe(size)
    const pairs = ids.flatMap((id) => [id, tokens.get(id) ?? ''])
    expect(await lane.run('lease_renew', [60_000, ...pairs])).toBe('r'.repeat(size))
    expect(list(list(await lane.run('lease_find', [':w:nonce.', 0, size]))[2])).toHaveLength(size)
    const half = size / 2
    const kept = ids.slice(half).flatMap((id) => [id, tokens.get(id) ?? '', 1, '=j1'])
    const settled = await lane.turn({ forgotten: pairs.slice(0, size), kept: [0, '', half, ...kept] })
    expect(list(settled)[0]).toBe('a'.repeat(size))
    expect(list(await lane.run('lane_maintain', [size]))[0]).toBe(half)
    expect(await lane.redis.keys('hf:{lua:default}:*')).toEqual([lane.key('meta')])
  })
})

test.each(SCRIPT_NAMES)('%s answers the same after SCRIPT FLUSH', async (name) => {
  let tokens = await lane.fill()
  const shape = (answer: Answer): string => JSON.stringify(answer).replace(/\d{5,}/g, 'N')
  const before = shape(await lane.run(name, callOf(name, tokens)))
  tokens = await lane.fill()
  await lane.redis.script('FLUSH', 'SYNC')
  expect(shape(await lane.run(name, callOf(name, tokens)))).toBe(before)
})
