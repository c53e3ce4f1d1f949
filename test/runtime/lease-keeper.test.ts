/** Leases while a main loop stands still, alone or with its thread: what is renewed, by whom, and what comes first after it. Virtual time. */
import { describe, expect, it } from 'vitest'
import type { Backend } from '#dist/src/backends/backend.js'
import { LeaseStandIn } from '#dist/src/backends/lease-stand-in.js'
import type { MessageType, Request } from '#dist/src/backends/protocol/index.js'
import { connectWith } from '#dist/src/client.js'
import { defineJob, type EnqueueOptions, handle } from '#dist/src/contract.js'
import type { WorkerOptions } from '#dist/src/worker.js'
import { SeededRandom } from '../simulation/random.ts'
import type { VirtualProcess } from '../simulation/virtual-time.ts'
import { gate } from '../support/event.ts'
import { silent } from '../support/silent.ts'
import { type VirtualClient, virtualClient } from '../support/virtual-client.ts'

const task = defineJob<number>('task')
const LEASE_MS = 3_000

interface Scene extends VirtualClient {
  /** The calls of the main loop, in order. */
  readonly calls: MessageType[]
  /** What the thread asked to renew, one entry a call. */
  readonly standIns: Request<'lease.renew'>[]
  endHandlers(): void
  /** Runs in this process. */
  ran(): number
  /** Jobs that the store has granted to this process. */
  granted(): number
}

interface SceneOptions {
  readonly worker?: Partial<WorkerOptions>
  readonly job?: EnqueueOptions
  readonly jobs?: number
  readonly hasThread?: boolean
  /** Answers to turns are under way for more than a beat, and reach the main loop only while it runs. */
  readonly isFar?: boolean
  readonly renewing?: Promise<void>
  /** What the schema of the input waits for. */
  readonly checking?: Promise<void>
}

/** Jobs whose handlers wait, and a worker that has just claimed what fits. */
async function scene(options: SceneOptions = {}): Promise<Scene> {
  const { worker = {}, job = {}, jobs = 1, hasThread = false, isFar = false, renewing, checking } = options
  const calls: MessageType[] = []
  const standIns: Request<'lease.renew'>[] = []
  const known: { thread?: VirtualProcess; process?: VirtualProcess } = {}
  let granted = 0
  const changes = (store: Backend): Partial<Backend> => ({
    call: async (type, request) => {
      calls.push(type)
      if (type === 'lease.renew') await renewing
      const reply = await store.call(type, request)
      if ('grants' in reply) granted += reply.grants.flatMap((each) => each.jobs).length
      if (isFar && type === 'job.turn') await new Promise<void>((resolve) => known.process?.set(resolve, LEASE_MS / 5))
      return reply
    },
    keepLeases: (terms) => {
      const { thread } = known
      if (!hasThread || thread === undefined) return null
      const renew = (request: Request<'lease.renew'>) => {
        standIns.push(request)
        return store.call('lease.renew', request)
      }
      const standIn = new LeaseStandIn({ clock: thread, timers: thread, renew })
      standIn.add(1, terms, [])
      return { isReady: true, addPage: (memory) => standIn.addPage(1, memory), stop: () => standIn.stop() }
    },
  })
  const virtual = virtualClient(changes)
  known.process = virtual.process
  known.thread = virtual.world.process('thread')
  const { client, world } = virtual
  const ends: (() => void)[] = []
  let runs = 0
  const validate = async (value: unknown) => {
    await checking
    return { value: value as number }
  }
  const checked = defineJob('task', { input: { '~standard': { version: 1, vendor: 'test', validate } } })
  const handler = handle(checking === undefined ? task : checked, async () => {
    runs += 1
    const end = gate()
    ends.push(end.open)
    await end.passed
    return 'of the first'
  })
  await client.worker({ handlers: [handler], lease: LEASE_MS, reap: 100, killGrace: 100, ...worker })
  await client.enqueueMany(Array.from({ length: jobs }, (_, n) => ({ job: task, input: n, options: job })))
  await world.run(20)
  return {
    ...virtual,
    calls,
    standIns,
    endHandlers: () => {
      for (const end of ends.splice(0)) end()
    },
    ran: () => runs,
    granted: () => granted,
  }
}

/** Another process on the same store, with a worker that takes what it can. Gives the number of its runs. */
async function other({ world, store }: Scene): Promise<() => number> {
  const process = world.process('other')
  const options = { logger: silent }
  const client = connectWith({ backend: store, clock: process, timers: process, random: new SeededRandom(2), options })
  let runs = 0
  const handler = handle(task, () => {
    runs += 1
    return 'of the second'
  })
  await client.worker({ handlers: [handler], lease: LEASE_MS, reap: 100, poll: 50 })
  return () => runs
}

/** The main loop stands still for so long; its thread and everybody else go on. */
async function stand({ world, process }: Scene, ms: number): Promise<void> {
  process.pause()
  await world.run(world.time + ms)
  process.resume()
}

const pass = ({ world }: Scene, ms: number): Promise<void> => world.run(world.time + ms)

async function ends({ client }: Scene): Promise<string[]> {
  const { jobs } = await client.list()
  return jobs.map(({ state, attempts }) => `${state} after ${attempts}`)
}

