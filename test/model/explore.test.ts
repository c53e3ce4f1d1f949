/**
 * Exhaustive exploration of the lease protocol on the real memory store: every order of claims, expiries, renewals, settlements
 * that arrive late or twice, reaps decided on old news, cancellations and the passing of time, breadth first, for two workers.
 * Each path is replayed on a fresh store, so only the public protocol is used; each answer is compared with the specification.
 */
import { expect, test } from 'vitest'
import { MemoryStore } from '#dist/src/backends/memory/store.js'
import type { BackendMessage, Reply, Settlement } from '#dist/src/backends/protocol/index.js'
import type { JobDefinition } from '#dist/src/job.js'
import * as spec from './lease-spec.ts'

interface Bounds {
  readonly jobs: number
  readonly grants: number
  readonly messages: number
  readonly ticks: number
  /** Stop after this many states; the frontier is then cut. */
  readonly states: number
}

interface Node {
  readonly parent: Node | null
  readonly step: string
  readonly at: number
  readonly call: BackendMessage | null
  readonly state: spec.Spec
  /** Lease tokens by grant, as the store gave them on this path. */
  readonly tokens: readonly string[]
}

/** One move: changes the copy of the specification it is given and says what to send and what the store must answer. */
interface Move {
  readonly step: string
  readonly call: BackendMessage | null
  readonly expect: (reply: unknown) => string | null
  readonly tokenFrom?: (reply: unknown) => string
}

const idOf = (job: number): string => `l/${job}`
const LANE = 'l'

const definition = (job: number): JobDefinition => ({
  id: idOf(job),
  type: 't',
  lane: LANE,
  payload: '',
  priority: 0,
  runAt: null,
  delayMs: 0,
  deadlineAt: null,
  timeoutMs: null,
  maxAttempts: 100,
  maxAttemptsFixed: true,
  retry: null,
  maxCrashes: 100,
  idempotencyKey: null,
  concurrencyKey: null,
  metadata: null,
  traceId: null,
  keepResultMs: null,
  replayOf: null,
})

const POLICY = { kind: 'fixed', attempts: 100, baseMs: 10, capMs: 10, jitter: 0 } as const

function settlement(message: spec.Message, token: string): Settlement {
  const base = { id: idOf(message.job), token, durationMs: 0, keepMs: null }
  const failure = { code: 'X', message: 'x' }
  switch (message.kind) {
    case 'complete':
      return { ...base, kind: 'complete', output: null, keepOutputMs: null }
    case 'release':
      return { ...base, kind: 'release', started: true }
    case 'requeue':
      return { ...base, kind: 'requeue', failure, crashes: 1 }
    default:
      return {
        ...base,
        kind: 'retry',
        delayMs: spec.RETRY_DELAY_MS,
        failure,
        crashes: 0,
        retry: POLICY,
        maxAttempts: 100,
      }
  }
}

const differ = (want: unknown, got: unknown): string | null =>
  JSON.stringify(want) === JSON.stringify(got) ? null : `expected ${JSON.stringify(want)}, got ${JSON.stringify(got)}`

class Exploration {
  readonly bounds: Bounds
  states = 0
  edges = 0
  /** True when the bound on states ended the search, so that deeper ones were not looked at. */
  isCut = false
  private readonly seen = new Set<string>()
  private readonly queue: Node[] = []

  constructor(bounds: Bounds) {
    this.bounds = bounds
  }

  run(): void {
    this.add({ parent: null, step: 'begin', at: 0, call: null, state: spec.begin(this.bounds.jobs), tokens: [] })
    for (const node of this.queue) {
      for (const make of this.moves(node)) this.follow(node, make)
      if (this.states < this.bounds.states) continue
      this.isCut = true
      return
    }
  }

  private add(node: Node): void {
    const key = spec.keyOf(node.state)
    if (this.seen.has(key)) return
    this.seen.add(key)
    this.states += 1
    this.queue.push(node)
  }

  /** All moves from a node, each as a function of the copy that it changes. */
  private *moves({ state, tokens }: Node): Generator<(next: spec.Spec) => Move> {
    const { bounds } = this
    for (const worker of [1, 2]) if (state.grants.length < bounds.grants) yield (next) => claimMove(next, worker)
    for (const [index, grant] of state.grants.entries()) {
      if (state.inFlight.length >= bounds.messages) break
      yield (next) => sendMove(next, { kind: 'renew', job: grant.job, grant: index + 1 })
      for (const kind of ['complete', 'retry', 'release'] as const) {
        // A worker decides once how an attempt ended, and may say so again.
        if (grant.decided === null || grant.decided === kind) {
          yield (next) => sendMove(next, { kind, job: grant.job, grant: index + 1 })
        }
      }
    }
    for (const index of state.inFlight.keys()) {
      for (const keep of [false, true]) yield (next) => deliverMove(next, { index, keep, tokens })
    }
    if (state.inFlight.length < bounds.messages && spec.expired(state).length > 0)
      yield (next) => observeMove(next, tokens)
    for (const job of state.jobs.keys()) {
      for (const force of [false, true]) yield (next) => cancelMove(next, job, force)
    }
    if (state.now < bounds.ticks * spec.TICK_MS) {
      yield (next) => {
        next.now += spec.TICK_MS
        return { step: 'tick', call: null, expect: () => null }
      }
    }
  }

