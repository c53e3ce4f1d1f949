/** Calls over a network that fails: each settles in time, says what may have happened, and is never sent twice. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { RedisServers } from '#dist/src/backends/redis/servers.js'
import { eventually, within } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { FaultProxy } from '../support/proxy.ts'
import { RedisServer } from '../support/redis-server.ts'
import { ECHO, INCREMENT, open } from './opening.ts'

const CALL_MS = 300

let server: RedisServer
let proxy: FaultProxy

beforeAll(async () => {
  server = await RedisServer.start()
})

afterAll(() => server.stop())

beforeEach(async () => {
  await server.command('FLUSHALL')
  proxy = await FaultProxy.start({ upstream: server.port })
})

afterEach(() => proxy.close())

const connect = (callTimeoutMs = CALL_MS): Promise<RedisServers> => open(proxy.url, { callTimeoutMs })

const count = async (key = 'n'): Promise<number> => Number((await server.command('GET', key)) ?? 0)

const increment = (servers: RedisServers): Promise<unknown> => servers.run(INCREMENT, ['n'], [])

/** Once a call comes through again; each of those that did not has done nothing, or is told as unknown. */
const healed = (servers: RedisServers): Promise<unknown> =>
  eventually(() => servers.run(ECHO, ['n'], ['back']).catch(() => null), 'a call that comes through')

describe('a call', () => {
  test('whose reply is cut ran once and is unknown', async () => {
    const servers = await connect()
    await increment(servers)
    proxy.set({ mode: 'cutReply', times: 1 })
    expect(await failureOf(increment(servers))).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'unknown' })
    await healed(servers)
    expect(await count()).toBe(2)
  })

  test('whose request is lost runs into its deadline and did not run', async () => {
    const servers = await connect()
    await increment(servers)
    proxy.set({ mode: 'dropRequests', times: 1 })
    const startedMs = performance.now()
    expect(await failureOf(increment(servers))).toMatchObject({ code: 'STORE_TIMEOUT', outcome: 'unknown' })
    expect(performance.now() - startedMs).toBeLessThan(CALL_MS * 2)
    await healed(servers)
    expect(await count()).toBe(1)
  })

  test('whose reply is lost runs into its deadline and is not sent again', async () => {
    const servers = await connect()
    await increment(servers)
    proxy.set({ mode: 'dropReplies', times: 1 })
    expect(await failureOf(increment(servers))).toMatchObject({ code: 'STORE_TIMEOUT', outcome: 'unknown' })
    await healed(servers)
    expect(await count()).toBe(2)
  })

  test('that was lost by its script cache is not sent a third time', async () => {
    const servers = await connect()
    proxy.set({ mode: 'cutReply', times: 1, when: (piece) => piece.includes('EVAL\r\n') })
    await server.command('SCRIPT', 'FLUSH')
    expect(await failureOf(increment(servers))).toMatchObject({ outcome: 'unknown' })
    await healed(servers)
    expect(await count()).toBe(1)
  })

  test.each(['blackhole', 'stall'] as const)('in a %s ends at its deadline, as all beside it', async (fault) => {
    const servers = await connect()
    await increment(servers)
    proxy.set(fault)
    const failures = await within(
      Promise.all(Array.from({ length: 50 }, () => failureOf(increment(servers)))),
      'all failures',
      CALL_MS * 3,
    )
    expect(new Set(failures.map(({ outcome }) => outcome))).toEqual(new Set(['unknown']))
    expect(failures[0]).toMatchObject({ code: 'STORE_TIMEOUT' })
    proxy.set('pass')
    await healed(servers)
  })

  test('while nothing is connected fails at once and did nothing', async () => {
    const servers = await connect()
    proxy.set('refuse')
    proxy.reset()
    await eventually(async () => (await failureOf(increment(servers))).outcome === 'notDone', 'the loss')
    const startedMs = performance.now()
    expect(await failureOf(increment(servers))).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
    expect(performance.now() - startedMs).toBeLessThan(50)
    proxy.set('pass')
    await healed(servers)
    expect(await count()).toBe(0)
  })

  test('gets its own reply after a late one', async () => {
    const servers = await connect()
    const late = failureOf(
      (async () => {
        proxy.set({ mode: 'delay', ms: CALL_MS * 1.2 })
        return servers.run(ECHO, ['n'], ['late'])
      })(),
    )
    expect(await late).toMatchObject({ code: 'STORE_TIMEOUT' })
    proxy.set('pass')
    await healed(servers)
    // On a connection of its own: the late one went with the reply.
    expect(proxy.counters.accepted).toBe(2)
    for (let number = 0; number < 20; number += 1)
      expect(String(await servers.run(ECHO, ['n'], [number]))).toBe(String(number))
  })

  test('gets its own reply among many on a slow line', async () => {
    const servers = await connect(2000)
    proxy.set({ mode: 'delay', ms: 20, jitterMs: 60 })
    const replies = await Promise.all(Array.from({ length: 200 }, (_, number) => servers.run(ECHO, ['n'], [number])))
    expect(replies.map(Number)).toEqual(Array.from({ length: 200 }, (_, number) => number))
  })

  test('answered in time counts as answered though the process was held up past the deadline', async () => {
    // Without the proxy, which the same process would hold up too.
    const servers = await open(server.url, { callTimeoutMs: CALL_MS })
    const reply = servers.run(ECHO, ['n'], ['here'])
    const untilMs = performance.now() + CALL_MS * 1.5
    while (performance.now() < untilMs);
    expect(String(await reply)).toBe('here')
  })

  test('before which the server half-closed is told as not done or unknown', async () => {
    const servers = await connect()
    await increment(servers)
    proxy.set('halfClose')
    await increment(servers)
    const { code, outcome } = await failureOf(increment(servers))
    expect(code).toBe('STORE_UNAVAILABLE')
    proxy.set('pass')
    await healed(servers)
    expect(outcome === 'notDone' ? [2] : [2, 3]).toContain(await count())
  })
})

test('under a line that comes and goes no call is done twice and none is lost', async () => {
  const servers = await connect()
  proxy.set({ mode: 'flapping', upMs: 30, downMs: 30 })
  let done = 0
  let open = 0
  const caller = async (): Promise<void> => {
    for (let call = 0; call < 100; call += 1) {
      const outcome = await increment(servers).then(
        () => 'done',
        (error: { details: { outcome: string } }) => error.details.outcome,
      )
      if (outcome === 'done') done += 1
      else if (outcome === 'unknown') open += 1
      else await new Promise(setImmediate)
    }
  }
  await Promise.all(Array.from({ length: 20 }, caller))
  proxy.set('pass')
  await healed(servers)
  const runs = await count()
  expect(runs).toBeGreaterThanOrEqual(done)
  expect(runs).toBeLessThanOrEqual(done + open)
  expect(proxy.counters.accepted).toBeGreaterThan(1)
  expect(proxy.connections).toBe(1)
})

test('a connection that is refused for long is tried ever more rarely', async () => {
  const servers = await connect()
  proxy.set('refuse')
  proxy.reset()
  await eventually(() => proxy.counters.refused >= 6, 'six tries')
  const startedMs = performance.now()
  const before = proxy.counters.refused
  await eventually(() => performance.now() - startedMs > 500, 'half a second')
  expect(proxy.counters.refused - before).toBeLessThan(10)
  proxy.set('pass')
  await healed(servers)
})
