/** The clock of the server jumps while jobs run, wait and are delayed. */
import { defineJob, type Holdfast, handle, type Worker } from 'holdfast'
import { afterEach, expect, it } from 'vitest'
import type { ServerClock } from '../support/clock/server-clock.ts'
import { gate } from '../support/event.ts'
import { lookFor } from '../support/look.ts'
import { QUICK, RedisStage, unexplained } from './stage.ts'

const stage = new RedisStage()
afterEach(() => stage.clear())

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const YEAR = 365 * 24 * HOUR
const task = defineJob<{ readonly holds?: true }>('task', { maxCrashes: 100 })

interface Scene {
  readonly clock: ServerClock
  readonly hf: Holdfast
  readonly worker: Worker
  readonly ran: string[]
  readonly epochs: Map<string, number[]>
  release(): void
}

/** One worker in this process, one job under way until it is released, and some that are done. */
async function scene(): Promise<Scene & { readonly held: string }> {
  const clock = await stage.clock()
  const server = await stage.server({ env: clock.env })
  const hf = await stage.client(server.url, { keepCompleted: 'forever' })
  const released = gate()
  const ran: string[] = []
  const epochs = new Map<string, number[]>()
  const handler = handle(task, async ({ holds }, { jobId, leaseEpoch }) => {
    ran.push(jobId)
    epochs.set(jobId, [...(epochs.get(jobId) ?? []), leaseEpoch])
    if (holds) await released.passed
  })
  const worker = await hf.worker({ handlers: [handler], ...QUICK })
  const { id: held } = await hf.enqueue(task, { holds: true })
  await lookFor('it runs', async () => (ran.includes(held) ? true : undefined))
  return { clock, hf, worker, ran, epochs, held, release: () => released.open() }
}

const done = (hf: Holdfast, ids: readonly string[]): Promise<true> =>
  lookFor('the jobs are done', async () => {
    const states = await Promise.all(ids.map(async (id) => (await hf.get(id))?.state))
    return states.every((state) => state === 'completed') ? true : undefined
  })

const jumps = [
  ['+60 s', 60 * SECOND],
  ['-60 s', -60 * SECOND],
  ['+1 h', HOUR],
  ['-1 h', -HOUR],
  ['+10 y', 10 * YEAR],
] as const

it.each(jumps)(
  'F9 %s: work goes on, a second run only after a lost lease, epochs grow; and back again',
  async (_, shiftMs) => {
    const { clock, hf, ran, epochs, held, release } = await scene()
    clock.set(shiftMs)
    const during = (await hf.enqueueMany([1, 2, 3].map(() => ({ job: task, input: {} })))).map(({ id }) => id)
    await done(hf, during)
    release()
    await done(hf, [held])
    clock.set(0)
    const after = (await hf.enqueueMany([1, 2, 3].map(() => ({ job: task, input: {} })))).map(({ id }) => id)
    await done(hf, after)
    expect(await unexplained(hf, [held, ...during, ...after], ran)).toEqual([])
    for (const each of epochs.values()) expect(each).toEqual([...each].sort((a, b) => a - b))
  },
)

it('F9 -1 h while the owner is dead: its job waits until the clock is back, and no longer', async () => {
  const clock = await stage.clock()
  const server = await stage.server({ env: clock.env })
  const hf = await stage.client(server.url)
  const path = await stage.file('effects')
  const owner = stage.child('work.mjs', server.url, '600', path, 'hold')
  await owner.line('ready')
  const { id } = await hf.enqueue('task', {})
  await owner.line('effect')
  await owner.kill()
  clock.set(-HOUR)
  const rescuer = stage.child('work.mjs', server.url, '600', path, 'go')
  await rescuer.line('ready')
  const { id: other } = await hf.enqueue('task', {})
  await rescuer.line(`completed ${other}`)
  const { reaped } = await hf.maintain()
  expect(reaped).toBe(0)
  expect((await hf.get(id))?.state).toBe('running')
  clock.set(0)
  await rescuer.line(`completed ${id}`)
})
