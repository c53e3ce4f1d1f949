/**
 * One seeded scenario on a real store: logical clients that call one at a time, one of them on a link that cuts and drops, a
 * clock that goes forth and back, and a store that forgets what it may, loses its connections, or is killed. What each call did is a
 * fact, told by its answer or, where that was lost, by a look at the store; at the end everything is healed and every job ends.
 */
import { createHash } from 'node:crypto'
import type { MessageType, Reply, Request, Settlement } from '#dist/src/backends/protocol/index.js'
import { isHoldfastError } from '#dist/src/errors.js'
import { isTerminal, type JobState } from '#dist/src/job.js'
import { checkLiveness, checkNoneLost, checkSafety, type Violation } from '../simulation/checkers.ts'
import {
  type DumpedJob,
  type Effect,
  epochOf,
  type Fact,
  factsOf,
  type Produced,
  type Run,
} from '../simulation/history.ts'
import { SeededRandom } from '../simulation/random.ts'
import { eventually } from '../support/event.ts'
import { LANES, LEASE_MS, MAX_ATTEMPTS, ScenarioClient } from './client.ts'
import { factsOfUnheard, type Glimpse, sameGlimpse } from './glimpse.ts'
import type { ScenarioBackend, ScenarioStore } from './store.ts'

export interface ScenarioOutcome {
  readonly run: Run
  readonly violations: readonly Violation[]
  readonly counts: ReadonlyMap<string, number>
  readonly hash: string
}

interface Pending<T extends MessageType = MessageType> {
  readonly type: T
  readonly request: Request<T>
  /** What it was sent as before may have been done. */
  readonly isUnknown: boolean
}

interface Party {
  readonly client: ScenarioClient
  readonly backend: ScenarioBackend
  /** On the link that cuts and drops. */
  readonly isFaulty: boolean
  pending: Pending | null
}

const DRAIN_ROUNDS = 60
const START_MS = 1_800_000_000_000

/** Makes a namespace of each, also when a seed runs again. */
let runs = 0

export class ScenarioRun {
  readonly namespace: string
  private readonly store: ScenarioStore
  private readonly random: SeededRandom
  private readonly parties: Party[] = []
  private readonly ids: string[] = []
  private readonly heard = new Set<string>()
  private readonly pruned = new Set<string>()
  private readonly facts: Fact[] = []
  private readonly effects: Effect[] = []
  private readonly produced = new Map<string, Produced>()
  private readonly violations: Violation[] = []
  private readonly counts = new Map<string, number>()
  private readonly granted = new Set<string>()
  private at = 0
  private isDown = false
  private isHealed = false
  private isRepeatOfUnknown = false
  private mayRestart: boolean

  constructor(seed: number, store: ScenarioStore) {
    this.store = store
    this.random = new SeededRandom(seed)
    this.mayRestart = this.random.chance(store.restartChance)
    runs += 1
    this.namespace = `s${seed.toString(16)}-${process.pid}-${runs}`
  }

  async run(): Promise<ScenarioOutcome> {
    const { random, store } = this
    store.clock.freeze(START_MS)
    await store.begin(this.namespace)
    let outcome: ScenarioOutcome
    try {
      await this.open()
      const steps = random.integer(20, 60)
      for (let step = 0; step < steps; step += 1) await this.step()
      await this.heal()
      await this.drain()
      outcome = await this.judge()
    } finally {
      for (const what of await store.end()) this.count(what)
    }
    return outcome
  }

  private async open(): Promise<void> {
    const { random, store, ids, heard } = this
    const board = { ids, heard, now: () => store.clock.now() }
    const backends = await store.open(random.integer(2, 4))
    backends.forEach((backend, index) => {
      const client = new ScenarioClient(`w${index}`, random.fork(), board)
      this.parties.push({ client, backend, isFaulty: index === 0, pending: null })
    })
  }

  private count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  private report(invariant: string, message: string): void {
    this.violations.push({ invariant, job: '', at: this.at, message })
  }

  private async step(): Promise<void> {
    const { random } = this
    const point = random.next()
    if (point < 0.13) this.moveClock()
    else if (point < 0.145) this.count(await this.store.shake(random))
    else if (point < 0.155) await this.killConnections()
    else if (point < 0.175) await this.cutOff()
    else if (point < 0.19 && this.mayRestart) await this.restart()
    else await this.act(random.chance(0.4) ? this.faulty : random.pick(this.parties))
  }

