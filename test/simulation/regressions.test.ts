/** Faults that seeds have found, each boiled down to the few steps that show it. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { StoreCaller } from '#dist/src/actors/store-call.js'
import type { Backend, HintSubscription } from '#dist/src/backends/backend.js'
import { everyHint, keepsNoLeases, neverChanges } from '#dist/src/backends/local.js'
import { MEMORY_CAPABILITIES } from '#dist/src/backends/memory/backend.js'
import type { MessageType, Reply, Request } from '#dist/src/backends/protocol/index.js'
import { connectWith } from '#dist/src/client.js'
import { defineJob, handle } from '#dist/src/contract.js'
import { HoldfastError } from '#dist/src/errors.js'
import { SimulatedStore } from './faulty-backend.ts'
import { SeededRandom } from './random.ts'
import { type VirtualProcess, World } from './virtual-time.ts'

const TASK = defineJob('t')

type Answer = 'unknown' | 'notDone' | 'ok'

/** Answers calls as scripted, and keeps the requests. */
class ScriptedBackend implements Backend {
  readonly name = 'scripted'
  readonly capabilities = MEMORY_CAPABILITIES
  readonly transactional = null
  readonly limits = { enqueueJobs: 10, turnSettlements: 10, claimJobs: 10 }
  readonly overlapsTurns = false
  readonly onChange = neverChanges
  readonly keepLeases = keepsNoLeases
  readonly requests: unknown[] = []
  private readonly answers: Answer[]

  constructor(answers: readonly Answer[]) {
    this.answers = [...answers]
  }

  call<T extends MessageType>(_type: T, request: Request<T>): Promise<Reply<T>> {
    this.requests.push(request)
    const outcome = this.answers.shift() ?? 'notDone'
    if (outcome === 'ok') return Promise.resolve({ verdicts: [], grants: [] } as unknown as Reply<T>)
    return Promise.reject(new HoldfastError('STORE_UNAVAILABLE', outcome, { details: { outcome } }))
  }

  subscribe(): HintSubscription {
    return everyHint(() => {})
  }