describe('after a gap', () => {
  it('F3 the first call is a renewal, and nothing is started, settled, claimed or reaped before its answer', async () => {
    const answer = gate()
    const here = await scene({ worker: { concurrency: 1 }, jobs: 3, renewing: answer.passed })
    here.calls.length = 0
    here.process.pause()
    await pass(here, 0.6 * LEASE_MS)
    here.endHandlers()
    here.process.resume()
    await pass(here, 500)
    expect([...here.calls, here.ran()]).toEqual(['lease.renew', 1])
    answer.open()
    await pass(here, 500)
    expect(here.calls).toEqual(expect.arrayContaining(['job.turn', 'lease.reap']))
    expect([here.ran(), (await ends(here)).sort()]).toEqual([
      2,
      ['completed after 1', 'queued after 0', 'running after 1'],
    ])
  })

  it('F4 no reaper of the process, and no maintain, takes what another worker of it holds', async () => {
    const here = await scene()
    const idle = handle(defineJob('other'), () => {})
    await here.client.worker({ handlers: [idle], lanes: ['default'], lease: 500, reap: 20 })
    await stand(here, 4 * LEASE_MS)
    const maintained = here.client.maintain()
    await pass(here, 200)
    expect((await maintained).reaped).toBe(0)
    here.endHandlers()
    await pass(here, 200)
    expect(await ends(here)).toEqual(['completed after 1'])
    const { keeper, blocks, longestBlockMs } = (await here.client.health()).leases
    expect([keeper, blocks, longestBlockMs > 3.8 * LEASE_MS]).toEqual(['main', 2, true])
  })

  it('a job that was granted unseen, and has gone to others since, is not started', async () => {
    const here = await scene({ jobs: 0, isFar: true, worker: { poll: 50 } })
    void here.client.enqueue(task, 7)
    await here.world.run(here.world.time + 2_000, () => here.granted() > 0)
    const runs = await other(here)
    await stand(here, 2 * LEASE_MS)
    await pass(here, 500)
    expect([here.ran(), runs(), await ends(here)]).toEqual([0, 1, ['completed after 2']])
  })

  it('L12 a handler whose input was checked meanwhile does not begin before the renewal, which tells that others have the job', async () => {
    const checking = gate()
    const here = await scene({ checking: checking.passed })
    const runs = await other(here)
    here.process.pause()
    await pass(here, 2 * LEASE_MS)
    checking.open()
    here.process.resume()
    await pass(here, 500)
    expect([here.ran(), runs(), await ends(here)]).toEqual([0, 1, ['completed after 2']])
  })

  it('L12 a handler whose input was checked meanwhile begins after the renewal', async () => {
    const [checking, answer] = [gate(), gate()]
    const here = await scene({ checking: checking.passed, renewing: answer.passed })
    here.process.pause()
    await pass(here, 0.6 * LEASE_MS)
    checking.open()
    here.process.resume()
    await pass(here, 200)
    expect(here.ran()).toBe(0)
    answer.open()
    await pass(here, 200)
    expect(here.ran()).toBe(1)
  })
})

describe('while the main loop stands still', () => {
  it('F4 its thread renews, in time and not too often, and another process waits in vain', async () => {
    const here = await scene({ hasThread: true })
    const runs = await other(here)
    await stand(here, 4 * LEASE_MS)
    expect(here.standIns.length).toBeGreaterThanOrEqual(9)
    expect(here.standIns.length).toBeLessThanOrEqual(12)
    here.endHandlers()
    await pass(here, 200)
    expect([runs(), await ends(here)]).toEqual([0, ['completed after 1']])
  })

  it('its thread has nothing to do as long as the loop runs', async () => {
    const here = await scene({ hasThread: true })
    await pass(here, 10 * LEASE_MS)
    expect(here.standIns).toEqual([])
    expect(here.calls.filter((type) => type === 'lease.renew').length).toBeGreaterThan(25)
  })

  it('F4 beyond maxBlocked its jobs are given up, and what it does later is refused', async () => {
    const here = await scene({ hasThread: true, worker: { maxBlocked: 2 * LEASE_MS } })
    const runs = await other(here)
    here.process.pause()
    await pass(here, 2 * LEASE_MS)
    expect(runs()).toBe(0)
    await pass(here, 1.5 * LEASE_MS)
    expect(runs()).toBe(1)
    here.endHandlers()
    here.process.resume()
    await pass(here, 200)
    expect([here.ran(), await ends(here)]).toEqual([1, ['completed after 2']])
    expect((await here.client.list()).jobs[0]?.lastFailure?.code).toBe('LEASE_EXPIRED')
  })

  it('F4 beyond its own timeout a job is given up, and not before', async () => {
    const timeout = 2 * LEASE_MS
    const here = await scene({ hasThread: true, job: { timeout } })
    const runs = await other(here)
    here.process.pause()
    await pass(here, timeout)
    expect(runs()).toBe(0)
    await pass(here, 1.5 * LEASE_MS)
    expect(runs()).toBe(1)
  })

  it('what the store has refused is not asked for again', async () => {
    const here = await scene({ hasThread: true })
    const [job] = (await here.client.list()).jobs
    here.process.pause()
    await here.store.call('job.cancel', { ids: [job?.id ?? ''], force: true, keepMs: null })
    await pass(here, 4 * LEASE_MS)
    expect(here.standIns.length).toBe(1)
  })
})
