/** Many who wait for results, in virtual time: how often the store is asked, what wakes them, and how long a wait may take. */
import { describe, expect, it } from 'vitest'
import type { Reply, Request } from '#dist/src/backends/protocol/index.js'
import { defineJob, handle } from '#dist/src/contract.js'
import { HoldfastError } from '#dist/src/errors.js'
import { settledAt, type VirtualClient, virtualClient } from '../support/virtual-client.ts'

const task = defineJob<number>('task')

/** A store that counts looks, fails or falls silent while the test says so, and hints when it is told to. */
function watched() {
  const looks: number[] = []
  const state: { fault: 'away' | 'silent' | null; hint: () => void; awaited: number } = {
    fault: null,
    hint: () => {},
    awaited: 0,
  }
  const virtual: VirtualClient = virtualClient((store) => ({
    call: (type, request) => {
      if (type !== 'job.states') return store.call(type, request)
      looks.push(virtual.world.time)
      if (state.fault === 'silent') return new Promise<never>(() => {})
      const away = new HoldfastError('STORE_UNAVAILABLE', 'away', { details: { outcome: 'notDone' } })
      return state.fault === 'away' ? Promise.reject(away) : store.call(type, request)
    },
    awaitEnds: (_lane, listener) => {
      state.awaited += 1
      state.hint = listener
      return () => {
        state.awaited -= 1
      }
    },
  }))
  return { ...virtual, looks, state }
}

/** Ends a job past the client, as another process would. */
async function complete({ store }: VirtualClient): Promise<void> {
  const claim = { workerId: 'w', nonce: 'n', lanes: ['default'], limit: 1, leaseMs: 1_000, keepDeadMs: null }
  const turn = (request: Partial<Request<'job.turn'>>): Promise<Reply<'job.turn'>> =>
    store.call('job.turn', { settlements: [], claims: [], resend: false, ...request })
  const [job] = (await turn({ claims: [claim] })).grants[0]?.jobs ?? []
  if (job === undefined) throw new Error('no job')
  const ending = { durationMs: 1, keepMs: null, output: '7', keepOutputMs: null }
  await turn({ settlements: [{ kind: 'complete', id: job.id, token: job.token, ...ending }] })
}

describe('waiting for results', () => {
  it('of a thousand jobs is one look at a time, rarer and rarer', async () => {
    const { world, client, looks } = watched()
    const jobs = await client.enqueueMany(Array.from({ length: 1_000 }, (_, n) => ({ job: task, input: n })))
    const waits = Promise.allSettled(jobs.map((job) => job.result({ timeout: '60s' })))
    await settledAt(world, waits)
    expect(looks.length).toBeLessThan(80)
    expect(looks.length).toBeGreaterThan(50)
    for (const each of await waits)
      expect(each).toMatchObject({ reason: { code: 'RESULT_TIMEOUT', details: { state: 'queued' } } })
  })

  it('that begins at any moment shares the looks of the others', async () => {
    const { world, process, client, looks } = watched()
    const jobs = await client.enqueueMany(Array.from({ length: 1_000 }, (_, n) => ({ job: task, input: n })))
    const waits = jobs.map(
      (job, n) =>
        new Promise<unknown>((resolve) => {
          process.set(() => resolve(job.result({ timeout: '30s' }).catch((error: unknown) => error)), n * 3)
        }),
    )
    await settledAt(world, Promise.all(waits))
    // 3 s in which somebody begins, one look in 20 ms at most; then they come together.
    expect(looks.length).toBeLessThan(3_000 / 20 + 33_000 / 20)
    looks.slice(1).forEach((at, index) => {
      expect(at - (looks[index] ?? 0)).toBeGreaterThanOrEqual(19.9)
    })
  })

  it('ends at once when a worker of the same client ends the job, without a look', async () => {
    const { world, client, looks } = watched()
    const job = await client.enqueue(task, 1, { delay: 5_000 })
    const result = job.result()
    await world.run(world.time + 4_000)
    const before = looks.length
    await client.worker({ handlers: [handle(task, (n) => n)] })
    const startedAt = world.time
    const endedAt = await settledAt(world, result)
    expect(await result).toBe(1)
    expect(endedAt).toBeGreaterThan(startedAt)
    expect(looks.length - before).toBeLessThan(6)
  })

  it('looks when the store hints, less often while hints are about others, and stops listening with the last wait', async () => {
    const virtual = watched()
    const { world, client, looks, state } = virtual
    const job = await client.enqueue(task, 1)
    const result = job.result({ timeout: '100s' })
    await world.run(world.time + 10_000)
    expect(state.awaited).toBe(1)
    const before = looks.length
    for (let hints = 0; hints < 2_000; hints += 1) {
      state.hint()
      await world.run(world.time + 1)
    }
    // Two seconds of hints about other jobs: 20, 40, 80 … 250 ms apart.
    expect(looks.length - before).toBeGreaterThan(6)
    expect(looks.length - before).toBeLessThan(20)
    await complete(virtual)
    await world.run(world.time + 260)
    const hintedAt = world.time
    state.hint()
    expect(await settledAt(world, result)).toBeLessThan(hintedAt + 300)
    expect(await result).toBe(7)
    expect(state.awaited).toBe(0)
  })

  it('goes on through an outage, and finds what ended meanwhile', async () => {
    const virtual = watched()
    const { world, client, state } = virtual
    const job = await client.enqueue(task, 1)
    const result = job.result({ timeout: '60s' })
    state.fault = 'away'
    await world.run(world.time + 25_000)
    await complete(virtual)
    state.fault = null
    await settledAt(world, result)
    expect(await result).toBe(7)
  })

  it('ends within a second of its time, also when the store says nothing at all', async () => {
    const { world, client, state } = watched()
    const job = await client.enqueue(task, 1)
    state.fault = 'silent'
    const startedAt = world.time
    const result = job.result({ timeout: 2_000 })
    const endedAt = await settledAt(world, result)
    await expect(result).rejects.toMatchObject({ code: 'RESULT_TIMEOUT', details: { state: null } })
    expect(endedAt - startedAt).toBeLessThanOrEqual(3_050)
  })

  it('looks once more when its time is up', async () => {
    const virtual = watched()
    const { world, client } = virtual
    const job = await client.enqueue(task, 1)
    const result = job.result({ timeout: 10_500 })
    await world.run(world.time + 10_400)
    await complete(virtual)
    await settledAt(world, result)
    expect(await result).toBe(7)
  })
})