  awaitEnds(): () => void {
    return () => {}
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

async function outcomeOf(answers: readonly Answer[]) {
  const world = new World()
  const process = world.process('p')
  const backend = new ScriptedBackend(answers)
  const caller = new StoreCaller({
    backend,
    clock: process,
    timers: process,
    random: new SeededRandom(1),
    callDeadlineMs: 1_000,
  })
  const turn = { settlements: [], claims: [], resend: false }
  let outcome: unknown = 'pending'
  caller
    .call('job.turn', turn, 1_000, (same, mayBeDone) => ({ ...same, resend: mayBeDone }))
    .then(
      () => (outcome = 'ok'),
      (error: HoldfastError) => (outcome = error.details.outcome),
    )
  await world.run(5_000)
  return { outcome, resends: backend.requests.map((request) => (request as typeof turn).resend) }
}

test('a call is unknown as a whole when any of its tries was, however certain the last refusal', async () => {
  expect((await outcomeOf(['unknown'])).outcome).toBe('unknown')
  expect((await outcomeOf(['notDone', 'unknown', 'notDone'])).outcome).toBe('unknown')
  expect((await outcomeOf([])).outcome).toBe('notDone')
})

test('only after an unknown try is a turn marked as sent again, and from then on it stays so', async () => {
  expect(await outcomeOf(['notDone', 'notDone', 'ok'])).toEqual({ outcome: 'ok', resends: [false, false, false] })
  expect(await outcomeOf(['notDone', 'unknown', 'notDone', 'ok'])).toEqual({
    outcome: 'ok',
    resends: [false, false, true, true],
  })
})

/** The store at a distance that the test sets for each call. */
class DistantBackend extends ScriptedBackend {
  private readonly store: SimulatedStore
  private readonly process: VirtualProcess
  private readonly distance: (type: MessageType, request: unknown) => { there: number; back: number }

  constructor(store: SimulatedStore, process: VirtualProcess, distance: DistantBackend['distance']) {
    super([])
    this.store = store
    this.process = process
    this.distance = distance
  }

  override call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>> {
    const { there, back } = this.distance(type, request)
    return new Promise((resolve) => {
      this.store.world.after(there, () => {
        const reply = this.store.execute(type, request, { origin: this.process.name, copy: 0 })
        this.process.set(() => resolve(reply), back)
      })
    })
  }
}

function connectAt(distance: (type: MessageType, request: unknown) => { there: number; back: number }) {
  const world = new World()
  const store = new SimulatedStore(world)
  const process = world.process('p')
  const broken: string[] = []
  const client = connectWith({
    backend: new DistantBackend(store, process, distance),
    clock: process,
    timers: process,
    random: new SeededRandom(1),
    options: { logger: pino({ level: 'error' }, { write: (line) => broken.push(line) }) },
  })
  return { world, store, client, broken, process }
}

const isSettling = (request: unknown): boolean => (request as Request<'job.turn'>).settlements.length > 0

test('a job granted to a worker that is stopping is given back once, also when its cancellation is asked for meanwhile', async () => {
  const { world, store, client, broken } = connectAt((type, request) =>
    type !== 'job.turn'
      ? { there: 1, back: 1 }
      : isSettling(request)
        ? { there: 900, back: 1 }
        : { there: 20, back: 20 },
  )
  const job = client.enqueue('t', 1)
  await world.run(5)
  const { id } = await job
  let runs = 0
  const worker = client.worker({ lanes: ['default'], lease: 300, handlers: [handle(TASK, () => (runs += 1))] })
  // The claim has been executed at 25 and its answer is on the way when the worker is stopped.
  await world.run(30)
  void (await worker).stop()
  await world.run(50)
  void client.cancel(id)
  await world.run(5_000)
  const settlements = store.facts.filter((fact) => fact.kind === 'settle')
  expect(settlements.map(({ how, verdict }) => `${how} ${verdict}`)).toEqual(['release cancelled'])
  expect(broken).toEqual([])
  expect(runs).toBe(0)
})

test('a claim that arrives after its repetition gives no worker more than it has slots', async () => {
  let claims = 0
  const { world, store, client } = connectAt((type) => {
    if (type !== 'job.turn') return { there: 1, back: 1 }
    claims += 1
    // The first claim wanders for longer than a call may take. Its repetition overtakes it, but is not heard; the third hears of both.
    if (claims === 1) return { there: 15_000, back: 1 }
    return claims === 2 ? { there: 1, back: 200_000 } : { there: 1, back: 1 }
  })
  const jobs = client.enqueueMany([1, 2, 3, 4].map((input) => ({ job: 't', input })))
  await world.run(5)
  await jobs
  let most = 0
  const worker = await client.worker({
    lanes: ['default'],
    concurrency: 2,
    handlers: [
      handle(TASK, async () => {
        most = Math.max(most, worker.activeJobs)
        await new Promise(() => {})
      }),
    ],
  })
  await world.run(60_000)
  const releases = store.facts.filter(
    (fact) => fact.kind === 'settle' && fact.how === 'release' && fact.verdict === 'applied',
  )
  expect(releases.length).toBe(2)
  expect(most).toBe(2)
})

test('turns of several workers of one client are merged, and each is told what became of its own', async () => {
  const { world, store, client, broken, process } = connectAt(() => ({ there: 10, back: 10 }))
  const runs = new Map<unknown, number>()
  const lost: unknown[] = []
  for (let number = 0; number < 4; number += 1) {
    const worker = await client.worker({
      id: `w${number}`,
      concurrency: 1,
      handlers: [
        handle(TASK, async (input) => {
          runs.set(input, (runs.get(input) ?? 0) + 1)
          await new Promise<void>((resolve) => {
            process.set(resolve, 100)
          })
        }),
      ],
    })
    worker.on('lost', (event) => lost.push(event))
  }
  const inputs = Array.from({ length: 12 }, (_, input) => input)
  void client.enqueueMany(inputs.map((input) => ({ job: 't', input })))
  await world.run(120_000)
  expect(store.counts.get('merged settlements')).toBeGreaterThan(0)
  expect(store.counts.get('merged claims')).toBeGreaterThan(0)
  expect([...runs].sort(([a], [b]) => Number(a) - Number(b))).toEqual(inputs.map((input) => [input, 1]))
  const completed = store.facts.filter(
    (fact) => fact.kind === 'settle' && fact.how === 'complete' && fact.verdict === 'applied',
  )
  expect(completed.length).toBe(12)
  expect(lost).toEqual([])
  expect(broken).toEqual([])
})
