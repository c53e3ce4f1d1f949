/** A client with the default configuration uses a Cluster as it is: lanes on all primaries, one connection to each and one that waits. */
import { connect, defineJob, handle, retry } from 'holdfast'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { eventsOf } from '../support/event.ts'
import { lookFor } from '../support/look.ts'
import { RedisCluster } from '../support/redis-cluster.ts'
import { dumpOf, slotOfLane } from './cluster-scene.ts'
import { recount } from './recount.ts'
import { RedisStage } from './stage.ts'

const NAMESPACE = 'default'
const LANES = ['images', 'mail', 'billing', 'reports', 'sync']
const tasks = LANES.map((queue) =>
  defineJob<{ readonly fails?: boolean }>(`${queue}.do`, { queue, retry: retry.none() }),
)
const requests = (count: number, input = {}) =>
  tasks.flatMap((job) => Array.from({ length: count }, () => ({ job, input })))

let cluster: RedisCluster
const stage = new RedisStage()

beforeAll(async () => {
  cluster = await RedisCluster.start({ appendOnly: true, replicas: 0 })
})
afterEach(() => stage.clear())
afterAll(() => cluster.stop())

async function refusals(word: string): Promise<number> {
  const stats = await Promise.all(cluster.nodes.map((node) => node.command('INFO', 'errorstats')))
  return stats.filter((text) => String(text).includes(`errorstat_${word}:`)).length
}

const connections = async (namespace: string): Promise<readonly number[]> => {
  const lists = await Promise.all(cluster.nodes.map((node) => node.command('CLIENT', 'LIST')))
  return lists.map((text) => String(text).split(`name=holdfast:${namespace} `).length - 1)
}

const sum = (counts: readonly number[]): number => counts.reduce((all, one) => all + one, 0)

it('C040 five lanes and all that can be asked, without one CROSSSLOT', async () => {
  const hf = await connect(cluster.url)
  stage.defer(() => hf.close())
  const owners = await Promise.all(LANES.map((lane) => cluster.masterOf(slotOfLane(NAMESPACE, lane))))
  expect(new Set(owners).size).toBe(3)

  const [image] = tasks
  if (image === undefined) throw new Error('no task')
  const waiting = await hf.enqueueMany(requests(20))
  const cancelled = await hf.enqueue(image, {}, { delay: '1h' })
  const later = await hf.enqueue(image, {}, { delay: '1h', priority: 5, idempotencyKey: 'k' })
  const failing = await hf.enqueueMany(requests(1, { fails: true }))
  expect((await hf.enqueue(image, {}, { idempotencyKey: 'k' })).id).toBe(later.id)
  expect((await hf.stats()).counts).toMatchObject({ queued: 105, scheduled: 2 })
  expect((await hf.lanes()).map(({ lane }) => lane)).toEqual([...LANES].sort())
  expect((await hf.list({ limit: 500 })).jobs).toHaveLength(107)
  expect((await hf.list({ limit: 500, lane: 'mail' })).jobs).toHaveLength(21)
  expect(await hf.explain(later.id)).not.toBeNull()
  expect(await hf.cancel(cancelled.id)).toBe('cancelled')
  await hf.pause('mail')

  const handlers = tasks.map((task) =>
    handle(task, ({ fails }) => {
      if (fails === true) throw new Error('as it was told')
    }),
  )
  const worker = await hf.worker({ handlers, reap: 50 })
  const errors = eventsOf(worker, 'error')
  const isDown = async (left: number): Promise<true> =>
    lookFor(`${left} are left`, async () => ((await hf.stats()).counts.queued === left ? true : undefined))
  await isDown(21)
  await hf.resume('mail')
  await isDown(0)
  await hf.retryNow(later.id)
  await hf.maintain()
  expect((await hf.health()).store.details).toMatchObject({ cluster: true })
  await lookFor('all have ended', async () => {
    const { counts } = await hf.stats()
    return counts.completed === 101 && counts.dlq === 5 ? true : undefined
  })
  for (const { id } of failing) await hf.replay(id)
  await lookFor('replays have ended', async () => ((await hf.stats()).counts.dlq === 10 ? true : undefined))
  expect(await hf.attempts(waiting[0]?.id ?? '')).toHaveLength(1)
  await worker.stop()
  expect(errors).toEqual([])
  expect(await refusals('CROSSSLOT')).toBe(0)
  expect(recount(await dumpOf(cluster, NAMESPACE), NAMESPACE)).toEqual([])
})

it('C040 a process has a connection to each primary, and one that waits', async () => {
  const before = await connections(stage.namespace)
  expect(sum(before)).toBe(0)
  const hf = await stage.client(cluster.url)
  const handlers = tasks.map((task) => handle(task, () => {}))
  const workers = await Promise.all([hf.worker({ handlers }), hf.worker({ handlers })])
  await hf.enqueueMany(requests(20))
  await lookFor('all have ended', async () => ((await hf.stats()).counts.queued === 0 ? true : undefined))
  await lookFor('the wait', async () => ((await hf.health()).store.details?.hints === true ? true : undefined))
  const counts = await connections(stage.namespace)
  expect([...counts].sort()).toEqual([1, 1, 2])
  expect(sum(counts)).toBe(3 + 1)
  await Promise.all(workers.map((worker) => worker.stop()))
})
