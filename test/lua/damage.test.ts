/** A lane that somebody else wrote into: a script either refuses and writes nothing, or answers as usual. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SCRIPT_NAMES, type ScriptName } from '#dist/src/lua/catalog.js'
import { ServerClock } from '../support/clock/server-clock.ts'
import { callOf, Lane } from './lane.ts'

let lane: Lane
let clock: ServerClock
let tokens: ReadonlyMap<string, string>
/** The filled lane as DUMP gives it. */
let saved: readonly (readonly [key: string, dump: Buffer])[]

beforeAll(async () => {
  clock = await ServerClock.make()
  lane = await Lane.open(clock.env)
  tokens = await lane.fill()
  const keys = await lane.redis.keys('*')
  saved = await Promise.all(keys.map(async (key) => [key, (await lane.redis.dumpBuffer(key)) ?? Buffer.of()] as const))
  clock.set(7_200_000)
})
afterAll(async () => {
  await lane.close()
  await clock.remove()
})

async function restore(): Promise<void> {
  const pipeline = lane.redis.pipeline().flushall()
  for (const [key, dump] of saved) pipeline.restore(key, 0, dump)
  await pipeline.exec()
}

type Damage =
  | { readonly kind: 'field'; readonly role: string; readonly field: string; readonly value: string }
  | {
      readonly kind: 'spoilt'
      readonly role: string
      readonly field: string
      readonly at: number
      readonly value: string
    }
  | { readonly kind: 'member'; readonly role: string; readonly member: string; readonly score: string }
  | { readonly kind: 'entry'; readonly isFirst: boolean; readonly value: string }
  | { readonly kind: 'lost'; readonly role: string; readonly field: string }
  | { readonly kind: 'gone'; readonly role: string }

const HASHES = ['defs', 'run', 'idempotency', 'keyed', 'failures', 'terms', 'history', 'outputs', 'progress', 'logs']
const SETS = [
  ...['ready', 'scheduled', 'retrying', 'aside', 'leases', 'deadlines'],
  ...['completed', 'cancelled', 'dlq', 'keep', 'keep_outputs'],
]
const IDS = ['r1', 'r2', 'r3', 'r4', 'x1', 'c1', 'k1', 'd1', 'w1', 'f1', 'f2', 'p1', 's1', 'dl', 'i1', 'past']
const COUNTERS = ['paused', 'removed', 'orphans', 'sequence']

const digits = fc.oneof(
  fc.integer().map(String),
  fc.constantFrom('9'.repeat(15), '9'.repeat(16), '9'.repeat(400), '-', '1.5', '1e400'),
)
const junk = fc.oneof(
  fc.string({ maxLength: 60 }),
  fc.string({ unit: 'binary', maxLength: 40 }),
  digits,
  // Records that are nearly right.
  fc
    .tuple(
      fc.constantFrom(...'RXQWCKDZ'),
      fc.constantFrom('', '1:w:n.0', '9'.repeat(20)),
      digits,
      digits,
      digits,
      digits,
    )
    .map(
      ([state, token, attempts, crashes, sequence, at]) =>
        `${state}${token}|${attempts}|${crashes}|${sequence}|${at},${at},${at}`,
    ),
  fc.tuple(digits, digits, digits, digits).map(([a, b, c, d]) => `${a} ${b} ${c} ${d} \nx\n\nj`),
  fc
    .tuple(digits, digits)
    .map(([deadline, priority]) => `1700000000000 00000000000001 ${priority} ${deadline} \nx\n\nj`),
  fc.tuple(digits, fc.constantFrom(...IDS)).map(([priority, id]) => `00000000000001${priority}:${id}`),
  fc.tuple(digits, fc.constantFrom(...IDS)).map(([at, id]) => `${at}00000000000001${id}`),
)
const id = fc.constantFrom(...IDS)
const hash = fc.constantFrom(...HASHES)
const damage: fc.Arbitrary<Damage> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('field' as const), role: hash, field: id, value: junk }) },
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ kind: fc.constant('spoilt' as const), role: fc.constantFrom('defs', 'run'), field: id },
      ...{ at: fc.integer({ min: 0, max: 90 }), value: fc.oneof(fc.string({ maxLength: 3 }), digits) },
    }),
  },
  fc.record({
    kind: fc.constant('field' as const),
    role: fc.constant('meta'),
    field: fc.constantFrom(...COUNTERS),
    value: junk,
  }),
  {
    weight: 3,
    arbitrary: fc.record({
      ...{ kind: fc.constant('member' as const), role: fc.constantFrom(...SETS), member: fc.oneof(junk, id) },
      score: fc.constantFrom('0', '-1', '1.5', '-inf', '+inf', '1e300', '1700000000000', '99999999999999'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('entry' as const), isFirst: fc.boolean(), value: junk }) },
  fc.record({ kind: fc.constant('lost' as const), role: hash, field: id }),
  fc.record({ kind: fc.constant('gone' as const), role: fc.constantFrom('meta', 'fifo', ...HASHES, ...SETS) }),
)

