/** A worker with several lanes looks at all of them at once, and still does for each what it does for one. */
import { setTimeout } from 'node:timers/promises'
import { defineJob, handle } from 'holdfast'
import { afterEach, expect, it } from 'vitest'
import { lookFor } from '../support/look.ts'
import { QUICK, RedisStage } from './stage.ts'

const stage = new RedisStage()
afterEach(() => stage.clear())

const task = defineJob<null>('task')
const LANES = ['one', 'two', 'three']

it('a delayed job whose deadline passes is dead-lettered in every lane, though nothing is ready there', async () => {
  const server = await stage.server()
  const hf = await stage.client(server.url)
  await hf.worker({ handlers: [handle(task, () => {})], lanes: LANES, ...QUICK })
  const deadline = new Date(Date.now() + 300)
  const jobs = await hf.enqueueMany(
    LANES.map((queue) => ({ job: task, input: null, options: { queue, delay: '1h', deadline } })),
  )
  await setTimeout(300)
  const since = performance.now()
  for (const { id } of jobs)
    await lookFor('it is dead', async () => ((await hf.get(id))?.dlqCode === 'DEADLINE_EXCEEDED' ? true : undefined))
  expect(performance.now() - since).toBeLessThan(3_000)
})

it('jobs that become due run in every lane, and all lanes get their turn while one is never empty', async () => {
  const server = await stage.server()
  const hf = await stage.client(server.url)
  const ran: string[] = []
  const handler = handle(task, (_, { lane }) => {
    ran.push(lane)
  })
  await hf.worker({ handlers: [handler], lanes: LANES, ...QUICK, concurrency: 2 })
  await hf.enqueueMany(LANES.map((queue) => ({ job: task, input: null, options: { queue, delay: 200 } })))
  await hf.enqueueMany(Array.from({ length: 3_000 }, () => ({ job: task, input: null, options: { queue: 'one' } })))
  await lookFor('all are done', async () => ((await hf.stats()).counts.completed === 3_003 ? true : undefined))
  expect(new Set(ran)).toEqual(new Set(LANES))
})
