/** What the store makes of its calls: their order, what half of them done means, what is looked up again, and what is refused at once. */
import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { RedisReply } from '#dist/src/backends/redis/servers.js'
import { RedisSession } from '#dist/src/backends/redis/session.js'
import { RedisStore } from '#dist/src/backends/redis/store.js'
import { systemClock } from '#dist/src/clock.js'
import { HoldfastError } from '#dist/src/errors.js'
import { claim, job } from '../sqlite/support.ts'
import { ServerClock } from '../support/clock/server-clock.ts'
import { eventually, gate } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { RedisServer } from '../support/redis-server.ts'
import { openBackend } from './model-subject.ts'
import { open } from './opening.ts'
import { ScriptedServers, type Sent } from './scripted-servers.ts'

let clock: ServerClock
let server: RedisServer
const closers: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  clock = await ServerClock.make()
  server = await RedisServer.start({ env: clock.env })
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  clock.set(0)
})
afterAll(async () => {
  await server.stop()
  await clock.remove()
})

const LANES = { listFor: () => null, ready: () => {}, left: () => {} }
const STORE = { clock: systemClock, lanes: LANES, onEnded: () => {} }
const fresh = (): string => `test-${randomBytes(6).toString('hex')}`

/** A store whose calls a test sees and answers itself. */
function scripted(): { readonly servers: ScriptedServers; readonly store: RedisStore } {
  const servers = new ScriptedServers()
  return { servers, store: new RedisStore(new RedisSession(servers, 'ns'), STORE) }
}

/** The same before a real server, on which a test makes single calls fail. */
async function faulty(namespace: string): Promise<{ readonly servers: ScriptedServers; readonly store: RedisStore }> {
  const real = await open(server.url)
  const { servers } = scripted()
  const session = new RedisSession(servers, namespace)
  servers.answer = ({ name, keys, args }) => {
    const script = Object.values(session.scripts).find((each) => each.name === name)
    return script === undefined ? real.command(name, keys[0] ?? '', [...keys, ...args]) : real.run(script, keys, args)
  }
  return { servers, store: new RedisStore(session, STORE) }
}

const notDone = (): Promise<never> =>
  Promise.reject(new HoldfastError('STORE_UNAVAILABLE', 'away', { details: { outcome: 'notDone' } }))

function failing(servers: ScriptedServers, isMeant: (sent: Sent) => boolean): void {
  const { answer } = servers
  servers.answer = (sent) => (isMeant(sent) ? notDone() : answer(sent))
}

const inLane = (lane: string, id: string) => job(id, { id: `${lane}/${id}`, lane })
const namesOf = ({ sent }: ScriptedServers): readonly string[] => sent.map(({ name }) => name)
/** Of one plain job. */
const ADDED: RedisReply = Buffer.from('q')
const STORED: RedisReply = [Buffer.from('q'), [], Buffer.from('')]
const NOTHING_DUE: RedisReply = [Buffer.from(''), Buffer.from('1'), Buffer.from(''), Buffer.from(''), [], [], [], []]

describe('a call that was done in part', () => {
  test('is unknown: a turn whose first lane gave jobs', async () => {
    const { servers, store } = await faulty(fresh())
    await store.handlers['job.enqueue']({ jobs: [inLane('a', '1'), inLane('b', '2')] })
    const { answer } = servers
    failing(servers, ({ name, keys }) => name === 'job_claim' && keys[0]?.includes(':b}') === true)
    const request = { settlements: [], claims: [claim({ lanes: ['a', 'b'] })], resend: false }
    expect(await failureOf(store.handlers['job.turn'](request))).toMatchObject({ outcome: 'unknown' })
    servers.answer = answer
    const { grants } = await store.handlers['job.turn']({ ...request, resend: true })
    expect(grants[0]?.jobs.map(({ id }) => id)).toContain('a/1')
  })

  test('is unknown: an enqueue of which one lane was stored', async () => {
    const { servers, store } = scripted()
    servers.answer = ({ name, keys }) =>
      keys[0]?.includes('hf:{') && keys[0].includes(':b}')
        ? notDone()
        : Promise.resolve(name === 'job_add' ? ADDED : STORED)
    const both = store.handlers['job.enqueue']({ jobs: [inLane('a', '1'), inLane('b', '2')] })
    expect(await failureOf(both)).toMatchObject({ outcome: 'unknown' })
    const none = store.handlers['job.enqueue']({ jobs: [inLane('b', '3')] })
    expect(await failureOf(none)).toMatchObject({ outcome: 'notDone' })
  })

  test('is not: a turn on one lane that did not come through', async () => {
    const { servers, store } = scripted()
    servers.answer = notDone
    const turn = store.handlers['job.turn']({ settlements: [], claims: [claim({ lanes: ['a'] })], resend: false })
    expect(await failureOf(turn)).toMatchObject({ outcome: 'notDone' })
  })
})

