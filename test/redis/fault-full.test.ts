/** A server without memory and a server without disk: what is held can be finished, nothing new is half written, and it ends by itself. */
import { defineJob, handle } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { FullDisk } from '../support/disk/full-disk.ts'
import { eventsOf, gate, rejection } from '../support/event.ts'
import { lookFor } from '../support/look.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { miscounts, QUICK, RedisStage } from './stage.ts'

const stage = new RedisStage()
afterEach(() => stage.clear())

const task = defineJob<unknown>('task', { maxCrashes: 100 })
const PAYLOAD = 'x'.repeat(50_000)

async function limitMemory(server: RedisServer, roomBytes: number): Promise<void> {
  const used = /used_memory:(\d+)/.exec(String(await server.command('INFO', 'memory')))?.[1]
  await server.command('CONFIG', 'SET', 'maxmemory', Number(used) + roomBytes)
}

/** Enqueues until the store is full; gives the ids that it took, and the error. */
async function fill(
  hf: Awaited<ReturnType<RedisStage['client']>>,
): Promise<{ readonly ids: string[]; readonly error: unknown }> {
  const ids: string[] = []
  for (;;) {
    try {
      ids.push((await hf.enqueue(task, PAYLOAD)).id)
    } catch (error) {
      return { ids, error }
    }
  }
}

describe('F23 maxmemory is reached', () => {
  it('an enqueue fails with STORE_FULL and writes nothing; renewals, outcomes, cancellations and claims go on; then there is room again', async () => {
    const server = await stage.server({ policy: 'noeviction' })
    const hf = await stage.client(server.url, { callDeadline: 400, keepCompleted: 0, keepCancelled: 0 })
    const release = gate()
    let running = 0
    const handler = handle(task, async () => {
      running += 1
      await release.passed
    })
    const held = await hf.enqueue(task, 'small')
    const worker = await hf.worker({ handlers: [handler], ...QUICK, concurrency: 1, prefetch: 0 })
    const [lost, completed] = [eventsOf(worker, 'lost'), eventsOf(worker, 'completed')]
    await lookFor('one job runs', async () => (running === 1 ? true : undefined))
    await limitMemory(server, 2_000_000)
    const { ids, error } = await fill(hf)
    expect(error).toMatchObject({ code: 'STORE_FULL', retryable: true, details: { outcome: 'notDone' } })
    expect(ids.length).toBeGreaterThan(5)
    expect((await hf.stats()).total).toBe(ids.length + 1)
    const expiresAt = (await hf.get(held.id))?.leaseExpiresAt ?? 0
    await lookFor('the lease is renewed twice', async () =>
      ((await hf.get(held.id))?.leaseExpiresAt ?? 0) > expiresAt + QUICK.lease / 2 ? true : undefined,
    )
    // With what one cancellation frees, small jobs fit again; the rest is taken up before.
    expect(
      await rejection(
        hf.enqueueMany([
          { job: task, input: PAYLOAD },
          { job: task, input: PAYLOAD },
        ]),
      ),
    ).toMatchObject({
      code: 'STORE_FULL',
    })
    expect((await hf.stats()).total).toBe(ids.length + 1)
    expect(await miscounts(server, stage.namespace)).toEqual([])
    expect(await hf.cancel(ids.at(-1) ?? '')).toBe('cancelled')
    release.open()
    await lookFor('all is worked off', async () => ((await hf.stats()).total === 0 ? true : undefined))
    expect(running).toBe(ids.length)
    expect(lost).toEqual([])
    expect(completed.length).toBe(ids.length)
    expect(await miscounts(server, stage.namespace)).toEqual([])
    const late = await hf.enqueue(task, PAYLOAD)
    await lookFor('a new one runs', async () => ((await hf.get(late.id)) === null ? true : undefined))
  })
})

describe('F23 maxmemory is reached while jobs run', () => {
  it('that wait for their progress to be stored: it is, and they end as they would', async () => {
    const server = await stage.server({ policy: 'noeviction' })
    const hf = await stage.client(server.url, { callDeadline: 1_000 })
    const full = gate()
    const handler = handle(task, async (_input, ctx) => {
      await full.passed
      await ctx.progress('half')
      ctx.log.info('more than half')
      return 'done'
    })
    const jobs = await Promise.all([1, 2, 3].map((input) => hf.enqueue(task, input, { maxAttempts: 1 })))
    await hf.worker({ handlers: [handler], ...QUICK })
    await lookFor('all run', async () => ((await hf.stats()).counts.running === 3 ? true : undefined))
    await limitMemory(server, 0)
    expect(await rejection(hf.enqueue(task, PAYLOAD))).toMatchObject({ code: 'STORE_FULL' })
    full.open()
    expect(await Promise.all(jobs.map((job) => job.result()))).toEqual(['done', 'done', 'done'])
    for (const { id } of jobs) expect(await hf.get(id)).toMatchObject({ progress: 'half', attempts: 1 })
  })
})

describe('F25 the disk is full', () => {
  async function onFullDisk(appendFsync: 'always' | 'everysec') {
    const disk = await FullDisk.make()
    stage.defer(() => disk.remove())
    const server = await stage.server({ appendFsync, env: disk.env })
    const hf = await stage.client(server.url, { callDeadline: 1_000 })
    const ran: string[] = []
    const handler = handle(task, (_, { jobId }) => {
      ran.push(jobId)
    })
    const worker = await hf.worker({ handlers: [handler], ...QUICK })
    return { disk, server, hf, ran, worker }
  }

  it('everysec: writes are refused as not done, and all goes on by itself when there is room', async () => {
    const { disk, hf, ran } = await onFullDisk('everysec')
    const first = await hf.enqueue(task, 1)
    await lookFor('it ran', async () => ((await hf.get(first.id))?.state === 'completed' ? true : undefined))
    await disk.fill()
    const refused = await lookFor('an enqueue is refused', () =>
      hf.enqueue(task, 2).then(
        () => undefined,
        (error: unknown) => error,
      ),
    )
    expect(refused).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true, details: { reply: 'MISCONF' } })
    await lookFor('health() says so', async () => ((await hf.health()).ok ? undefined : true))
    await disk.free()
    await lookFor('an enqueue is taken', () => hf.enqueue(task, 3).then(() => true as const))
    await lookFor('all is done', async () => {
      const { counts, total } = await hf.stats()
      return counts.completed === total ? true : undefined
    })
    expect((await hf.health()).ok).toBe(true)
    expect(new Set(ran).size).toBe(ran.length)
  })

  it('always: the server ends itself; after its restart every accepted job is there and is done', async () => {
    const { disk, server, hf } = await onFullDisk('always')
    await hf.pause('default')
    const accepted: string[] = []
    for (let n = 0; n < 20; n += 1) accepted.push((await hf.enqueue(task, n)).id)
    await disk.fill()
    expect(await rejection(hf.enqueue(task, 'too late'))).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    await lookFor('the server has ended', async () => (server.pid === null ? true : undefined))
    await disk.free()
    await server.restart()
    await lookFor('the lane is resumed', () => hf.resume('default').then(() => true as const))
    for (const id of accepted) {
      await lookFor('it is done', async () => ((await hf.get(id))?.state === 'completed' ? true : undefined))
    }
  })
})
