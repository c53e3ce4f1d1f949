/** A replica takes the place of its primary and lacks the last writes: what was lost is absent, and nothing is half there or done twice. */
import { defineJob, type Holdfast, handle } from 'holdfast'
import { afterEach, expect, it } from 'vitest'
import { loadCatalog } from '#dist/src/lua/catalog.js'
import { everyJob } from '../chaos/ledger.ts'
import { codeOf, eventsOf, gate } from '../support/event.ts'
import { lookFor } from '../support/look.ts'
import type { FaultProxy } from '../support/proxy.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { miscounts, RedisStage } from './stage.ts'

const stage = new RedisStage()
afterEach(() => stage.clear())

const task = defineJob<string>('task', { maxCrashes: 100 })
const late = defineJob<string>('task', { queue: 'late', maxCrashes: 100 })

interface Pair {
  readonly primary: RedisServer
  readonly replica: RedisServer
  /** Between the two: a frozen replica would still find in its socket what was sent to it. */
  readonly link: FaultProxy
}

async function pair(): Promise<Pair> {
  const primary = await stage.server()
  const link = await stage.proxy(primary)
  const replica = await stage.server({ replicaOf: link })
  await lookFor('the replica has its data', async () => {
    const [role, , , state] = (await replica.command('ROLE')) as readonly unknown[]
    return role === 'slave' && state === 'connected' ? true : undefined
  })
  return { primary, replica, link }
}

const caughtUp = (primary: RedisServer, replica: RedisServer): Promise<true> =>
  lookFor('the replica has all', async () => {
    const offsetOf = async (server: RedisServer, name: string): Promise<string | undefined> =>
      new RegExp(`${name}:(\\d+)`).exec(String(await server.command('INFO', 'replication')))?.[1]
    const [sent, had] = [await offsetOf(primary, 'master_repl_offset'), await offsetOf(replica, 'slave_repl_offset')]
    return sent !== undefined && sent === had ? true : undefined
  })

/** A worker that holds each job until it is told, and notes the epochs under which it got it. */
async function holdingWorker(hf: Holdfast, lanes: readonly string[]) {
  const released = gate()
  const grants: { readonly id: string; readonly epoch: number }[] = []
  const handler = handle(task, async (_, { jobId, leaseEpoch, signal }) => {
    grants.push({ id: jobId, epoch: leaseEpoch })
    await Promise.race([
      released.passed,
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    ])
    return leaseEpoch
  })
  const worker = await hf.worker({ handlers: [handler], lanes, concurrency: 4, lease: 3_000, reap: 200, poll: 200 })
  return { worker, grants, release: () => released.open() }
}

it('F26 a replica without the last writes is promoted: what is held is renewed first, stale tokens are refused, lost jobs are absent', async () => {
  const { primary, replica, link } = await pair()
  const proxy = await stage.proxy(primary)
  const hf = await stage.client(proxy.url)
  const safe = await holdingWorker(hf, ['default'])
  const [held, delayed] = [await hf.enqueue(task, 'held'), await hf.enqueue(task, 'delayed', { delay: '1h' })]
  const claimedTooLate = await hf.enqueue(late, 'its claim is lost')
  await lookFor('one job runs', async () => (safe.grants.length === 1 ? true : undefined))
  await caughtUp(primary, replica)

  link.set('blackhole')
  const lost = await hf.enqueueMany([
    { job: task, input: 'lost', options: { delay: '1h', idempotencyKey: 'lost' } },
    { job: late, input: 'lost too', options: { delay: '1h', idempotencyKey: 'lost too' } },
  ])
  const unsafe = await holdingWorker(hf, ['late'])
  const lostEvents = eventsOf(unsafe.worker, 'lost')
  await lookFor('its job runs', async () => (unsafe.grants.length === 1 ? true : undefined))

  const sent: string[] = []
  const { lease_renew, job_turn, job_claim } = loadCatalog()
  proxy.set({
    mode: 'dropRequests',
    when: (request) => {
      if (request.includes(lease_renew.sha1)) sent.push('renewal')
      if ([job_turn, job_claim].some(({ sha1 }) => request.includes(sha1))) sent.push('turn')
      return false
    },
  })
  await primary.kill()
  await replica.command('REPLICAOF', 'NO', 'ONE')
  proxy.retarget(replica)
  proxy.reset()
  sent.length = 0

  await lookFor('the job whose claim was lost is granted again', async () =>
    unsafe.grants.length === 2 ? true : undefined,
  )
  expect(sent[0]).toBe('renewal')
  expect(lostEvents.map(({ jobId }) => jobId)).toEqual([claimedTooLate.id])
  const [before, after] = unsafe.grants
  expect(after?.id).toBe(claimedTooLate.id)
  expect(after?.epoch).toBeGreaterThan(before?.epoch ?? 0)
  safe.release()
  unsafe.release()
  await lookFor('both are done', async () => ((await hf.stats()).counts.completed === 2 ? true : undefined))

  expect(safe.grants.length).toBe(1)
  expect((await hf.get(held.id))?.output).toBe(safe.grants[0]?.epoch)
  expect((await hf.get(claimedTooLate.id))?.output).toBe(after?.epoch)
  expect((await hf.get(delayed.id))?.state).toBe('scheduled')
  for (const { id } of lost) {
    expect(await hf.get(id)).toBeNull()
    expect(await codeOf(hf.retryNow(id))).toBe('JOB_NOT_FOUND')
  }
  // Their keys are free again, and nothing of them is left in any count.
  expect((await everyJob(hf)).map(({ id }) => id).sort()).toEqual([held.id, delayed.id, claimedTooLate.id].sort())
  expect((await hf.stats()).total).toBe(3)
  expect(await miscounts(replica, stage.namespace)).toEqual([])
  const again = await hf.enqueue(task, 'lost', { idempotencyKey: 'lost', delay: '1h' })
  expect(again).toMatchObject({ deduplicated: false })
  expect(again.id).not.toBe(lost[0]?.id)
})

it('C033 the server is made a replica of nobody for two seconds: work resumes, what ran is stored, nothing accepted is lost', async () => {
  const server = await stage.server()
  const hf = await stage.client(server.url)
  const { grants, release } = await holdingWorker(hf, ['default'])
  const { id } = await hf.enqueue(task, 'under way')
  await lookFor('it runs', async () => (grants.length === 1 ? true : undefined))
  await server.command('REPLICAOF', '127.0.0.1', '1')
  const enqueued = hf.enqueue(task, 'meanwhile')
  release()
  await lookFor('health() says so', async () => ((await hf.health()).ok ? undefined : true))
  await server.command('REPLICAOF', 'NO', 'ONE')
  const since = performance.now()
  const other = await enqueued
  await lookFor('both are done', async () => ((await hf.stats()).counts.completed === 2 ? true : undefined))
  expect(performance.now() - since).toBeLessThan(5_000)
  // On a busy machine the lease may run out meanwhile: then the job runs again, and its history says why.
  const expired = (await hf.attempts(id)).filter(({ failure }) => failure?.code === 'LEASE_EXPIRED')
  const runsOf = (job: string): number => grants.filter((grant) => grant.id === job).length
  expect([runsOf(id), runsOf(other.id), grants.length]).toEqual([1 + expired.length, 1, 2 + expired.length])
})