describe('the order of calls', () => {
  test('a lane is noted before a job is sent to it, once', async () => {
    const { servers, store } = scripted()
    const noted = gate()
    servers.answer = async ({ name }) => {
      if (name !== 'lane_register') return ADDED
      await noted.passed
      return Buffer.from('1')
    }
    const first = store.handlers['job.enqueue']({ jobs: [inLane('a', '1')] })
    await eventually(() => servers.count('lane_register') === 1, 'the note')
    expect(servers.count('job_add')).toBe(0)
    noted.open()
    await first
    await store.handlers['job.enqueue']({ jobs: [inLane('a', '2')] })
    expect(namesOf(servers)).toEqual(['lane_register', 'job_add', 'job_add'])
  })

  test('a lane that could not be noted gets no job', async () => {
    const { servers, store } = scripted()
    servers.answer = ({ name }) => (name === 'lane_register' ? notDone() : Promise.resolve(STORED))
    const enqueued = store.handlers['job.enqueue']({ jobs: [inLane('a', '1')] })
    expect(await failureOf(enqueued)).toMatchObject({ outcome: 'notDone' })
    expect(servers.count('job_add')).toBe(0)
  })

  test('a claim waits while a change of server is dealt with; what has ended is told at once', async () => {
    const { servers, store } = scripted()
    const dealtWith = gate()
    servers.settled = () => dealtWith.passed
    servers.answer = ({ args }) =>
      Promise.resolve(args[0] === -1 ? [Buffer.from('a'), ...(NOTHING_DUE as RedisReply[]).slice(1)] : NOTHING_DUE)
    const claiming = store.handlers['job.turn']({ settlements: [], claims: [claim()], resend: false })
    const done = { kind: 'complete', id: 'mail/1', token: '1:w:n.0', durationMs: 1, output: null } as const
    const { verdicts } = await store.handlers['job.turn']({
      settlements: [{ ...done, keepMs: 0, keepOutputMs: null }],
      claims: [],
      resend: false,
    })
    expect(verdicts).toEqual(['applied'])
    expect(servers.count('job_turn')).toBe(1)
    expect(servers.count('job_claim')).toBe(0)
    dealtWith.open()
    await claiming
    expect(servers.count('job_claim')).toBe(1)
  })
})

describe('a claim that is sent again', () => {
  test('finds all of its first grant, however many leases there are, and none of another', async () => {
    const { store } = await faulty(fresh())
    const ids = Array.from({ length: 1_100 }, (_, number) => `${number}`)
    await store.handlers['job.enqueue']({ jobs: ids.map((id) => job(id)) })
    const ask = (nonce: string, limit: number, resend: boolean) =>
      store.handlers['job.turn']({ settlements: [], claims: [claim({ nonce, limit })], resend })
    const tokensOf = ({ grants }: Awaited<ReturnType<typeof ask>>) => grants[0]?.jobs.map(({ token }) => token)
    await ask('other', 520, false)
    const first = tokensOf(await ask('mine', 530, false))
    expect(first).toHaveLength(530)
    expect(tokensOf(await ask('mine', 530, true))).toEqual(first)
    expect(tokensOf(await ask('new', 530, true))).toHaveLength(50)
  })
})

