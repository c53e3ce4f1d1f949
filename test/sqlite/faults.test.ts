/** F43–F45 and their cases: locks of others, a full disk, a reader that never ends, with a worker on the file all the while. */

import { execFileSync } from 'node:child_process'
import { createReadStream, statSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { type ConnectOptions, connect, defineJob, type Holdfast, handle } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { SqliteBackend } from '#dist/src/backends/sqlite/backend.js'
import { parseLedger, violations } from '../chaos/ledger.ts'
import { Child } from '../support/child.ts'
import { FullDisk } from '../support/disk/full-disk.ts'
import { eventsOf, gate, rejection } from '../support/event.ts'
import { lookFor } from '../support/look.ts'
import { miscounts } from './dump.ts'
import { freshPath, job, quiet } from './support.ts'

process.env.HOLDFAST_LOG ??= 'silent'

const closers: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const task = defineJob<unknown>('task', { maxCrashes: 100 })
/** Children that tell of a refused call after a second. */
const HASTY = { HOLDFAST_CHILD_OPTIONS: JSON.stringify({ callDeadline: 1_000 }) }
const QUICK = { lease: 1_000, reap: 200, poll: 100 } as const

async function client(path: string, options: ConnectOptions = {}): Promise<Holdfast> {
  const hf = await connect(`sqlite:${path}`, { namespace: 'test', ...options })
  closers.push(() => hf.close())
  return hf
}

function open(path: string): Database.Database {
  const database = new Database(path)
  closers.push(() => database.close())
  return database
}

const allDone = (hf: Holdfast): Promise<true> =>
  lookFor('all jobs are done', async () => {
    const { counts, total } = await hf.stats()
    return counts.completed === total && total > 0 ? true : undefined
  })

describe('F43 C068 another connection has the lock', () => {
  it('for longer than a call waits: calls end by their deadline, the main loop goes on, and what ran is stored', async () => {
    const path = freshPath()
    const hf = await client(path, { callDeadline: 500 })
    const release = gate()
    const ran: string[] = []
    const handler = handle(task, async (_, { jobId }) => {
      ran.push(jobId)
      await release.passed
    })
    const { id } = await hf.enqueue(task, 1)
    const worker = await hf.worker({ handlers: [handler], ...QUICK, prefetch: 0 })
    const lost = eventsOf(worker, 'lost')
    await lookFor('it runs', async () => (ran.length === 1 ? true : undefined))
    const rival = open(path)
    rival.exec('BEGIN EXCLUSIVE')
    let turns = 0
    const again = (): Promise<{ readonly id: string }> => hf.enqueue(task, 2, { idempotencyKey: 'once' })
    const refused = rejection(again()).finally(() => {
      turns = Number.NEGATIVE_INFINITY
    })
    let seen = 0
    while (turns >= 0) {
      await turn()
      turns += 1
      seen = Math.max(seen, turns)
    }
    // The wait for the lock is not one of the main thread.
    expect(seen).toBeGreaterThan(100)
    expect(await refused).toMatchObject({ code: 'STORE_TIMEOUT', retryable: true, details: { outcome: 'unknown' } })
    release.open()
    rival.exec('ROLLBACK')
    await lookFor('its outcome is stored', async () => ((await hf.get(id))?.state === 'completed' ? true : undefined))
    // It may have been done after all, and under its key it is done once.
    const second = await again()
    await allDone(hf)
    expect(ran).toEqual([id, second.id])
    expect(lost).toEqual([])
  })

  it('for a moment: nobody notices', async () => {
    const path = freshPath()
    const hf = await client(path)
    const rival = open(path)
    rival.exec('BEGIN EXCLUSIVE')
    const enqueued = hf.enqueue(task, 1)
    await turn()
    rival.exec('ROLLBACK')
    expect((await enqueued).deduplicated).toBe(false)
  })
})

describe('F44 the disk is full', () => {
  it('under a worker process and a producer process: what was accepted is done when there is room: I1 I5 I18', async () => {
    const disk = await FullDisk.make()
    closers.push(() => disk.remove())
    const path = freshPath()
    const hf = await client(path)
    // A pipe, since their ledger must go on where no file can.
    const ledger = `${path}.ledger`
    execFileSync('mkfifo', [ledger])
    let noted = ''
    createReadStream(ledger, 'utf8').on('data', (text) => {
      noted += text
    })
    const url = `sqlite:${path}`
    const worker = { ...QUICK, concurrency: 4, workMs: 5 }
    const crew = new Child('crew.mjs', [url, 'test', ledger, JSON.stringify(worker)], { ...disk.env, ...HASTY })
    closers.push(() => crew.kill())
    const production = JSON.stringify({ from: 0, to: 100_000, batch: 5, everyMs: 10 })
    const producer = new Child('producer.mjs', [url, 'test', ledger, 'p', production], { ...disk.env, ...HASTY })
    closers.push(() => producer.kill())
    await Promise.all([crew.line('ready'), producer.line('ready')])
    const ended = async (): Promise<number> => (await hf.stats()).counts.completed
    await lookFor('some are done', async () => ((await ended()) > 50 ? true : undefined))
    await disk.fill()
    await lookFor('an enqueue is refused', async () => parseLedger(noted).refused.size > 0 || undefined)
    await disk.free()
    const before = await ended()
    await lookFor('more are done', async () => ((await ended()) > before + 50 ? true : undefined))
    producer.tell('stop')
    await producer.line('done')
    await allDone(hf)
    const found = parseLedger(noted)
    expect([...found.refused.keys()]).toEqual(['STORE_FULL notDone'])
    expect(await violations(hf, found)).toEqual([])
    expect(miscounts(path)).toEqual([])
  }, 60_000)
})

describe('F45 C070 a reader that never ends', () => {
  it('makes the log grow, which is warned of once; after it has gone the log is cut back, and a close leaves none', async () => {
    const path = freshPath()
    const warnings: unknown[] = []
    const store = await SqliteBackend.open({ ...quiet, path, warn: ({ code, bytes }) => warnings.push([code, bytes]) })
    closers.push(() => store.close())
    const reader = open(path)
    reader.exec('BEGIN; SELECT count(*) FROM holdfast_job')
    const payload = 'x'.repeat(1_000_000)
    for (let n = 0; n < 52; n += 1) await store.call('job.enqueue', { jobs: [job(String(n), { payload })] })
    const log = (): number => statSync(`${path}-wal`).size
    const maintain = () => store.call('store.maintain', { limit: 100, keepDeadMs: null })
    await maintain()
    await maintain()
    expect((await store.call('store.health', {})).details.logBytes).toBe(log())
    expect(warnings).toEqual([['LOG_PINNED', log()]])
    expect(log()).toBeGreaterThan(50_000_000)
    reader.exec('COMMIT')
    await maintain()
    await lookFor('the log is cut back', async () => log() < 50_000_000 || undefined)
    await store.close()
    expect(log()).toBe(0)
    expect(warnings.length).toBe(1)
  })
})

it('C075 a job of one process is heard of by a worker of another one, and the capability says how far that reaches', async () => {
  const path = freshPath()
  const hf = await client(path)
  expect(hf.capabilities).toMatchObject({
    notifications: 'sameHost',
    sameHostProcesses: true,
    distributedWorkers: false,
  })
  const ran = gate<string>()
  const handler = handle(defineJob('task'), (_, { jobId }) => ran.open(jobId))
  // The poll is far away: only a hint can be as quick.
  const worker = await hf.worker({ handlers: [handler], poll: '10s' })
  const other = new Child('enqueue.mjs', [`sqlite:${path}`, 'test', 'k'])
  closers.push(() => other.kill())
  const [, , id] = (await other.line('created')).split(' ')
  expect(await ran.passed).toBe(id)
  await worker.stop({ deadline: 0 })
})
