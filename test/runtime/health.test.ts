/** What `health()` says of a worker: its own claims count, not what others were answered, and a worker that stands still is told. */
import { defineJob, handle } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { Pulse } from '#dist/src/actors/pulse.js'
import type { Backend } from '#dist/src/backends/backend.js'
import type { Request } from '#dist/src/backends/protocol/index.js'
import { HoldfastError } from '#dist/src/errors.js'
import { judgeWorker, type WorkerFacts } from '#dist/src/worker-health.js'
import { settledAt, type VirtualClient, virtualClient } from '../support/virtual-client.ts'

const task = defineJob<unknown>('task')

const sound: WorkerFacts = {
  workerId: 'w',
  slots: 2,
  running: 0,
  lostSlots: 0,
  isStopping: false,
  fatal: null,
  keptMs: 30_000,
  quietMaxMs: 15_000,
  quietMs: 100,
  lastClaimMs: 100,
  failuresInARow: 0,
  lastError: null,
  blockedMs: 0,
}
const problemsOf = (facts: Partial<WorkerFacts>) => judgeWorker({ ...sound, ...facts }).problems

describe('a worker', () => {
  it('is well while its claims are answered, also when it has nothing to claim for', () => {
    expect(judgeWorker(sound)).toMatchObject({ ok: true, problems: [] })
    expect(problemsOf({ running: 2, quietMs: 3_600_000, lastClaimMs: 3_600_000 })).toEqual([])
    expect(problemsOf({ isStopping: true, quietMs: 3_600_000 })).toEqual([])
    expect(problemsOf({ lostSlots: 3, blockedMs: 29_999 })).toEqual([])
  })

  it('is not when a claim failed, with the reason', () => {
    const lastError = new HoldfastError('STORE_DENIED', 'not yours')
    expect(problemsOf({ failuresInARow: 1, lastError, lastClaimMs: 2_000 })).toEqual([
      'its last claim failed: not yours (the last that worked was 2 s ago)',
    ])
    expect(problemsOf({ failuresInARow: 3, lastError, lastClaimMs: null })).toEqual([
      'its last 3 claims failed: not yours (none was answered before)',
    ])
    expect(problemsOf({ lastClaimMs: null })).toEqual(['no claim of it has been answered yet'])
  })

  it('is not when it stands still with a free slot', () => {
    expect(problemsOf({ running: 1, quietMs: 15_000 })).toEqual([])
    expect(problemsOf({ running: 1, quietMs: 15_100 })).toEqual(['it has a free slot and has not claimed for 15.1 s'])
  })

  it('is not when it has given up, or was blocked for longer than its leases are kept', () => {
    expect(problemsOf({ fatal: new Error('enough'), failuresInARow: 9 })).toEqual(['it has given up: enough'])
    expect(problemsOf({ blockedMs: 30_000 })).toEqual([
      'the main loop stood still for 30 s, longer than its leases are kept',
    ])
  })
})

it('a standstill is told for a minute, the longest first', () => {
  let now = 0
  const pulse = new Pulse(() => now)
  expect(pulse.read()).toMatchObject({ blockedMs: 0, quietMs: null, lastClaimMs: null })
  pulse.stoodStill(5_000)
  pulse.stoodStill(2_000)
  expect(pulse.read().blockedMs).toBe(5_000)
  now = 60_001
  expect(pulse.read().blockedMs).toBe(0)
  pulse.stoodStill(2_000)
  expect(pulse.read().blockedMs).toBe(2_000)
})

async function healthOf({ client, world }: VirtualClient) {
  const asked = client.health()
  await settledAt(world, asked)
  return asked
}

const isClaim = (type: string, request: object): boolean =>
  type === 'job.turn' && (request as Request<'job.turn'>).claims.length > 0

