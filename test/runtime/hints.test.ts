/** Wake-ups: asked for by idle workers only, and the poll behind them. What is held is renewed when the store may be another. */
import { describe, expect, it } from 'vitest'
import type { Backend, HintListener } from '#dist/src/backends/backend.js'
import type { Reply, Request } from '#dist/src/backends/protocol/index.js'
import { defineJob, handle } from '#dist/src/contract.js'
import { HoldfastError } from '#dist/src/errors.js'
import { type Gate, gate } from '../support/event.ts'
import { type VirtualClient, virtualClient } from '../support/virtual-client.ts'

const task = defineJob<number>('task')

/** A store that notes who wants wake-ups, and hints only when the test says so. */
function hinted(isReliable: () => boolean = () => false) {
  const wants: boolean[] = []
  const subscribed: string[][] = []
  let turns = 0
  let hint: HintListener = () => {}
  const virtual = virtualClient((store) => ({
    call: (type, request) => {
      if (type === 'job.turn') turns += 1
      return store.call(type, request)
    },
    subscribe: (lanes, listener) => {
      hint = listener
      subscribed.push([...lanes])
      return {
        want: (isWanted) => wants.push(isWanted),
        get isReliable() {
          return isReliable()
        },
        stop: () => {
          hint = () => {}
        },
      }
    },
  }))
  return { ...virtual, wants, subscribed, turns: () => turns, hint: (lane: string | null) => hint(lane) }
}

describe('a worker asks for wake-ups', () => {
  const working = ({ process }: VirtualClient) =>
    handle(task, async () => {
      await new Promise<void>((resolve) => {
        process.set(resolve, 100)
      })
    })

  it('while it has a free slot and found nothing, and tells the store only when that changes', async () => {
    const virtual = hinted()
    const { world, client, wants, hint, subscribed } = virtual
    const worker = await client.worker({ handlers: [working(virtual)], lanes: ['a', 'b'], concurrency: 1, poll: '1h' })
    expect(subscribed).toEqual([['a', 'b']])
    await world.run(10)
    expect(wants).toEqual([true])
    await client.enqueueMany([1, 2].map((input) => ({ job: task, input, options: { queue: 'a' } })))
    hint('a')
    await world.run(150)
    expect(worker.activeJobs).toBe(1)
    expect(wants).toEqual([true, false])
    await world.run(250)
    expect(wants).toEqual([true, false, true])
    void worker.stop()
    await world.run(300)
    expect(wants).toEqual([true, false, true, false])
  })

  it('with one slot of two in use, but not when its last free slot was taken away', async () => {
    const virtual = hinted()
    const { world, client, wants, hint } = virtual
    const worker = await client.worker({ handlers: [working(virtual)], concurrency: 2, poll: '1h' })
    await client.enqueue(task, 1)
    hint(null)
    await world.run(50)
    expect(worker.activeJobs).toBe(1)
    expect(wants.at(-1)).toBe(true)
    void worker.removeSlot()
    await world.run(60)
    expect(wants.at(-1)).toBe(false)
    await world.run(200)
    expect(wants.at(-1)).toBe(true)
  })

  it('not about lanes of others', async () => {
    const virtual = hinted()
    const { world, client, hint, turns } = virtual
    await client.worker({ handlers: [working(virtual)], lanes: ['a'], poll: '1h' })
    await world.run(10)
    hint('b')
    await world.run(20)
    expect(turns()).toBe(1)
    hint('a')
    await world.run(30)
    expect(turns()).toBe(2)
  })
})

it('a worker polls half as often while its wake-ups are reliable, from the next wait on', async () => {
  let isReliable = true
  const { world, client, turns } = hinted(() => isReliable)
  await client.worker({ handlers: [handle(task, () => 1)], poll: 1_000 })
  await world.run(200_000)
  const rare = turns()
  isReliable = false
  await world.run(400_000)
  const usual = turns() - rare
  // One poll each 2 s, then each 1 s, and a fifth of jitter.
  expect([rare > 80, rare < 125, usual > 165, usual < 251]).toEqual([true, true, true, true])
})

