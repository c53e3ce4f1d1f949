/** A store that is away: stopping and closing have an end, nothing is lost for good, and the log stays short. Virtual time. */
import { describe, expect, it } from 'vitest'
import type { Backend } from '#dist/src/backends/backend.js'
import { defineJob, handle } from '#dist/src/contract.js'
import { HoldfastError } from '#dist/src/errors.js'
import { limitWarnings } from '#dist/src/telemetry.js'
import { codeOf } from '../support/event.ts'
import { settledAt, type VirtualClient, virtualClient } from '../support/virtual-client.ts'

const task = defineJob<number>('task')

const obedient = handle(task, async (_, { signal }) => {
  await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
})
const deaf = handle(task, () => new Promise(() => {}))

type Absence = 'silent' | 'refusing'

/** A store that can go away: calls are never answered, or refused at once. */
function leaving(
  options: Parameters<typeof virtualClient>[1] = {},
  more: (store: Backend) => Partial<Backend> = () => ({}),
) {
  let absence: Absence | null = null
  const virtual = virtualClient(
    (store) => ({
      call: (type, request) => {
        if (absence === null) return store.call(type, request)
        if (absence === 'silent') return new Promise(() => {})
        return Promise.reject(new HoldfastError('STORE_UNAVAILABLE', 'away', { details: { outcome: 'notDone' } }))
      },
      ...more(store),
    }),
    options,
  )
  return {
    ...virtual,
    leave: (how: Absence = 'silent') => {
      absence = how
    },
    comeBack: () => {
      absence = null
    },
  }
}

/** Time from now until `work` settles. */
async function timeOf({ world }: VirtualClient, work: Promise<unknown>): Promise<number> {
  const since = world.time
  return (await settledAt(world, work)) - since
}

describe.each<Absence>(['silent', 'refusing'])('stop while the store is %s', (absence) => {
  it('ends an idle worker within half a second of its deadline', async () => {
    const virtual = leaving()
    virtual.leave(absence)
    const worker = await virtual.client.worker({ handlers: [obedient] })
    await virtual.world.run(300)
    const took = await timeOf(virtual, worker.stop({ deadline: 2_000 }))
    expect(took).toBeGreaterThanOrEqual(2_000)
    expect(took).toBeLessThan(2_500)
  })

  it('ends one whose handlers obey just as soon, and their jobs run again once their leases have run out', async () => {
    const virtual = leaving()
    const worker = await virtual.client.worker({ handlers: [obedient], lease: 5_000 })
    const jobs = await virtual.client.enqueueMany([1, 2].map((input) => ({ job: task, input })))
    await virtual.world.run(300)
    expect(worker.activeJobs).toBe(2)
    virtual.leave(absence)
    expect(await timeOf(virtual, worker.stop({ deadline: 2_000 }))).toBeLessThan(2_500)
    await virtual.world.run(virtual.world.time + 15_000)
    virtual.comeBack()
    const ran: number[] = []
    await virtual.client.worker({ handlers: [handle(task, (input) => ran.push(input))] })
    await virtual.world.run(virtual.world.time + 15_000)
    expect(ran.sort()).toEqual([1, 2])
    const states = await Promise.all(jobs.map(async ({ id }) => (await virtual.client.get(id))?.state))
    expect(states).toEqual(['completed', 'completed'])
  })

  it('gives handlers that do not obey their grace on top', async () => {
    const virtual = leaving()
    const worker = await virtual.client.worker({ handlers: [deaf], killGrace: 700 })
    await virtual.client.enqueue(task, 1)
    await virtual.world.run(300)
    virtual.leave(absence)
    const took = await timeOf(virtual, worker.stop({ deadline: 2_000 }))
    expect(took).toBeGreaterThanOrEqual(2_700)
    expect(took).toBeLessThan(3_200)
  })

  it('close ends as well, and leaves no timer behind that would keep the process alive', async () => {
    const virtual = leaving({}, () => ({ close: () => new Promise(() => {}) }))
    await virtual.client.worker({ handlers: [obedient] })
    await virtual.client.enqueue(task, 1)
    await virtual.world.run(300)
    virtual.leave(absence)
    const enqueued = codeOf(virtual.client.enqueue(task, 2, { delay: '1h' }))
    const closing = virtual.client.close()
    // The worker's own 30 s, the silence after them, and the 5 s of the store.
    expect(await timeOf(virtual, closing)).toBeLessThan(36_000)
    expect(['STORE_TIMEOUT', 'STORE_UNAVAILABLE']).toContain(await enqueued)
    expect(virtual.warnings.at(-1)?.msg).toBe('the store was left without an orderly end')
    const { eventsFired } = virtual.world
    await virtual.world.run(virtual.world.time + 3_600_000)
    expect(virtual.world.eventsFired).toBe(eventsFired)
  })
})