  private get faulty(): Party {
    const [party] = this.parties
    if (party === undefined) throw new Error('there are no clients')
    return party
  }

  private async act(party: Party): Promise<void> {
    const { random } = this
    const { pending } = party
    if (pending !== null && random.chance(0.7)) {
      await this.repeat(party, pending)
      return
    }
    if (random.chance(0.03)) {
      party.client.held.clear()
      party.pending = null
      this.count('client forgot all')
    }
    if (pending !== null) return
    await this.ask(party, random.next())
  }

  private async repeat(party: Party, { type, request, isUnknown }: Pending): Promise<void> {
    party.pending = null
    this.isRepeatOfUnknown = isUnknown
    this.count(`repeated ${type}`)
    const mayBeDone = isUnknown || ('resend' in request && request.resend === true)
    const again = type === 'job.turn' || type === 'job.enqueue' ? { ...request, resend: mayBeDone } : request
    await this.send(party, type, again as Request<typeof type>)
  }

  private async ask(party: Party, point: number): Promise<void> {
    const { client } = party
    if (point < 0.25) await this.produce(party)
    else if (point < 0.65) await this.turn(party, client.turn())
    else if (point < 0.72) await this.send(party, 'lease.renew', client.renew())
    else if (point < 0.82) await this.send(party, 'lease.reap', client.reap())
    else if (point < 0.88) await this.send(party, 'job.cancel', client.cancel())
    else if (point < 0.91) await this.send(party, 'job.promote', client.promote())
    else if (point < 0.93) await this.send(party, 'job.progress', client.progress())
    else if (point < 0.96) {
      const change = { lane: this.random.pick(LANES), paused: this.random.chance(0.4) }
      await this.send(party, 'queue.policy', { changes: [change] })
    } else if (point < 0.98) await this.send(party, 'store.maintain', { limit: 100, keepDeadMs: null })
    else await this.send(party, 'job.list', { lane: null, states: null, type: null, limit: 5, cursor: null })
  }

  private async produce(party: Party): Promise<void> {
    const request = party.client.enqueue()
    for (const { traceId, lane, idempotencyKey: key } of request.jobs) {
      const ref = traceId ?? ''
      this.produced.set(ref, { ref, lane, key, status: 'ambiguous', id: null })
    }
    await this.send(party, 'job.enqueue', request)
  }

  private async turn(party: Party, request: Request<'job.turn'>): Promise<void> {
    for (const { id: job, token, kind } of request.settlements) {
      const result = kind === 'complete' ? 'returned' : 'threw'
      this.effects.push({ kind: 'end', at: this.at, job, attempt: 0, epoch: epochOf(token), result })
    }
    await this.send(party, 'job.turn', request)
  }

  /** One call and what became of it. */
  private async send<T extends MessageType>(party: Party, type: T, request: Request<T>): Promise<void> {
    this.at += 1
    const { at, isRepeatOfUnknown: wasUnknown } = this
    this.isRepeatOfUnknown = false
    const storeNow = this.store.clock.now()
    const isArmed = party.isFaulty && !this.isDown && (await this.arm())
    const before = isArmed || (party.isFaulty && this.isDown) ? await this.look() : null
    try {
      const reply = await party.backend.call(type, request)
      this.facts.push(...factsOf({ at, origin: party.client.name, type, request, reply, copy: 0 }, storeNow))
      this.hear(party, type, { request, reply })
    } catch (error) {
      if (before === null || !isHoldfastError(error)) throw error
      await this.failed(party, { type, request, outcome: String(error.details.outcome), before, storeNow, wasUnknown })
    }
    if (isArmed) await this.store.disarm()
  }

  /** The next call, or a part of it, may be lost on the way there or on the way back. */
  private async arm(): Promise<boolean> {
    const { random } = this
    if (this.isHealed || !random.chance(0.35)) return false
    // What the call before had left behind is on its way by now.
    await this.reached(this.faulty)
    await this.store.arm(random)
    return true
  }