describe('health()', () => {
  it('is not made well by settlements that work while claims do not', async () => {
    let isRefusing = false
    const refusing = (store: Backend): Partial<Backend> => ({
      overlapsTurns: true,
      call: (type, request) =>
        isRefusing && isClaim(type, request)
          ? Promise.reject(new HoldfastError('STORE_DENIED', 'no claims', { details: { outcome: 'refused' } }))
          : store.call(type, request),
    })
    const virtual = virtualClient(refusing)
    const ends: (() => void)[] = []
    const held = handle(task, () => new Promise<void>((resolve) => ends.push(resolve)))
    await virtual.client.worker({ handlers: [held], concurrency: 2 })
    await virtual.client.enqueue(task, 1)
    await virtual.world.run(5_000)
    expect(await healthOf(virtual)).toMatchObject({ ok: true, claiming: { each: [{ running: 1, slots: 2 }] } })
    isRefusing = true
    await virtual.world.run(10_000)
    for (const end of ends) end()
    await virtual.world.run(11_000)
    const ill = await healthOf(virtual)
    expect(ill).toMatchObject({ ok: false, store: { ok: true }, claiming: { ok: false } })
    expect(ill.problems[0]).toMatch(/^worker \S+: its last \d+ claims failed: no claims \(the last that worked was \d/)
    isRefusing = false
    await virtual.world.run(15_000)
    expect(await healthOf(virtual)).toMatchObject({ ok: true, problems: [] })
  })

  it('tells of a claim that is never answered, within the time that a call may take', async () => {
    let isSilent = false
    const virtual = virtualClient(
      (store) => ({
        call: (type, request) =>
          isSilent && isClaim(type, request) ? new Promise(() => {}) : store.call(type, request),
      }),
      { callDeadline: 3_000 },
    )
    await virtual.client.worker({ handlers: [handle(task, () => {})] })
    await virtual.world.run(5_000)
    isSilent = true
    await virtual.world.run(5_000 + 1_200 + 3_100)
    expect(await healthOf(virtual)).toMatchObject({ ok: false, store: { ok: true }, claiming: { ok: false } })
  })

  it('counts handlers that ignore their signal until they end', async () => {
    const virtual = virtualClient(() => ({}))
    const ends: (() => void)[] = []
    const deaf = handle(task, () => new Promise<void>((resolve) => ends.push(resolve)))
    await virtual.client.worker({ handlers: [deaf], concurrency: 1, killGrace: 100 })
    await virtual.client.enqueue(task, 1, { timeout: 1_000, maxAttempts: 1 })
    await virtual.world.run(5_000)
    expect(await healthOf(virtual)).toMatchObject({
      ok: true,
      claiming: { lostSlots: 1, each: [{ lostSlots: 1, running: 0 }] },
    })
    for (const end of ends) end()
    await virtual.world.run(6_000)
    expect(await healthOf(virtual)).toMatchObject({ ok: true, claiming: { each: [{ lostSlots: 0 }] } })
  })

  it('refuses what is no option of it', async () => {
    const { client } = virtualClient(() => ({}))
    for (const options of [null, { right: true }, { rights: 'yes' }])
      await expect(client.health(options as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await client.close()
  })

  it('never rejects, also when the client is closed', async () => {
    const virtual = virtualClient(() => ({}))
    await virtual.client.close()
    expect(await virtual.client.health()).toMatchObject({ ok: false, problems: [expect.stringMatching(/closed/)] })
  })
})

describe("the store's clock", () => {
  it.each([
    [3_000, 3_000],
    [-3_000, -3_000],
    [0.3, 0],
    [-0.3, 0],
  ])('%s ms from that of the process is told as %s ms ahead', async (offMs, told) => {
    const { world, process, client } = virtualClient((store) => ({
      call: async (type, request) => {
        const reply = await store.call(type, request)
        return type === 'store.health' ? { ...reply, nowMs: process.now() + offMs } : reply
      },
    }))
    const health = client.health()
    await settledAt(world, health)
    // `toBe` tells -0, which is lost in JSON, from 0.
    expect((await health).store.clockAheadMs).toBe(told)
    const closed = client.close()
    await settledAt(world, closed)
  })
})