it('a call that is under way when the client is closed fails then, outcome unknown', async () => {
  const virtual = leaving()
  virtual.leave()
  const enqueued = virtual.client.enqueue(task, 1)
  const failure = enqueued.catch((error: HoldfastError) => error)
  await virtual.world.run(50)
  expect(await timeOf(virtual, virtual.client.close())).toBe(0)
  expect(await failure).toMatchObject({ code: 'CLOSED' })
  const { eventsFired } = virtual.world
  await virtual.world.run(60_000)
  expect(virtual.world.eventsFired).toBe(eventsFired)
})

it('a call ends at its deadline, also when its last try began just before', async () => {
  const virtual = leaving({ callDeadline: 1_000 })
  virtual.leave('refusing')
  const enqueued = codeOf(virtual.client.enqueue(task, 1))
  await virtual.world.run(500)
  virtual.leave('silent')
  expect(await timeOf(virtual, enqueued)).toBeLessThanOrEqual(500)
  expect(await enqueued).toBe('STORE_TIMEOUT')
})

it.each<Absence>(['silent', 'refusing'])('health() tells within 2 s of a store that is %s', async (absence) => {
  const virtual = leaving()
  virtual.leave(absence)
  const health = virtual.client.health()
  expect(await timeOf(virtual, health)).toBeLessThanOrEqual(2_000)
  expect(await health).toMatchObject({ ok: false, store: { ok: false } })
})

it('a store that is slow but answers is told of everything, however long that takes', async () => {
  let turns = 0
  const virtual = virtualClient((store) => ({
    limits: { enqueueJobs: 10, turnSettlements: 1, claimJobs: 10 },
    call: async (type, request) => {
      if (type !== 'job.turn') return store.call(type, request)
      turns += 1
      await new Promise<void>((resolve) => {
        virtual.process.set(resolve, 300)
      })
      return store.call(type, request)
    },
  }))
  const jobs = await virtual.client.enqueueMany([1, 2, 3, 4, 5].map((input) => ({ job: task, input })))
  const worker = await virtual.client.worker({ handlers: [obedient] })
  await virtual.world.run(1_000)
  expect(worker.activeJobs).toBe(5)
  turns = 0
  const took = await timeOf(virtual, worker.stop({ deadline: 10 }))
  expect(turns).toBeGreaterThanOrEqual(5)
  expect(took).toBeGreaterThan(1_400)
  for (const { id } of jobs) expect(await virtual.client.get(id)).toMatchObject({ state: 'queued', attempts: 0 })
})

describe('the log', () => {
  it.each<Absence>(['silent', 'refusing'])(
    'has one warning a second at most while the store is %s',
    async (absence) => {
      const virtual = leaving({ callDeadline: 40 })
      const errors: HoldfastError[] = []
      for (let number = 0; number < 3; number += 1) {
        const worker = await virtual.client.worker({ handlers: [deaf], concurrency: 2, poll: 10, reap: 10, lease: 600 })
        worker.on('error', (error) => errors.push(error))
      }
      await virtual.client.enqueueMany([1, 2, 3].map((input) => ({ job: task, input })))
      await virtual.world.run(300)
      virtual.leave(absence)
      await virtual.world.run(60_300)
      const coded = virtual.warnings.filter(({ code }) => code !== undefined)
      expect(coded.length).toBeGreaterThan(50)
      expect(coded.length).toBeLessThanOrEqual(61)
      const leftOut = coded.reduce((sum, line) => sum + (line.left_out ?? 0), 0)
      expect(errors.length).toBeGreaterThan(1_000)
      expect(coded.length + leftOut).toBeGreaterThan(errors.length)
    },
  )

  it('keeps codes apart, holds nothing back without one, and says how much it left out', () => {
    const lines: unknown[] = []
    let now = 5
    const warn = limitWarnings((fields, message) => lines.push([fields, message]), { monotonic: () => now })
    warn({ code: 'A' }, 'first')
    warn({ code: 'A' }, 'left out')
    warn({ code: 'B' }, 'another')
    warn({ job_id: 'x' }, 'one')
    warn({ job_id: 'x' }, 'two')
    now = 1_004
    warn({ code: 'A' }, 'left out')
    now = 1_005
    warn({ code: 'A' }, 'second')
    now = 3_000
    warn({ code: 'A' }, 'third')
    expect(lines).toEqual([
      [{ code: 'A' }, 'first'],
      [{ code: 'B' }, 'another'],
      [{ job_id: 'x' }, 'one'],
      [{ job_id: 'x' }, 'two'],
      [{ code: 'A', left_out: 2 }, 'second'],
      [{ code: 'A' }, 'third'],
    ])
  })
})
