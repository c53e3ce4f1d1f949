/** Namespaces that share a server, and nothing else, whatever their names look like. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RedisBackend } from '#dist/src/backends/redis/backend.js'
import { RedisServer } from '../support/redis-server.ts'
import { claim, job, openBackend, wholeLife } from './support.ts'

const NAMESPACES = ['a', 'a.b', 'a_', 'a-', 'A', 'aa', 'lanes', 'a.lanes']
const LANES = ['mail', 'lanes', 'keyspace', 'wake', 'a', 'mail.2', 'meta']

let server: RedisServer
const backends = new Map<string, RedisBackend>()

beforeAll(async () => {
  server = await RedisServer.start()
  for (const namespace of NAMESPACES) backends.set(namespace, await openBackend(server.url, namespace))
})
afterAll(async () => {
  await Promise.all([...backends.values()].map((backend) => backend.close()))
  await server.stop()
})

const of = (namespace: string): RedisBackend => {
  const backend = backends.get(namespace)
  if (backend === undefined) throw new Error(`no namespace ${namespace}`)
  return backend
}

/** The keys of a namespace with all that is in them. */
async function contents(namespace: string): Promise<ReadonlyMap<string, string>> {
  const keys = (await server.command('KEYS', `hf:{${namespace}[:}]*`)) as string[]
  const dumps = await Promise.all(keys.sort().map(async (key) => [key, JSON.stringify(await valueUnder(key))] as const))
  return new Map(dumps)
}

async function valueUnder(key: string): Promise<unknown> {
  const type = String(await server.command('TYPE', key))
  if (type === 'hash') return server.command('HGETALL', key)
  if (type === 'list') return server.command('LRANGE', key, 0, -1)
  if (type === 'zset') return server.command('ZRANGE', key, 0, -1, 'WITHSCORES')
  return server.command('GET', key)
}

/** The same ids and keys everywhere; some ended and due for removal, some waiting, some running. */
async function fill(backend: RedisBackend): Promise<void> {
  for (const lane of LANES) {
    const jobs = ['done', 'dead', 'held', 'waits'].map((id) =>
      job(id, { id: `${lane}/${id}`, lane, idempotencyKey: id }),
    )
    await backend.call('job.enqueue', { jobs })
    const { grants } = await backend.call('job.turn', { settlements: [], claims: [claim(3, 1, [lane])], resend: false })
    const [done, dead] = grants[0]?.jobs ?? []
    if (!done || !dead) throw new Error('nothing was claimed')
    await backend.call('job.turn', {
      settlements: [
        { kind: 'complete', id: done.id, token: done.token, durationMs: 1, keepMs: 1, output: '1', keepOutputMs: 1 },
        {
          ...{ kind: 'dead', id: dead.id, token: dead.token, durationMs: 1, keepMs: null, crashes: 0 },
          ...{ code: 'X', failure: { code: 'X', message: 'x' } },
        },
      ],
      claims: [],
      resend: false,
    })
  }
}

test('the same ids and keys are in all of them, each on its own', async () => {
  for (const namespace of NAMESPACES) await fill(of(namespace))
  for (const namespace of NAMESPACES) {
    const { jobs } = await of(namespace).call('job.list', {
      lane: null,
      states: null,
      type: null,
      limit: 100,
      cursor: null,
    })
    expect(jobs).toHaveLength(4 * LANES.length)
    expect((await contents(namespace)).size).toBeGreaterThan(LANES.length)
  }
})

test.each(NAMESPACES)('whatever is done in %s, all others stay as they were', async (namespace) => {
  const others = NAMESPACES.filter((other) => other !== namespace)
  const before = new Map(await Promise.all(others.map(async (other) => [other, await contents(other)] as const)))
  const backend = of(namespace)
  const ids = LANES.flatMap((lane) => ['done', 'dead', 'held', 'waits'].map((id) => `${lane}/${id}`))
  await backend.call('lease.reap', { decisions: [], limit: 100 })
  await backend.call('queue.policy', { changes: LANES.map((lane) => ({ lane, paused: true })) })
  await backend.call('queue.policy', { changes: LANES.map((lane) => ({ lane, paused: false })) })
  await wholeLife(backend, 'more')
  await backend.call('job.cancel', { ids, force: true, keepMs: 0 })
  await backend.call('store.maintain', { limit: 1000, keepDeadMs: 0 })
  await backend.call('job.list', { lane: null, states: null, type: null, limit: 100, cursor: null })
  for (const other of others) expect([other, await contents(other)]).toEqual([other, before.get(other)])
  const left = (await contents(namespace)).get(`hf:{${namespace}:lanes}:defs`)
  expect(left).toContain('"dead"')
  expect(left).not.toMatch(/"(?:done|held|waits)"/)
})