it('a worker whose claims fail polls as often as without wake-ups, and asks for none', async () => {
  const wants: boolean[] = []
  let turns = 0
  const { world, client } = virtualClient(
    () => ({
      call: async () => {
        turns += 1
        throw new HoldfastError('STORE_CORRUPT', 'no', { details: { outcome: 'refused' } })
      },
      subscribe: () => ({ want: (isWanted) => wants.push(isWanted), isReliable: true, stop: () => {} }),
    }),
    { callDeadline: 1 },
  )
  await client.worker({ handlers: [handle(task, () => 1)], poll: 1_000, reap: '1h' })
  await world.run(50_000)
  expect(turns).toBeGreaterThan(41)
  expect(wants).toEqual([])
})

describe('when the store may be another', () => {
  type Renewal = Request<'lease.renew'>

  /** Renewals are answered by the test; `change` is what the store calls. */
  async function renewing() {
    const renewals: { readonly request: Renewal; readonly answer: Gate<Reply<'lease.renew'> | HoldfastError> }[] = []
    const listeners = new Set<() => Promise<void>>()
    const virtual = virtualClient((store: Backend) => ({
      call: async (type, request) => {
        if (type !== 'lease.renew') return store.call(type, request)
        const answer = gate<Reply<'lease.renew'> | HoldfastError>()
        renewals.push({ request: request as Renewal, answer })
        const given = await answer.passed
        if (given instanceof HoldfastError) throw given
        return given as never
      },
      onChange: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }))
    const { client, world } = virtual
    let signal = new AbortController().signal
    const handler = handle(task, async (_, context) => {
      signal = context.signal
      await new Promise(() => {})
    })
    const worker = await client.worker({ handlers: [handler], lease: 30_000 })
    await client.enqueue(task, 1)
    await world.run(10)
    const change = (): { readonly isDone: () => boolean } => {
      let isDone = false
      for (const listener of listeners) void listener().then(() => (isDone = true))
      return { isDone: () => isDone }
    }
    return { ...virtual, renewals, listeners, worker, change, isAborted: () => signal.aborted }
  }
  const renewed = { outcomes: ['renewed'] } as const

  it('all that is held is renewed at once, and the answer dealt with before the store is told', async () => {
    const { world, renewals, change, isAborted } = await renewing()
    const { isDone } = change()
    await world.settle()
    expect(renewals.map(({ request }) => request.leases.length)).toEqual([1])
    expect(isDone()).toBe(false)
    let wasAborted = false
    renewals[0]?.answer.open({ outcomes: ['leaseLost'] })
    await world.run(11, () => {
      wasAborted = isAborted()
      return isDone()
    })
    expect([isDone(), wasAborted]).toEqual([true, true])
  })

  it('a renewal that is under way does not count: one more is sent after it, and only one', async () => {
    const { world, renewals, change } = await renewing()
    await world.run(10_020)
    expect(renewals.length).toBe(1)
    const changes = [change(), change()]
    await world.settle()
    expect(renewals.length).toBe(1)
    renewals[0]?.answer.open(renewed)
    await world.settle()
    expect(renewals.length).toBe(2)
    expect(changes.map(({ isDone }) => isDone())).toEqual([false, false])
    renewals[1]?.answer.open(renewed)
    await world.settle()
    expect(changes.map(({ isDone }) => isDone())).toEqual([true, true])
    expect(renewals.length).toBe(2)
  })

  it('a renewal that fails ends the wait as well, and the next tick tries again', async () => {
    const { world, renewals, change, isAborted } = await renewing()
    const { isDone } = change()
    await world.settle()
    renewals[0]?.answer.open(new HoldfastError('STORE_CORRUPT', 'no', { details: { outcome: 'refused' } }))
    await world.settle()
    expect([isDone(), isAborted()]).toEqual([true, false])
    await world.run(10_020)
    expect(renewals.length).toBe(2)
  })

  it('a worker that has stopped hears of it no more', async () => {
    const { world, listeners, worker } = await renewing()
    expect(listeners.size).toBe(1)
    void worker.stop({ deadline: 10 })
    // The handler hears no signal: its grace of 2 s is waited for.
    await world.run(4_000)
    expect(listeners.size).toBe(0)
  })
})