  private follow(node: Node, make: (next: spec.Spec) => Move): void {
    const state = spec.copy(node.state)
    const move = make(state)
    this.edges += 1
    const at = state.now
    const child = { parent: node, step: move.step, at, call: move.call, state }
    if (move.call === null) {
      this.add({ ...child, tokens: node.tokens })
      return
    }
    const { store, clock } = rebuild(node, this.bounds.jobs)
    clock.at = at
    const reply = send(store, move.call)
    const token = move.tokenFrom?.(reply)
    const tokens = token === undefined ? node.tokens : [...node.tokens, token]
    const problem = move.expect(reply) ?? compareRows(store, state) ?? compareTokens(store, state, tokens)
    if (problem !== null) throw new Error(`${pathTo(child).join(' → ')}: ${problem}`)
    if (token !== undefined && node.tokens.includes(token)) throw new Error(`${token} granted twice`)
    this.add({ ...child, tokens })
  }
}

const send = (store: MemoryStore, { type, ...request }: BackendMessage): unknown =>
  (store.handlers[type] as (request: object) => unknown)(request)

function rebuild(node: Node, jobs: number): { store: MemoryStore; clock: { at: number } } {
  const clock = { at: 0 }
  const store = new MemoryStore({ now: () => clock.at, monotonic: () => clock.at })
  store.handlers['job.enqueue']({ jobs: Array.from({ length: jobs }, (_, job) => definition(job)) })
  const path: Node[] = []
  for (let at: Node | null = node; at !== null; at = at.parent) path.push(at)
  for (const { at, call } of path.reverse()) {
    if (call === null) continue
    clock.at = at
    send(store, call)
  }
  return { store, clock }
}

function pathTo(node: Pick<Node, 'parent' | 'step'>): string[] {
  return node.parent === null ? [] : [...pathTo(node.parent), node.step]
}

function compareRows(store: MemoryStore, state: spec.Spec): string | null {
  const { jobs } = store.handlers['job.get']({ ids: [...state.jobs.keys()].map(idOf) })
  for (const [index, want] of state.jobs.entries()) {
    const got = jobs[index]
    if (got === null || got === undefined) return `job ${index} is gone`
    if (!spec.shown(want, state.now).includes(got.state)) return `job ${index}: ${got.state}, not ${want.state}`
    if (got.attempts !== want.attempts) return `job ${index}: ${got.attempts} attempts, not ${want.attempts}`
    const expiry = want.state === 'running' ? want.expiresAt : null
    if (got.leaseExpiresAt !== expiry) return `job ${index}: lease until ${got.leaseExpiresAt}, not ${expiry}`
  }
  return null
}

/** Which tokens the store would listen to, asked of each: what rows do not show. The store is not used again afterwards. */
function compareTokens(store: MemoryStore, state: spec.Spec, tokens: readonly string[]): string | null {
  const leases = state.grants.map(({ job }, index) => ({ id: idOf(job), token: tokens[index] ?? '' }))
  const { outcomes } = store.handlers['lease.renew']({ leases, leaseMs: spec.LEASE_MS })
  for (const [index, { job, decided }] of state.grants.entries()) {
    const row = state.jobs[job]
    const isHeld = row?.holder === index + 1
    const want = !isHeld ? 'leaseLost' : row.cancelRequested ? 'cancelRequested' : 'renewed'
    if (outcomes[index] !== want) return `grant ${index + 1}: a renewal would be ${outcomes[index]}, not ${want}`
    if (isHeld || decided === null) continue
    const message = { kind: decided, job, grant: index + 1 }
    const settlements = [settlement(message, tokens[index] ?? '')]
    const { verdicts } = store.handlers['job.turn']({ settlements, claims: [], resend: true })
    const verdict = row?.recognised === index + 1 ? 'alreadyApplied' : 'leaseLost'
    if (verdicts[0] !== verdict) return `grant ${index + 1}: ${decided} again would be ${verdicts[0]}, not ${verdict}`
  }
  return null
}

