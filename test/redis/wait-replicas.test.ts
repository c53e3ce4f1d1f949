/** `waitReplicas`: what is accepted is on a replica, and a replica that does not answer leaves the outcome of a write open. */
import { randomBytes } from 'node:crypto'
import { defineJob } from 'holdfast'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { RedisBackend } from '#dist/src/backends/redis/backend.js'
import { LaneKeys } from '#dist/src/backends/redis/key.js'
import { parseRedisUrl } from '#dist/src/backends/redis/url.js'
import { systemClock } from '#dist/src/clock.js'
import { systemRandom } from '#dist/src/random.js'
import { rejection } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { lookFor } from '../support/look.ts'
import { definition, put } from '../support/protocol.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { ECHO, INCREMENT, open } from './opening.ts'
import { RedisStage } from './stage.ts'

const task = defineJob('task')
const stage = new RedisStage()
let primary: RedisServer
let replica: RedisServer
let url: string

beforeEach(async () => {
  primary = await stage.server()
  replica = await stage.server({ replicaOf: primary })
  url = `${primary.url}?waitReplicas=1`
  await lookFor('the replica follows', async () => ((await primary.command('WAIT', 1, 100)) === 1 ? true : undefined))
})
afterEach(() => stage.clear())

const jobsOn = async (server: RedisServer, namespace = stage.namespace): Promise<number> =>
  Number(await server.command('HLEN', new LaneKeys(namespace, 'default').key('defs')))

test('is declared as replicated', async () => {
  const hf = await stage.client(url)
  expect(hf.capabilities).toMatchObject({ durability: 'replicated', durableJobs: true })
  expect((await hf.health()).store.details).toMatchObject({ waitReplicas: 1 })
})

test('an enqueue resolves when the replica has the job, and no sooner', async () => {
  const hf = await stage.client(url)
  for (let count = 1; count <= 20; count += 1) {
    await hf.enqueue(task, {})
    expect(await jobsOn(replica)).toBe(count)
  }
  await replica.pause()
  let isAccepted = false
  const accepted = hf.enqueue(task, {}).then(({ id }) => {
    isAccepted = true
    return id
  })
  await lookFor('the primary has it', async () => ((await jobsOn(primary)) === 21 ? true : undefined))
  expect(isAccepted).toBe(false)
  await replica.resume()
  expect((await hf.get(await accepted))?.state).toBe('queued')
  expect(await jobsOn(replica)).toBe(21)
  expect((await hf.stats()).total).toBe(21)
})

test('while the replica is frozen a caller is told that the job may be there', async () => {
  const hf = await stage.client(url, { callDeadline: 3000 })
  await hf.enqueue(task, {})
  await replica.pause()
  const failure = await rejection(hf.enqueue(task, {}, { idempotencyKey: 'k' }))
  expect(failure).toMatchObject({ details: { outcome: 'unknown' } })
  expect(['STORE_UNAVAILABLE', 'STORE_TIMEOUT']).toContain(failure.code)
  await replica.resume()
  const { id } = await hf.enqueue(task, {}, { idempotencyKey: 'k' })
  expect((await hf.list({})).jobs.filter(({ idempotencyKey }) => idempotencyKey === 'k').map((job) => job.id)).toEqual([
    id,
  ])
  expect(await jobsOn(replica)).toBe(2)
})

test('what was left open is answered as created when it is sent again, and is there once', async () => {
  const namespace = `t${randomBytes(5).toString('hex')}`
  const platform = { clock: systemClock, random: systemRandom, warn: () => {}, openDeadlineMs: 10_000 }
  const backend = await RedisBackend.open({ ...platform, namespace, location: parseRedisUrl(url) })
  stage.defer(() => backend.close())
  await put(backend)
  await replica.pause()
  const job = definition()
  const failure = await rejection(backend.call('job.enqueue', { jobs: [job] }))
  expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { outcome: 'unknown', reply: 'WAIT', count: 0 } })
  expect(await jobsOn(primary, namespace)).toBe(2)
  // Also when it is known already: the answer is the promise.
  expect(await rejection(backend.call('job.enqueue', { jobs: [job] }))).toMatchObject({ details: { reply: 'WAIT' } })
  await replica.resume()
  const { results } = await backend.call('job.enqueue', { jobs: [job] })
  expect(results).toEqual([{ outcome: 'created', id: job.id, state: 'queued' }])
  expect([await jobsOn(primary, namespace), await jobsOn(replica, namespace)]).toEqual([2, 2])
})

test('many writes at once while the replica is frozen end in time, and neither reads nor the connection suffer', async () => {
  const callTimeoutMs = 1500
  const store = await open(url, { callTimeoutMs })
  const idOf = async (): Promise<number> => Number(await store.command('CLIENT', '', ['ID']))
  const before = await idOf()
  // On a busy machine a replica that has just come up, or woken, confirms late: that is not what this is about.
  const inTouch = (): Promise<unknown> => lookFor('the replica confirms', () => store.run(INCREMENT, ['touch'], []))
  await inTouch()
  expect(await store.run(INCREMENT, ['n'], [])).toBe(1)
  await replica.pause()
  const startedMs = performance.now()
  const first = failureOf(store.run(INCREMENT, ['n'], []))
  await lookFor('it waits for the replica', async () =>
    (await primary.command('GET', 'n')) === '2' ? true : undefined,
  )
  const others = Array.from({ length: 50 }, () => failureOf(store.run(INCREMENT, ['n'], [])))
  const read = store.run(ECHO, ['n'], ['x'])
  for (const failure of await Promise.all([first, ...others]))
    expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'unknown', reply: 'WAIT' })
  expect(performance.now() - startedMs).toBeLessThan(callTimeoutMs)
  expect(String(await read)).toBe('x')
  expect(await idOf()).toBe(before)
  await replica.resume()
  await inTouch()
  expect(await store.run(INCREMENT, ['n'], [])).toBe(53)
  expect(await replica.command('GET', 'n')).toBe('53')
})

test('one WAIT is for all writes that were sent while another was under way', async () => {
  const store = await open(url)
  await primary.command('CONFIG', 'RESETSTAT')
  await Promise.all(Array.from({ length: 200 }, () => store.run(INCREMENT, ['n'], [])))
  expect(await replica.command('GET', 'n')).toBe('200')
  const stats = String(await primary.command('INFO', 'commandstats'))
  const waits = Number(/cmdstat_wait:calls=(\d+)/.exec(stats)?.[1])
  expect(waits).toBeGreaterThan(0)
  expect(waits).toBeLessThan(20)
})