async function apply(each: Damage): Promise<void> {
  const { redis } = lane
  if (each.kind === 'entry') await redis[each.isFirst ? 'lpush' : 'rpush'](lane.key('fifo'), each.value)
  else {
    const key = lane.key(each.role)
    if (each.kind === 'field') await redis.hset(key, each.field, each.value)
    else if (each.kind === 'member') await redis.zadd(key, each.score, each.member)
    else if (each.kind === 'lost') await redis.hdel(key, each.field)
    else if (each.kind === 'gone') await redis.del(key)
    else {
      const record = (await redis.hget(key, each.field)) ?? ''
      const at = Math.min(each.at, record.length)
      await redis.hset(key, each.field, record.slice(0, at) + each.value + record.slice(at + each.value.length))
    }
  }
}

async function staysWhole(name: ScriptName, damages: readonly Damage[]): Promise<void> {
  await restore()
  for (const each of damages) await apply(each)
  for (let round = 1; round <= 2; round += 1) {
    const before = await lane.digest()
    try {
      await lane.run(name, callOf(name, tokens))
    } catch (error) {
      // A second call of what refused would find the same.
      expect(await lane.digest(), String(error)).toBe(before)
      return
    }
  }
}

describe('whatever is damaged', () => {
  test.each(SCRIPT_NAMES)('%s writes all or nothing', async (name) => {
    const runs = lane.scripts[name].isWriting ? Number(process.env.HOLDFAST_FUZZ_RUNS ?? 150) : 30
    await fc.assert(
      fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 3 }), (damages) => staysWhole(name, damages)),
      { numRuns: runs },
    )
  })
})

describe('records that are damaged in one place', () => {
  /** The same damage in the records of all jobs. */
  async function spoil(role: string, at: number, insert: string, cut: number): Promise<void> {
    const records = await lane.redis.hgetall(lane.key(role))
    const spoilt = Object.entries(records).map(([each, text]) => [
      each,
      text.slice(0, at) + insert + text.slice(at + cut),
    ])
    await lane.redis.hset(lane.key(role), Object.fromEntries(spoilt))
  }

  const places = (['defs', 'run'] as const).flatMap((role) =>
    Array.from({ length: role === 'defs' ? 52 : 95 }, (_, at) => [role, at] as const),
  )
  const SPOILS = [
    ['a letter', 'x', 1],
    ['a sign', '-', 1],
    ['nothing', '', 1],
    ['400 digits', '9'.repeat(400), 0],
  ] as const

  test.each([
    'job_turn',
    'job_claim',
    'lease_reap',
    'job_cancel',
    'job_promote',
    'lane_bury',
    'lane_maintain',
  ] as const)(
    '%s writes all or nothing, wherever it is',
    async (name) => {
      for (const [what, insert, cut] of SPOILS) {
        for (const [role, at] of places) {
          await restore()
          await spoil(role, at, insert, cut)
          const before = await lane.digest()
          const failure = await lane.run(name, callOf(name, tokens)).then(
            () => null,
            (error: Error) => error,
          )
          if (failure !== null)
            expect(await lane.digest(), `${what} at ${at} of ${role}: ${failure.message}`).toBe(before)
        }
      }
    },
    60_000,
  )
})
