/** Leases of types beside the worker's own: what is asked for when, by whom, and what that costs. C021. Virtual time. */
import { describe, expect, it } from 'vitest'
import type { Backend } from '#dist/src/backends/backend.js'
import { LeaseStandIn } from '#dist/src/backends/lease-stand-in.js'
import type { MessageType, Request } from '#dist/src/backends/protocol/index.js'
import { connectWith } from '#dist/src/client.js'
import { defineJob, handle } from '#dist/src/contract.js'
import type { WorkerOptions } from '#dist/src/worker.js'
import { SeededRandom } from '../simulation/random.ts'
import type { VirtualProcess } from '../simulation/virtual-time.ts'
import { codeOf } from '../support/event.ts'
import { silent } from '../support/silent.ts'
import { type VirtualClient, virtualClient } from '../support/virtual-client.ts'

const plain = defineJob<unknown>('plain')
const fast = defineJob<unknown>('fast', { lease: '2s' })
const quick = defineJob<unknown>('quick', { lease: 2_000 })
const slow = defineJob<unknown>('slow', { lease: '12s' })
const TYPES = [plain, fast, quick, slow]
const LEASE_MS = 6_000

interface Renewal {
  readonly at: number
  readonly leaseMs: number
  readonly types: readonly string[]
}

interface Scene extends VirtualClient {
  /** What the main loop does, in order: calls, and handlers that begin. */
  readonly acts: string[]
  readonly renewals: Renewal[]
  readonly standIns: Renewal[]
  /** Ids of jobs by their type. */
  readonly ids: Map<string, string>
  /** The codes with which signals fired, by type. */
  readonly signals: Map<string, string>
  /** Renewals of the main loop are not answered. */
  isCut: boolean
}

interface SceneOptions {
  readonly worker?: Partial<WorkerOptions>
  readonly types?: readonly (typeof plain)[]
  readonly hasThread?: boolean
  readonly isCut?: boolean
}

/** One job of each type in a worker of process `p` whose handlers never end. */
async function scene({
  worker = {},
  types = TYPES,
  hasThread = false,
  isCut = false,
}: SceneOptions = {}): Promise<Scene> {
  const known: { thread?: VirtualProcess; here?: Scene } = {}
  const note = (into: 'renewals' | 'standIns', { leases, leaseMs }: Request<'lease.renew'>): void => {
    const { here } = known
    const typeOf = (id: string): string => [...(here?.ids ?? [])].find(([, each]) => each === id)?.[0] ?? id
    here?.[into].push({ at: here.world.time, leaseMs, types: leases.map(({ id }) => typeOf(id)).sort() })
  }
  const acts: string[] = []
  let boards = 0
  let standIn: LeaseStandIn | null = null
  const changes = (store: Backend): Partial<Backend> => ({
    call: (type: MessageType, request: never) => {
      acts.push(type)
      if (type !== 'lease.renew') return store.call(type, request)
      note('renewals', request)
      return known.here?.isCut === true ? new Promise<never>(() => {}) : store.call(type, request)
    },
    keepLeases: (terms) => {
      const { thread } = known
      if (!hasThread || thread === undefined) return null
      standIn ??= new LeaseStandIn({
        clock: thread,
        timers: thread,
        renew: (request) => {
          note('standIns', request)
          return store.call('lease.renew', request)
        },
      })
      const [own, id] = [standIn, ++boards]
      own.add(id, terms, [])
      return { isReady: true, addPage: (memory) => own.addPage(id, memory), stop: () => own.remove(id) }
    },
  })
  const virtual = virtualClient(changes)
  const here: Scene = {
    ...virtual,
    ...{ acts, renewals: [], standIns: [], ids: new Map(), signals: new Map(), isCut },
  }
  known.here = here
  known.thread = virtual.world.process('thread')
  const { client, world } = virtual
  const handlers = types.map((type) =>
    handle(type, (_input, { signal }) => {
      acts.push(`start ${type.type}`)
      signal.addEventListener('abort', () => here.signals.set(type.type, (signal.reason as { code: string }).code))
      return new Promise<never>(() => {})
    }),
  )
  for (const type of types) here.ids.set(type.type, (await client.enqueue(type, null)).id)
  await client.worker({ handlers, lease: LEASE_MS, killGrace: 100, ...worker })
  await world.run(20)
  return here
}

const pass = ({ world }: Scene, ms: number): Promise<void> => world.run(world.time + ms)

/** Another process on the same store, whose worker takes what it can. Says when it ran which type. */
async function other({ world, store }: Scene, worker: Partial<WorkerOptions> = {}): Promise<Map<string, number>> {
  const process = world.process('other')
  const options = { logger: silent }
  const client = connectWith({ backend: store, clock: process, timers: process, random: new SeededRandom(2), options })
  const runs = new Map<string, number>()
  const handlers = TYPES.map((type) => handle(type, () => void runs.set(type.type, world.time)))
  await client.worker({ handlers, poll: 50, ...worker })
  return runs
}