  private async failed<T extends MessageType>(
    party: Party,
    call: {
      readonly type: T
      readonly request: Request<T>
      readonly outcome: string
      readonly before: Glimpse
      readonly storeNow: number
      /** Sent before, and perhaps done then. */
      readonly wasUnknown: boolean
    },
  ): Promise<void> {
    const { type, request, outcome, before, storeNow, wasUnknown } = call
    // When it is back, whatever the old connection had sent has been dealt with.
    if (!this.isDown) {
      await this.store.disarm()
      await this.reached(party)
    }
    const after = await this.look()
    const isSame = sameGlimpse(before, after)
    this.count(`${outcome} ${type}`)
    if (outcome === 'refused') this.report('R35', `${type} was refused`)
    if (outcome === 'notDone' && !isSame) this.report('R24', `${type} was told as not done, and changed something`)
    if (outcome === 'unknown') {
      this.count(isSame ? 'ambiguous was not done' : 'ambiguous was done')
      const unheard = { type, request, before, after, at: this.at, storeNow, maxAttemptsOf: () => MAX_ATTEMPTS }
      const facts = factsOfUnheard(unheard)
      this.facts.push(...facts)
      this.prune(facts, settlementsOf(type, request))
    }
    if (type === 'job.enqueue' && outcome === 'notDone' && !wasUnknown) {
      for (const { traceId } of (request as Request<'job.enqueue'>).jobs) this.told(traceId ?? '', 'failed', null)
      return
    }
    party.pending = { type, request, isUnknown: outcome === 'unknown' || wasUnknown }
  }

  private told(ref: string, status: Produced['status'], id: string | null): void {
    const known = this.produced.get(ref)
    if (known === undefined) return
    this.produced.set(ref, { ...known, status, id })
  }

  /** What ended and was not to be kept is gone. */
  private prune(facts: readonly Fact[], settlements: readonly Settlement[]): void {
    for (const fact of facts) {
      if (fact.kind !== 'settle' || (fact.verdict !== 'applied' && fact.verdict !== 'cancelled')) continue
      const { keepMs } = settlements.find(({ token }) => token === fact.token) ?? { keepMs: null }
      const isEnd = fact.verdict === 'cancelled' || ['complete', 'dead', 'cancel'].includes(fact.how)
      if (keepMs === 0 && isEnd) this.pruned.add(fact.job)
    }
  }

  private hear<T extends MessageType>(
    { client }: Party,
    type: T,
    call: { readonly request: Request<T>; readonly reply: Reply<T> },
  ): void {
    const { request, reply } = call
    if (type === 'job.enqueue') {
      const { jobs } = request as Request<'job.enqueue'>
      ;(reply as Reply<'job.enqueue'>).results.forEach(({ id }, index) => {
        this.told(jobs[index]?.traceId ?? '', 'ok', id)
        this.heard.add(id)
      })
    }
    if (type === 'job.turn') this.hearTurn(client, request as Request<'job.turn'>, reply as Reply<'job.turn'>)
    if (type === 'lease.renew') {
      const { outcomes } = reply as Reply<'lease.renew'>
      ;(request as Request<'lease.renew'>).leases.forEach(({ id, token }, index) => {
        const held = client.held.get(id)
        if (held?.token !== token) return
        if (outcomes[index] === 'cancelRequested') held.isCancelled = true
      })
    }
    if (type === 'lease.reap') client.expired = (reply as Reply<'lease.reap'>).expired
  }

  private hearTurn(client: ScenarioClient, request: Request<'job.turn'>, reply: Reply<'job.turn'>): void {
    const settled = this.facts.slice(-(request.settlements.length + 100))
    this.prune(
      settled.filter((fact) => fact.at === this.at),
      request.settlements,
    )
    for (const { id: job, token, attempt } of client.take(reply)) {
      if (request.resend) this.count(this.granted.has(token) ? 'resend found a grant' : 'resend claimed anew')
      this.effects.push({ kind: 'start', at: this.at, job, attempt, epoch: epochOf(token) })
      if (epochOf(token) > this.store.clock.now() * 1000) this.count('epoch above the time')
    }
    for (const fact of this.facts) if (fact.kind === 'grant') this.granted.add(fact.token)
  }

