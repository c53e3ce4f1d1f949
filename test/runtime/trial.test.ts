/** Jobs that may end their process: which they are, and that one worker never has two of them at once while one is on trial. C010. */
import { type ConnectOptions, defineJob, handle, type JobHandle, type WorkerOptions } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { isDangerous, TRIAL_MS } from '#dist/src/actors/trial.js'
import type { Reply, Request } from '#dist/src/backends/protocol/index.js'
import { type Gate, gate } from '../support/event.ts'
import { virtualClient } from '../support/virtual-client.ts'

const task = defineJob<string>('task', { maxCrashes: 3 })
const OPTIONS = { maxAttempts: 5 }

describe('dangerous', () => {
  const budget = { crashes: 0, maxCrashes: 3, attempt: 1, maxAttempts: 7 }
  it.each([
    ['that has not run', {}, false],
    ['that has crashed once', { crashes: 1, attempt: 2 }, false],
    ['that has crashed twice in a row', { crashes: 2, attempt: 3 }, true],
    ['that has crashed twice in a row and may do so often', { crashes: 2, attempt: 3, maxCrashes: 20 }, true],
    ['that one more crash ends by the number of crashes', { crashes: 1, attempt: 2, maxCrashes: 2 }, true],
    ['that one more crash ends by the number of attempts', { crashes: 1, attempt: 7 }, true],
    ['that may crash once and has not', { maxCrashes: 1 }, false],
    ['whose last attempt failed otherwise, at its last', { attempt: 7 }, false],
  ])('a job %s', (_name, changes, expected) => {
    expect(isDangerous({ ...budget, ...changes })).toBe(expected)
  })
})

interface Run {
  readonly input: string
  readonly worker: string
  readonly from: number
  to: number
}

/** A store that takes a millisecond for each turn, and all runs in virtual time. */
function stage(options: ConnectOptions = {}, overlapsTurns = false) {
  const runs: Run[] = []
  const claims: number[] = []
  const released: Gate[] = []
  let holdsReleases = false
  const scene = virtualClient(
    (store) => ({
      overlapsTurns,
      call: async (type, request) => {
        if (type !== 'job.turn') return store.call(type, request)
        const { settlements, claims: asked } = request as Request<'job.turn'>
        if (asked.some(({ workerId }) => workerId !== 'dead')) claims.push(scene.world.time)
        await new Promise<void>((resolve) => {
          scene.process.set(resolve, 1)
        })
        if (holdsReleases && settlements.some(({ kind }) => kind === 'release')) {
          const held = gate()
          released.push(held)
          await held.passed
        }
        return store.call(type, request)
      },
    }),
    options,
  )
  const { world, store, client } = scene

  /** Jobs that have crashed twice. */
  async function crashed(inputs: readonly string[]): Promise<readonly JobHandle<unknown>[]> {
    const jobs = await client.enqueueMany(inputs.map((input) => ({ job: task, input, options: OPTIONS })))
    for (const nonce of ['a', 'b']) {
      const claim = { workerId: 'dead', nonce, lanes: ['default'], limit: jobs.length, leaseMs: 1, keepDeadMs: null }
      const turn = { settlements: [], claims: [claim], resend: false }
      const { grants } = (await store.call('job.turn', turn)) as Reply<'job.turn'>
      expect(grants[0]?.jobs).toHaveLength(jobs.length)
      await world.run(world.time + 10)
      expect((await client.maintain()).reaped).toBe(jobs.length)
    }
    return jobs
  }

  const work = (id: string, ms: (input: string) => number, options: Partial<WorkerOptions> = {}) =>
    client.worker({
      id,
      poll: '1h',
      reap: '1h',
      ...options,
      handlers: [
        handle(task, async (input) => {
          const run = { input, worker: id, from: world.time, to: Number.POSITIVE_INFINITY }
          runs.push(run)
          await new Promise<void>((resolve) => {
            scene.process.set(resolve, ms(input))
          })
          run.to = world.time
        }),
      ],
    })

  const ordinary = (count: number) =>
    client.enqueueMany(Array.from({ length: count }, () => ({ job: task, input: 'fresh' })))

  return {
    ...scene,
    runs,
    claims,
    crashed,
    work,
    ordinary,
    /** Until `go` the answer to whoever gives jobs back is awaited. */
    holdReleases: () => {
      holdsReleases = true
    },
    go: () => {
      holdsReleases = false
      for (const each of released.splice(0)) each.open()
    },
  }
}