describe('the lease of a type', () => {
  it('is asked for once for all of a grant and each duration, before a handler starts; then each is renewed at its own pace', async () => {
    const here = await scene()
    const first = here.acts.indexOf('lease.renew')
    expect(here.acts.slice(first, first + 6)).toEqual([
      ...['lease.renew', 'lease.renew', 'start plain', 'start fast', 'start quick', 'start slow'],
    ])
    expect(here.renewals.map(({ leaseMs, types }) => [leaseMs, types])).toEqual([
      [2_000, ['fast', 'quick']],
      [12_000, ['slow']],
    ])
    here.renewals.length = 0
    // Beyond the first second, in which somebody may look for cancellations.
    await pass(here, 60_000)
    const each = (leaseMs: number): readonly Renewal[] => here.renewals.filter((one) => one.leaseMs === leaseMs)
    expect(each(2_000).every(({ types }) => types.join() === 'fast,quick')).toBe(true)
    expect(each(LEASE_MS).every(({ types }) => types.join() === 'plain')).toBe(true)
    expect(each(12_000).every(({ types }) => types.join() === 'slow')).toBe(true)
    for (const [leaseMs, pace] of [
      [2_000, 2_000],
      [LEASE_MS, LEASE_MS],
      [12_000, LEASE_MS],
    ] as const) {
      expect(each(leaseMs).length).toBeGreaterThanOrEqual(60_000 / (pace / 3) - 3)
    }
  })

  it('costs a worker whose types have none, or its own, nothing', async () => {
    const same = defineJob<unknown>('same', { lease: LEASE_MS })
    const here = await scene({ types: [plain, same] })
    expect(here.renewals).toEqual([])
    await pass(here, LEASE_MS)
    expect(new Set(here.renewals.map(({ types }) => types.join()))).toEqual(new Set(['plain,same']))
  })

  it('C021 is over when its process was killed, and those of other types stand; the looks for it come as often as it needs', async () => {
    const here = await scene()
    here.process.kill()
    const killedAt = here.world.time
    const runs = await other(here)
    await pass(here, 20_000)
    for (const [type, leaseMs] of [
      ['fast', 2_000],
      ['quick', 2_000],
      ['plain', LEASE_MS],
      ['slow', 12_000],
    ] as const) {
      const sinceMs = (runs.get(type) ?? Number.NaN) - killedAt
      expect([type, sinceMs >= leaseMs - 30, sinceMs <= leaseMs + 1_500]).toEqual([type, true, true])
    }
  })

  it('is the one of the claim until the first renewal has worked', async () => {
    const here = await scene({ isCut: true, types: [fast, slow] })
    here.process.kill()
    const killedAt = here.world.time
    const runs = await other(here, { reap: 50 })
    await pass(here, 20_000)
    for (const type of ['fast', 'slow']) {
      const sinceMs = (runs.get(type) ?? Number.NaN) - killedAt
      expect([type, sinceMs >= LEASE_MS - 30, sinceMs <= LEASE_MS + 200]).toEqual([type, true, true])
    }
  })

  it('is given up locally in its own time when nobody renews it, and no other is', async () => {
    const here = await scene()
    here.isCut = true
    await pass(here, 2_500)
    expect([...here.signals]).toEqual([
      ['fast', 'LEASE_LOST'],
      ['quick', 'LEASE_LOST'],
    ])
    await pass(here, 4_000)
    expect([...here.signals.keys()]).toEqual(['fast', 'quick', 'plain'])
    await pass(here, 6_000)
    expect([...here.signals.keys()]).toEqual(['fast', 'quick', 'plain', 'slow'])
  })

  it('is renewed by the thread while the main loop stands still, at its own pace', async () => {
    const here = await scene({ hasThread: true })
    const runs = await other(here, { reap: 50 })
    here.process.pause()
    await pass(here, 24_000)
    expect([...runs]).toEqual([])
    for (const [types, leaseMs, least] of [
      ['fast,quick', 2_000, 24],
      ['plain', LEASE_MS, 8],
      ['slow', 12_000, 8],
    ] as const) {
      const own = here.standIns.filter((each) => each.leaseMs === leaseMs)
      expect([types, own.length >= least, own.every((each) => each.types.join() === types)]).toEqual([
        types,
        true,
        true,
      ])
    }
    here.process.resume()
    await pass(here, 1_000)
    expect([...here.signals]).toEqual([])
    expect((await here.client.health()).leases.blocks).toBe(1)
  })

  it('is renewed before anything else after a gap that only it is too short for', async () => {
    const here = await scene()
    here.process.pause()
    await pass(here, 1_500)
    here.acts.length = 0
    here.process.resume()
    await pass(here, 50)
    expect(here.acts[0]).toBe('lease.renew')
    const [first] = here.renewals.slice(-1)
    expect([first?.leaseMs, first?.types]).toEqual([2_000, ['fast', 'quick']])
  })

  it('counts for health: a block that the shortest lease does not outlast is told', async () => {
    for (const [types, problems] of [
      [[plain], 0],
      [TYPES, 1],
    ] as const) {
      const here = await scene({ types })
      here.process.pause()
      await pass(here, 3_000)
      here.process.resume()
      await pass(here, 50)
      expect((await here.client.health()).problems).toHaveLength(problems)
    }
  })

  it('is refused by name where it is no duration, or too short', async () => {
    for (const [lease, code] of [
      ['soon', 'INVALID_DURATION'],
      [-1, 'INVALID_DURATION'],
      [99, 'INVALID_ARGUMENT'],
      [null, 'INVALID_DURATION'],
    ] as const) {
      const define = (): unknown => defineJob('task', { lease: lease as never })
      expect([lease, await codeOf(define)]).toEqual([lease, code])
      expect(define).toThrow(/^lease: expected/)
    }
    expect(() => defineJob('task', { lease: 99 })).toThrow('lease: expected at least 100 ms')
    expect(defineJob('task', { lease: '100ms' }).leaseMs).toBe(100)
    expect(defineJob('task').leaseMs).toBeNull()
  })
})
