/** Who is woken, and by which token: one idle worker, never all, and never a busy one at the cost of an idle one. */
import { afterEach, expect, test } from 'vitest'
import { wakeKey } from '#dist/src/backends/redis/key.js'
import type { ServerFacts } from '#dist/src/backends/redis/servers.js'
import { RedisSession } from '#dist/src/backends/redis/session.js'
import { Wake } from '#dist/src/backends/redis/wake.js'
import { systemClock, systemTimers } from '#dist/src/clock.js'
import { systemRandom } from '#dist/src/random.js'
import { eventually } from '../support/event.ts'
import { ScriptedServers } from './scripted-servers.ts'

const opened: Wake[] = []
afterEach(() => {
  for (const wake of opened.splice(0)) wake.close()
})

interface Process {
  readonly servers: ScriptedServers
  readonly wake: Wake
  /** Lanes for which a token was pushed, in order. */
  tokens(): readonly string[]
}

function start(facts: Partial<ServerFacts> = {}): Process {
  const servers = new ScriptedServers(facts)
  const session = new RedisSession(servers, 'ns')
  const wake = new Wake({ session, clock: systemClock, timers: systemTimers, random: systemRandom })
  opened.push(wake)
  const pushed = () => servers.sent.filter(({ name }) => name === 'wake_push').map(({ keys }) => keys[0] ?? '')
  return {
    servers,
    wake,
    tokens: () => pushed().flatMap((key) => (key.includes(':wake:') ? key.slice(key.lastIndexOf(':') + 1) : [])),
  }
}

/** A worker of the process, and what it heard. */
function worker({ wake }: Process, lanes: readonly string[], isIdle = true) {
  const heard: (string | null)[] = []
  const subscription = wake.subscribe(lanes, (lane) => heard.push(lane))
  subscription.want(isIdle)
  return { heard, subscription }
}

test('a lane that is ready wakes one idle worker of its own process, and then no other process', () => {
  const own = start()
  const workers = [worker(own, ['a'], false), worker(own, ['b']), worker(own, ['a']), worker(own, ['a'])]
  own.wake.ready('a')
  expect(workers.map(({ heard }) => heard)).toEqual([[], [], ['a'], []])
  expect(own.tokens()).toEqual([])
})

test('without an idle worker of its own it leaves one token for the others', () => {
  const own = start()
  worker(own, ['a'], false)
  own.wake.ready('a')
  expect(own.tokens()).toEqual(['a'])
  expect(own.servers.sent[0]?.args).toEqual([1])
})

test('a worker that leaves work behind passes a token on, a busy one not at every turn', () => {
  const own = start()
  worker(own, ['a'])
  own.wake.left('a', false)
  own.wake.left('a', false)
  own.wake.left('a', true)
  expect(own.tokens()).toEqual(['a', 'a'])
})

test('an idle worker waits for all lanes that are wanted, and hears of the one that gave a token', async () => {
  const own = start()
  const { heard } = worker(own, ['a', 'b'])
  expect(own.servers.waits[0]?.lists.slice(1)).toEqual([wakeKey('ns', 'a'), wakeKey('ns', 'b')])
  own.servers.waits[0]?.end(wakeKey('ns', 'b'))
  await eventually(() => own.servers.waits.length === 2, 'the next wait')
  expect(heard).toEqual(['b'])
  expect(own.tokens()).toEqual([])
})

test('a token that comes when nobody wants it any more goes to others, and no further one is taken', async () => {
  const own = start()
  const { heard, subscription } = worker(own, ['a'])
  subscription.want(false)
  own.servers.waits[0]?.end(wakeKey('ns', 'a'))
  await eventually(() => own.tokens().length > 0, 'the token', 2_000)
  expect(own.tokens()).toEqual(['a'])
  expect(heard).toEqual([])
  expect(own.servers.waits).toHaveLength(1)
})

test('a wait that lacks a lane is interrupted once, and the next one has all', async () => {
  const own = start()
  worker(own, ['a'])
  worker(own, ['b'])
  worker(own, ['c'])
  const nudge = own.servers.waits[0]?.lists[0] ?? ''
  expect(own.servers.sent.filter(({ name, keys }) => name === 'wake_push' && keys[0] === nudge)).toHaveLength(1)
  own.servers.waits[0]?.end(nudge)
  await eventually(() => own.servers.waits.length === 2, 'the next wait')
  expect(own.servers.waits[1]?.lists).toHaveLength(4)
  expect(own.tokens()).toEqual([])
})

test('a wait that fails is replaced after a pause', async () => {
  const own = start()
  worker(own, ['a'])
  own.servers.waits[0]?.fail()
  await eventually(() => own.servers.waits.length === 2, 'the next wait')
})

test('the script that stores jobs leaves the token itself, but not in a Cluster, nor where a worker of this process is idle', () => {
  const own = start()
  expect(own.wake.listFor('a')).toBe(wakeKey('ns', 'a'))
  const { subscription } = worker(own, ['a'])
  expect(own.wake.listFor('a')).toBeNull()
  expect(own.wake.listFor('b')).toBe(wakeKey('ns', 'b'))
  subscription.want(false)
  expect(own.wake.listFor('a')).toBe(wakeKey('ns', 'a'))
  expect(own.tokens()).toEqual([])
  expect(start({ isCluster: true }).wake.listFor('a')).toBeNull()
})