describe('the clock of the server alone counts', () => {
  test.each([-3_600_000, 3_600_000])('by %i ms', async (aheadMs) => {
    clock.set(aheadMs)
    const { store } = await faulty(fresh())
    const serverMs = Date.now() + aheadMs
    await store.handlers['job.enqueue']({
      jobs: [job('later', { delayMs: 60_000 }), job('limited', { deadlineAt: serverMs + 60_000 })],
    })
    const { jobs } = await store.handlers['job.get']({ ids: ['mail/later'] })
    expect(jobs[0]?.state).toBe('scheduled')
    expect(Math.abs((jobs[0]?.runAt ?? 0) - serverMs - 60_000)).toBeLessThan(10_000)
    const { grants } = await store.handlers['job.turn']({ settlements: [], claims: [claim()], resend: false })
    expect(Math.abs((grants[0]?.dueInMs ?? 0) - 60_000)).toBeLessThan(10_000)
    expect(Math.abs((grants[0]?.jobs[0]?.deadlineInMs ?? 0) - 60_000)).toBeLessThan(10_000)
  })

  test('when lanes that are out of use are dropped', async () => {
    const { servers, store } = await faulty(fresh())
    await store.handlers['queue.policy']({ changes: [{ lane: 'a', paused: false }] })
    const listed = () => store.registry.list()
    await store.handlers['store.maintain']({ limit: 10, keepDeadMs: null })
    expect(await listed()).toEqual(['a'])
    clock.set(49 * 3_600_000)
    await store.handlers['store.maintain']({ limit: 10, keepDeadMs: null })
    expect(await listed()).toEqual([])
    expect(servers.count('lane_drop')).toBe(1)
  })
})

describe('a look for leases that ran out', () => {
  test('is one call while no lane is new, and sees one that another process made', async () => {
    const namespace = fresh()
    const [{ servers, store }, other] = [await faulty(namespace), await faulty(namespace)]
    const put = (lane: string) => other.store.handlers['job.enqueue']({ jobs: [inLane(lane, '1')] })
    const take = (lane: string) =>
      other.store.handlers['job.turn']({
        settlements: [],
        claims: [claim({ lanes: [lane], leaseMs: 1 })],
        resend: false,
      })
    const look = async (): Promise<readonly [calls: number, expired: readonly string[]]> => {
      const before = servers.sent.length
      const { expired } = await store.handlers['lease.reap']({ decisions: [], limit: 10 })
      return [servers.sent.length - before, expired.map(({ id }) => id)]
    }
    for (const lane of ['a', 'b']) await put(lane)
    await look()
    expect(await look()).toEqual([1, []])
    await put('c')
    await take('c')
    const seen = await eventually(async () => {
      const [, ids] = await look()
      return ids.length > 0 && ids
    }, 'the lease that ran out')
    expect(seen).toEqual(['c/1'])
    store.registry.forget()
    expect((await look())[0]).toBeGreaterThan(2)
  })
})

describe('a list of all lanes', () => {
  test('page by page has every job once', async () => {
    const { store } = await faulty(fresh())
    const ids = ['a', 'b', 'c'].flatMap((lane) => ['1', '2', '3', '4'].map((id) => inLane(lane, id)))
    for (const each of ids) await store.handlers['job.enqueue']({ jobs: [each] })
    const seen: string[] = []
    let cursor: string | null = null
    for (let page = 0; page < 20; page += 1) {
      const query = { lane: null, states: null, type: null, limit: 3, cursor }
      const reply: Awaited<ReturnType<(typeof store.handlers)['job.list']>> = await store.handlers['job.list'](query)
      seen.push(...reply.jobs.map(({ id }) => id))
      cursor = reply.cursor
      if (cursor === null) break
    }
    expect(seen).toHaveLength(ids.length)
    expect([...seen].sort()).toEqual(ids.map(({ id }) => id).sort())
  })
})

describe('another server', () => {
  test('without the data of the one before is told of its lanes anew', async () => {
    const own = await RedisServer.start()
    closers.push(() => own.stop())
    const store = await openBackend(own.url, 'ns')
    closers.push(() => store.close())
    await store.call('job.enqueue', { jobs: [job('1')] })
    await own.command('FLUSHALL')
    await own.kill()
    await own.restart()
    const enqueued = () => store.call('job.enqueue', { jobs: [job('2')] }).catch(() => null)
    await eventually(enqueued, 'an enqueue after the restart')
    expect(await own.command('ZRANGE', 'hf:{ns}:lanes', 0, -1)).toEqual(['mail'])
  })

  test('with a later keyspace is refused', async () => {
    const namespace = fresh()
    await server.command('SET', `hf:{${namespace}}:keyspace`, '2')
    expect(await failureOf(openBackend(server.url, namespace))).toMatchObject({
      code: 'STORE_SCHEMA_TOO_NEW',
      outcome: 'refused',
    })
  })
})