function claimMove(next: spec.Spec, worker: number): Move {
  const job = spec.claim(next, worker)
  const claim = {
    workerId: `w${worker}`,
    nonce: `n${next.grants.length}${job === null ? 'x' : ''}`,
    lanes: [LANE],
    limit: 1,
    leaseMs: spec.LEASE_MS,
    keepDeadMs: null,
  }
  const given = (reply: unknown) => (reply as Reply<'job.turn'>).grants[0]?.jobs ?? []
  return {
    step: `claim by ${worker}`,
    call: { type: 'job.turn', settlements: [], claims: [claim], resend: false },
    expect: (reply) =>
      differ(
        job === null ? [] : [idOf(job)],
        given(reply).map(({ id }) => id),
      ),
    ...(job === null ? {} : { tokenFrom: (reply: unknown) => given(reply)[0]?.token ?? '' }),
  }
}

function sendMove(next: spec.Spec, message: spec.Message): Move {
  const grant = next.grants[message.grant - 1]
  if (grant !== undefined && message.kind !== 'renew' && message.kind !== 'requeue') grant.decided = message.kind
  next.inFlight = [...next.inFlight, message]
  return { step: `send ${message.kind} of grant ${message.grant}`, call: null, expect: () => null }
}

interface Delivery {
  readonly index: number
  readonly keep: boolean
  readonly tokens: readonly string[]
}

function callOf(message: spec.Message, token: string): BackendMessage {
  const item = message.kind === 'renew' ? null : settlement(message, token)
  if (item === null) {
    return { type: 'lease.renew', leases: [{ id: idOf(message.job), token }], leaseMs: spec.LEASE_MS }
  }
  return message.kind === 'requeue' && item.kind !== 'complete'
    ? { type: 'lease.reap', decisions: [item], limit: 0 }
    : { type: 'job.turn', settlements: [item], claims: [], resend: false }
}

function deliverMove(next: spec.Spec, { index, keep, tokens }: Delivery): Move {
  const message = next.inFlight[index]
  if (message === undefined) throw new Error('no such message')
  if (!keep) next.inFlight = next.inFlight.filter((_, other) => other !== index)
  const want = spec.deliver(next, message)
  const answer = (reply: unknown): unknown =>
    message.kind === 'renew' ? (reply as Reply<'lease.renew'>).outcomes[0] : (reply as Reply<'job.turn'>).verdicts[0]
  return {
    step: `deliver ${message.kind} of grant ${message.grant}${keep ? ', once more to come' : ''}`,
    call: callOf(message, tokens[message.grant - 1] ?? ''),
    expect: (reply) => differ(want, answer(reply)),
  }
}

function observeMove(next: spec.Spec, tokens: readonly string[]): Move {
  const found = spec.expired(next)
  const [first] = found
  if (first !== undefined) {
    next.inFlight = [...next.inFlight, { kind: 'requeue', job: next.grants[first - 1]?.job ?? 0, grant: first }]
  }
  const want = found.map((grant) => tokens[grant - 1]).sort()
  return {
    step: 'a reaper looks',
    call: { type: 'lease.reap', decisions: [], limit: 10 },
    expect: (reply) => differ(want, (reply as Reply<'lease.reap'>).expired.map(({ token }) => token).sort()),
  }
}

function cancelMove(next: spec.Spec, job: number, force: boolean): Move {
  const want = spec.cancel(next, job, force)
  return {
    step: `cancel ${job}${force ? ' by force' : ''}`,
    call: { type: 'job.cancel', ids: [idOf(job)], force, keepMs: null },
    expect: (reply) => differ([want], (reply as Reply<'job.cancel'>).outcomes),
  }
}

/** Six seconds on an idle machine; a busy one must not fail for that. */
const SLOW = 240_000

function explore(bounds: Bounds): Exploration {
  const exploration = new Exploration(bounds)
  const started = performance.now()
  exploration.run()
  const { states, edges } = exploration
  console.info(`${states} states, ${edges} messages and steps in ${Math.round(performance.now() - started)} ms`)
  return exploration
}

test(
  'no stale write is accepted: one job, two grants, two messages on their way, all orders',
  () => {
    const { states, isCut } = explore({ jobs: 1, grants: 2, messages: 2, ticks: 4, states: 60_000 })
    expect(isCut).toBe(false)
    expect(states).toBeGreaterThan(40_000)
  },
  SLOW,
)

test(
  'no stale write is accepted: one job, three grants, one message on its way',
  () => {
    expect(explore({ jobs: 1, grants: 3, messages: 1, ticks: 4, states: 15_000 }).states).toBeGreaterThanOrEqual(15_000)
  },
  SLOW,
)

test(
  'no stale write is accepted: two jobs, three grants, two messages on their way',
  () => {
    expect(explore({ jobs: 2, grants: 3, messages: 2, ticks: 3, states: 15_000 }).states).toBeGreaterThanOrEqual(15_000)
  },
  SLOW,
)