const together = (runs: readonly Run[]): number =>
  Math.max(0, ...runs.map((run) => runs.filter(({ from, to }) => from <= run.from && run.from < to).length))
const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `crashed ${n}`)
const isCrashed = ({ input }: Run): boolean => input.startsWith('crashed')

describe('dangerous jobs in one worker', () => {
  it.each([1, 4])(
    'with %s slots run one after the other, the only lease of their kind when they start',
    async (slots) => {
      const { world, client, runs, claims, crashed, work, ordinary } = stage()
      const jobs = await crashed(names(6))
      const others = await ordinary(8)
      const leases: number[] = []
      await work(
        'w',
        (input) => {
          if (input !== 'fresh') {
            // The memory store answers with what is at this moment.
            void client.list({ state: 'running' }).then(({ jobs: held }) => {
              leases.push(held.filter(({ crashes }) => crashes > 0).length)
            })
          }
          return 100
        },
        { concurrency: slots },
      )
      await world.run(world.time + 5_000)
      expect(runs).toHaveLength(14)
      expect(together(runs.filter(isCrashed))).toBe(1)
      expect(leases).toEqual(Array(6).fill(1))
      for (const { id } of [...jobs, ...others]) expect((await client.get(id))?.state).toBe('completed')
      // Whoever was given back was not charged.
      for (const { id } of jobs) expect((await client.get(id))?.attempts).toBe(3)
      expect(claims.length).toBeLessThan(2 * runs.length + 4)
    },
  )

  it('nothing is claimed while one is on trial, and what runs already goes on', async () => {
    const { world, runs, claims, crashed, work, ordinary } = stage()
    await crashed(names(2))
    await ordinary(2)
    await work('w', (input) => (input === 'fresh' ? 300 : 1_000), { concurrency: 4 })
    await world.run(world.time + 500)
    const [first] = runs.filter(isCrashed)
    expect(runs.filter(({ input, to }) => input === 'fresh' && Number.isFinite(to))).toHaveLength(2)
    expect(claims.filter((at) => at > (first?.from ?? 0))).toEqual([])
    await world.run(world.time + 5_000)
    expect(runs).toHaveLength(4)
  })

  it('another worker takes what was given back', async () => {
    const { world, runs, crashed, work } = stage()
    await crashed(names(2))
    for (const name of ['one', 'two']) await work(name, () => 1_000, { concurrency: 4, poll: 50 })
    await world.run(world.time + 900)
    expect(new Set(runs.map(({ worker }) => worker))).toEqual(new Set(['one', 'two']))
    expect(together(runs)).toBe(2)
  })

  it('one that runs for hours keeps nobody waiting for longer than its trial', async () => {
    const { world, runs, crashed, work, ordinary } = stage()
    await crashed(names(2))
    await work('w', () => 3_600_000, { concurrency: 3 })
    await world.run(world.time + 50)
    await ordinary(1)
    await world.run(world.time + TRIAL_MS - 100)
    expect(runs.map(({ input }) => input)).toEqual(['crashed 0'])
    await world.run(world.time + 200)
    expect(runs.map(({ input }) => input).sort()).toEqual(['crashed 0', 'crashed 1', 'fresh'])
  })
})

