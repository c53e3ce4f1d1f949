/** How turns overlap: what is in flight at once, what goes before what, and that nothing else has to wait for it. */
import { connect, defineJob, handle } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { Reply, Request } from '#dist/src/backends/protocol/index.js'
import { eventually, type Gate, gate } from '../support/event.ts'
import { silent } from '../support/silent.ts'
import { virtualClient } from '../support/virtual-client.ts'

type Turn = Request<'job.turn'>
type Turned = Reply<'job.turn'>

const task = defineJob<number>('task')
const SLOTS = 4
const JOBS = 400

/** A store that takes a millisecond for each turn, and the story of turns and jobs. */
function watched({ overlapsTurns = true, onTurn = async (_: Turn): Promise<void> => {} } = {}) {
  const story: string[] = []
  const turns: { readonly turn: Turn; readonly inFlight: readonly Turn[] }[] = []
  const inFlight: Turn[] = []
  /** Granted to the worker and not started yet, which handlers that end at once end too. */
  let granted = 0
  let started = 0
  let waitedMost = 0
  const virtual = virtualClient((store) => ({
    overlapsTurns,
    call: async (type, request) => {
      if (type !== 'job.turn') return store.call(type, request)
      const turn = request as Turn
      story.push(turn.claims.length > 0 ? 'claim' : 'settle')
      turns.push({ turn, inFlight: [...inFlight] })
      inFlight.push(turn)
      await new Promise<void>((resolve) => {
        virtual.process.set(resolve, 1)
      })
      const reply = await store.call(type, request)
      const { grants } = reply as Turned
      granted += grants.reduce((sum, { jobs }) => sum + jobs.length, 0)
      waitedMost = Math.max(waitedMost, granted - started)
      await onTurn(turn)
      inFlight.splice(inFlight.indexOf(turn), 1)
      return reply
    },
  }))
  const worker = async (prefetch: number): Promise<void> => {
    await virtual.client.enqueueMany(Array.from({ length: JOBS }, (_, input) => ({ job: task, input })))
    const handler = handle(task, () => {
      started += 1
      story.push('start')
    })
    await virtual.client.worker({ handlers: [handler], concurrency: SLOTS, prefetch, poll: '1h' })
  }
  return { ...virtual, story, turns, worker, waitedMost: () => waitedMost }
}

describe('while handlers are fast and more waits', () => {
  it('the next claim is on its way before the jobs of the last one start, one at a time, and within the bound', async () => {
    const { world, story, turns, worker, waitedMost } = watched()
    await worker(20)
    await world.run(1_000)
    expect(story.filter((each) => each === 'start')).toHaveLength(JOBS)
    const middle = story.slice(story.length / 3, (2 * story.length) / 3).join(' ')
    expect(middle).toContain('claim start start start')
    expect(
      turns.filter(({ turn, inFlight }) => [turn, ...inFlight].flatMap(({ claims }) => claims).length > 1),
    ).toEqual([])
    expect(Math.max(...turns.map(({ inFlight }) => inFlight.length))).toBe(1)
    expect([waitedMost() > SLOTS, waitedMost() <= SLOTS + 20]).toEqual([true, true])
    expect(Math.max(...turns.map(({ turn }) => turn.claims[0]?.limit ?? 0))).toBe((SLOTS + 20) / 2)
  })

  it('not in a store that gains nothing by it: there is one turn, with all that may be held, and jobs start before the next', async () => {
    const { world, story, turns, worker } = watched({ overlapsTurns: false })
    await worker(20)
    await world.run(1_000)
    expect(story.filter((each) => each === 'start')).toHaveLength(JOBS)
    expect(story.join(' ')).not.toContain('claim start start start start claim start start start start claim')
    expect(story).not.toContain('settle')
    expect(Math.max(...turns.map(({ inFlight }) => inFlight.length))).toBe(0)
    expect(Math.max(...turns.map(({ turn }) => turn.claims[0]?.limit ?? 0))).toBe(SLOTS + 20)
  })

  it('not without prefetch: then no more is claimed than slots are free', async () => {
    const { world, story, worker, waitedMost } = watched()
    await worker(0)
    await world.run(1_000)
    expect(story.filter((each) => each === 'start')).toHaveLength(JOBS)
    expect(waitedMost()).toBe(SLOTS)
  })
})

it('what ended is settled by itself when nothing runs any more and a claim is not answered yet', async () => {
  let held: Gate | null = null
  let claims = 0
  const { world, turns, worker, client } = watched({
    onTurn: async ({ claims: asked }) => {
      claims += asked.length
      if (claims !== 5 || asked.length === 0) return
      held = gate()
      await held.passed
    },
  })
  await worker(20)
  await world.run(100)
  expect(held).not.toBeNull()
  const last = turns.at(-1)?.turn
  expect(last?.claims).toEqual([])
  expect(last?.settlements.length).toBeGreaterThan(0)
  // Only what the held answer has granted is not settled.
  const { completed, running } = (await client.stats()).counts
  expect([completed > 0, running]).toEqual([true, (SLOTS + 20) / 2])
})

it('a store that answers at once leaves room for everything else', async () => {
  const hf = await connect('memory:', { logger: silent, keepCompleted: 0 })
  await hf.enqueueMany(Array.from({ length: 20_000 }, (_, input) => ({ job: task, input })))
  let done = 0
  const seen: number[] = []
  const look = (): void => {
    seen.push(done)
    if (done < 20_000) setImmediate(look)
  }
  setImmediate(look)
  await hf.worker({
    handlers: [
      handle(task, () => {
        done += 1
      }),
    ],
    concurrency: 10,
  })
  await eventually(() => done === 20_000, 'all jobs have run')
  const steps = [...seen, done].map((each, index) => each - (seen[index - 1] ?? 0))
  expect(Math.max(...steps)).toBeLessThan(600)
  await hf.close()
})
