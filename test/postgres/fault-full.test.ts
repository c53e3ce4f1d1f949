/** F37: a server without disk. Nothing is half written, nothing accepted is lost, and work resumes by itself when there is room. */
import { randomBytes } from 'node:crypto'
import { defineJob, handle } from 'holdfast'
import { afterEach, expect, it } from 'vitest'
import { FullDisk } from '../support/disk/full-disk.ts'
import { eventsOf, gate, rejection } from '../support/event.ts'
import { lookFor } from '../support/look.ts'
import { miscounts } from './dump.ts'
import { PostgresStage } from './stage.ts'

const stage = new PostgresStage()
afterEach(() => stage.clear())

const task = defineJob<unknown>('task', { maxCrashes: 100 })
/** Kept as it is: nothing can be packed. */
const payload = (): string => randomBytes(20_000).toString('hex')
const QUICK = { lease: 2_000, reap: 200, poll: 100 } as const

async function onFullDisk() {
  const disk = await FullDisk.make()
  stage.defer(() => disk.remove())
  const server = await stage.server({ env: disk.env, settings: { autovacuum: 'off' } })
  const hf = await stage.client(server.url, { callDeadline: 1_000 })
  return { disk, server, hf }
}

it('F37 the tables cannot grow: enqueues fail as not done, outcomes wait and are not lost, and it goes on by itself', async () => {
  const { disk, server, hf } = await onFullDisk()
  const release = gate()
  const ran: string[] = []
  const handler = handle(task, async (_, { jobId }) => {
    ran.push(jobId)
    await release.passed
    return payload()
  })
  const held = await Promise.all(Array.from({ length: 4 }, () => hf.enqueue(task, 'small')))
  const worker = await hf.worker({ handlers: [handler], ...QUICK, concurrency: 4, prefetch: 0 })
  const lost = eventsOf(worker, 'lost')
  await lookFor('all run', async () => (ran.length === 4 ? true : undefined))
  await disk.fill()
  const accepted: string[] = []
  const refused = await lookFor('an enqueue is refused', async () => {
    try {
      accepted.push((await hf.enqueue(task, payload())).id)
      return undefined
    } catch (error) {
      return error as Error
    }
  })
  expect(refused).toMatchObject({
    code: 'STORE_FULL',
    retryable: true,
    details: { outcome: 'notDone', sqlState: '53100' },
  })
  const failed = eventsOf(worker, 'error')
  release.open()
  await lookFor('an outcome is refused', async () => (failed.length > 0 ? true : undefined))
  expect((await hf.stats()).counts.completed).toBeLessThan(4)
  await disk.free()
  await lookFor('all is done', async () => {
    const { counts, total } = await hf.stats()
    return counts.completed === total ? true : undefined
  })
  expect((await hf.stats()).total).toBe(held.length + accepted.length)
  expect(new Set(ran).size).toBe(ran.length)
  expect(lost).toEqual([])
  expect(await miscounts(server)).toEqual([])
  const late = await hf.enqueue(task, payload())
  await lookFor('a new one runs', async () => ((await hf.get(late.id))?.state === 'completed' ? true : undefined))
}, 60_000)

it('F37 the log of writes cannot grow: the server ends itself, and after its restart every accepted job is done', async () => {
  const { disk, server, hf } = await onFullDisk()
  await hf.pause('default')
  const accepted: string[] = []
  for (let n = 0; n < 20; n += 1) accepted.push((await hf.enqueue(task, n)).id)
  const ran: string[] = []
  const handler = handle(task, (_, { jobId }) => {
    ran.push(jobId)
  })
  await hf.worker({ handlers: [handler], ...QUICK })
  await disk.fill()
  const refused = await lookFor('an enqueue is refused', async () => {
    await server.query('SELECT pg_switch_wal()').catch(() => {})
    return hf.enqueue(task, 'too late').then(
      ({ id }) => {
        accepted.push(id)
        return undefined
      },
      (error: unknown) => error as Error,
    )
  })
  expect(refused).toMatchObject({ retryable: true })
  await lookFor('health() says so', async () => ((await hf.health()).ok ? undefined : true))
  await lookFor('the server has ended', async () => (server.pid === null ? true : undefined))
  expect(await rejection(hf.stats())).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  await disk.free()
  await server.restart()
  await lookFor('the lane is resumed', () => hf.resume('default').then(() => true as const))
  for (const id of accepted)
    await lookFor('it is done', async () => ((await hf.get(id))?.state === 'completed' ? true : undefined))
  expect(new Set(ran).size).toBe(ran.length)
  expect(await miscounts(server)).toEqual([])
}, 60_000)