  private moveClock(): void {
    const { random } = this
    const { clock } = this.store
    if (random.chance(0.75)) {
      clock.advance(random.pick([1, 10, LEASE_MS / 2, LEASE_MS + 1, 5 * LEASE_MS]))
      return
    }
    this.facts.push({ kind: 'jump', at: this.at, storeNow: clock.now(), job: '' })
    clock.advance(-random.integer(1, 3 * LEASE_MS))
    this.count('clock went back')
  }

  private async killConnections(): Promise<void> {
    await this.store.killConnections()
    this.count('connections killed')
    await this.allReached()
  }

  /** The faulty client is cut off until the next time, or the end. */
  private async cutOff(): Promise<void> {
    this.isDown = !this.isDown
    await this.store.setDown(this.isDown)
    if (this.isDown) this.count('cut off')
    else await this.reached(this.faulty)
  }

  private async restart(): Promise<void> {
    this.mayRestart = false
    await this.store.restart(this.random)
    this.count('server restarted')
    await this.allReached()
  }

  private async allReached(): Promise<void> {
    for (const party of this.parties) if (!this.isDown || !party.isFaulty) await this.reached(party)
  }

  private async reached({ backend }: Party): Promise<void> {
    await eventually(() => backend.call('store.health', {}).catch(() => null), 'a connection')
  }

  private look(): Promise<Glimpse> {
    return this.store.look()
  }

  private async heal(): Promise<void> {
    if (this.isDown) await this.cutOff()
    this.isHealed = true
    for (const party of this.parties) if (party.pending !== null) await this.repeat(party, party.pending)
    const changes = LANES.map((lane) => ({ lane, paused: false }))
    await this.send(this.faulty, 'queue.policy', { changes })
  }

  /** Every job ends: what is held is completed, what was lost is taken back, and time passes. */
  private async drain(): Promise<void> {
    for (let round = 0; round < DRAIN_ROUNDS; round += 1) {
      const party = this.parties[round % this.parties.length] ?? this.faulty
      this.store.clock.advance(2 * LEASE_MS)
      await this.send(party, 'store.maintain', { limit: 1_000, keepDeadMs: null })
      for (let more = true; more; more = party.client.expired.length > 0)
        await this.send(party, 'lease.reap', party.client.reap(true))
      await this.turn(party, party.client.turn(true))
      if (party.client.held.size > 0) await this.turn(party, { ...party.client.turn(true), claims: [] })
      if (await this.isDrained()) return
    }
  }

  private async isDrained(): Promise<boolean> {
    const { lanes } = await this.faulty.backend.call('queue.stats', { lanes: LANES })
    return lanes.every(({ counts }) =>
      Object.entries(counts).every(([state, count]) => count === 0 || isTerminal(state as JobState)),
    )
  }

  private async dump(): Promise<readonly DumpedJob[]> {
    const { jobs } = await this.faulty.backend.call('job.get', { ids: this.ids })
    return jobs.flatMap((job) => {
      if (job === null) return []
      const { id, lane, idempotencyKey: key, state, attempts, finishedAt } = job
      return [{ id, lane, key, state, attempts, finishedAt }]
    })
  }

  private async judge(): Promise<ScenarioOutcome> {
    const { facts, effects, pruned } = this
    const dump = await this.dump()
    const run: Run = { facts, effects, produced: [...this.produced.values()], dump, pruned }
    for (const fault of await this.store.recount()) this.report('I18', fault)
    const listed = await this.faulty.backend.call('job.list', { ...ALL_JOBS, limit: 1_000 })
    const [have, want] = [listed.jobs, dump].map((jobs) => jobs.map(({ id }) => id).sort())
    if (JSON.stringify(have) !== JSON.stringify(want)) this.report('I25', `listed ${have}, stored ${want}`)
    const violations = [
      ...this.violations,
      ...checkSafety(run),
      ...checkNoneLost(run),
      ...checkLiveness(run, Number.POSITIVE_INFINITY),
    ]
    const hash = createHash('sha256')
      .update(JSON.stringify([facts, effects, run.produced, dump]))
      .digest('hex')
    return { run, violations, counts: this.counts, hash }
  }
}

const ALL_JOBS = { lane: null, states: null, type: null, cursor: null }

function settlementsOf<T extends MessageType>(type: T, request: Request<T>): readonly Settlement[] {
  if (type === 'job.turn') return (request as Request<'job.turn'>).settlements
  return type === 'lease.reap' ? (request as Request<'lease.reap'>).decisions : []
}