describe('a dangerous job that waits for its start', () => {
  async function waiting() {
    const scene = stage()
    const [first, second] = await scene.crashed(names(2))
    scene.holdReleases()
    const worker = await scene.work('w', () => 100, { concurrency: 3, lease: 900 })
    await scene.world.run(scene.world.time + 60)
    expect(scene.runs).toEqual([])
    const stateOf = async (job = first) => {
      const { state, attempts } = (await scene.client.get(job?.id ?? '')) ?? {}
      return [state, attempts]
    }
    expect([await stateOf(), await stateOf(second)]).toEqual([
      ['running', 3],
      ['running', 3],
    ])
    return { ...scene, worker, first: first?.id ?? '', stateOf }
  }

  it('starts when the others are back', async () => {
    const { world, runs, go, stateOf } = await waiting()
    go()
    await world.run(world.time + 150)
    expect(runs[0]?.input).toBe('crashed 0')
    expect(await stateOf()).toEqual(['completed', 3])
  })

  it('never runs when its cancellation was asked for', async () => {
    const { world, client, runs, go, first, stateOf } = await waiting()
    expect(await client.cancel(first)).toBe('requested')
    go()
    await world.run(world.time + 1_000)
    expect(runs.map(({ input }) => input)).toEqual(['crashed 1'])
    expect((await stateOf())[0]).toBe('cancelled')
  })

  it('never runs when its lease was lost, and the next one does', async () => {
    const { world, client, worker, runs, go, first } = await waiting()
    const lost: string[] = []
    worker.on('lost', ({ jobId }) => lost.push(jobId))
    expect(await client.cancel(first, { force: true })).toBe('cancelled')
    // The keeper hears of it with its next renewal.
    await world.run(world.time + 600)
    go()
    await world.run(world.time + 1_000)
    expect([lost, runs.map(({ input }) => input)]).toEqual([[first], ['crashed 1']])
  })

  it('goes back uncharged when its worker stops', async () => {
    const { world, runs, worker, go, stateOf } = await waiting()
    const stopped = worker.stop()
    go()
    await world.run(world.time + 1_000)
    await stopped
    expect(runs).toEqual([])
    expect(await stateOf()).toEqual(['queued', 2])
  })

  it('goes back uncharged when no slot is left for it', async () => {
    const scene = stage()
    await scene.ordinary(1)
    const worker = await scene.work('w', (input) => (input === 'fresh' ? 3_600_000 : 100), { concurrency: 3 })
    await scene.world.run(scene.world.time + 10)
    const [first] = await scene.crashed(names(2))
    scene.holdReleases()
    worker.addSlot()
    await scene.world.run(scene.world.time + 60)
    expect((await scene.client.get(first?.id ?? ''))?.state).toBe('running')
    for (let slots = 4; slots > 1; slots -= 1) void worker.removeSlot()
    scene.go()
    await scene.world.run(scene.world.time + 60)
    expect(scene.runs.map(({ input }) => input)).toEqual(['fresh'])
    expect(await scene.client.get(first?.id ?? '')).toMatchObject({ state: 'queued', attempts: 2 })
  })
})

describe('dangerous jobs that come while fast ones take all slots', () => {
  const first = (inputs: readonly string[]) => inputs.map((input) => ({ job: task, input, options: { priority: 9 } }))

  it.each([
    [['default'], false],
    [['default'], true],
    [['other', 'default'], true],
    [['default', 'other'], true],
  ])('have their turn all the same, in the lanes %j, turns overlapping: %s', async (lanes, overlapsTurns) => {
    const { world, client, runs, crashed, work, ordinary } = stage({}, overlapsTurns)
    await crashed(names(3))
    await ordinary(1_000)
    for (const queue of lanes) {
      await client.enqueueMany(Array.from({ length: 1_000 }, () => ({ job: task, input: 'fresh', options: { queue } })))
    }
    await client.enqueueMany(first(Array(100).fill('fast')))
    await work('w', () => 1, { concurrency: 2, lanes })
    await world.run(world.time + 10_000)
    expect(runs).toHaveLength(3 + 1_000 + 1_000 * lanes.length + 100)
    const last = runs.findLastIndex(isCrashed)
    // Most of what was claimed beyond the slots meanwhile, and of the other lane as much.
    expect(last).toBeLessThan(100 + 200 * lanes.length)
  })

  it('are not claimed over and over', async () => {
    const { world, client, runs, claims, crashed, work } = stage()
    await crashed(names(20))
    await client.enqueueMany(first([...Array(100).fill('fast'), 'long']))
    await work('w', (input) => (input === 'long' ? 5_000 : 3), { concurrency: 1 })
    await world.run(world.time + 3_000)
    const long = runs.find(({ input }) => input === 'long')
    expect(long?.to).toBe(Number.POSITIVE_INFINITY)
    expect(claims.filter((at) => at > (long?.from ?? at)).length).toBeLessThan(3)
    await world.run(world.time + 20_000)
    expect(runs.filter(isCrashed)).toHaveLength(20)
  })
})

it('a worker is well during a trial however short its poll and the deadline of a call', async () => {
  const { world, client, runs, crashed, work } = stage({ callDeadline: '1s' })
  await crashed(names(2))
  await work('w', () => 3_600_000, { concurrency: 3, poll: 100 })
  await world.run(world.time + TRIAL_MS - 100)
  expect(runs).toHaveLength(1)
  const asked = client.health()
  await world.run(world.time + 10)
  expect((await asked).claiming.each).toMatchObject([{ ok: true, problems: [], running: 1 }])
})
