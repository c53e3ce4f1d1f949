/**
 * One logical client of a scenario: what it holds, what it does not know the outcome of, and what it might ask for next. It decides
 * by the seed alone and sends nothing itself.
 */
import type { ExpiredLease, ReapDecision, Reply, Request, Settlement } from '#dist/src/backends/protocol/index.js'
import { decideExpiry, expiryFailure } from '#dist/src/backends/rules.js'
import type { JobDefinition } from '#dist/src/job.js'
import type { SeededRandom } from '../simulation/random.ts'

export const LEASE_MS = 100
export const LANES = ['a', 'b'] as const
export const MAX_ATTEMPTS = 4
const RETRY = { kind: 'fixed', attempts: MAX_ATTEMPTS, baseMs: 20, capMs: 20, jitter: 0 } as const
const FAILURE = { code: 'HANDLER_ERROR', message: 'failed', name: 'Error' }

interface Held {
  readonly id: string
  readonly token: string
  readonly attempt: number
  crashes: number
  isCancelled: boolean
}

/** What all clients know of each other's jobs. */
export interface Board {
  readonly ids: string[]
  /** Known to be stored: only these may be forgotten when they end, since an enqueue sent again would make them anew. */
  readonly heard: ReadonlySet<string>
  readonly now: () => number
}

export class ScenarioClient {
  readonly name: string
  readonly held = new Map<string, Held>()
  expired: readonly ExpiredLease[] = []
  private readonly random: SeededRandom
  private readonly board: Board
  private claims = 0
  private jobs = 0
  private lines = 0

  constructor(name: string, random: SeededRandom, board: Board) {
    this.name = name
    this.random = random
    this.board = board
  }

  enqueue(): Request<'job.enqueue'> {
    const { random } = this
    // One lane a call: of a call to several, how much is done when it is cut would be up to the network.
    const lane = random.pick(LANES)
    return { jobs: Array.from({ length: random.integer(1, 3) }, () => this.job(lane)), resend: false }
  }

  private job(lane: string): JobDefinition {
    const { random, board } = this
    this.jobs += 1
    const id = `${lane}/${this.name}-${this.jobs}`
    board.ids.push(id)
    return {
      id,
      type: 'task',
      lane,
      payload: '1',
      priority: random.pick([0, 0, 0, 1]),
      runAt: null,
      delayMs: random.pick([0, 0, 0, 30, 200]),
      deadlineAt: random.chance(0.1) ? board.now() + random.integer(1, 300) : null,
      timeoutMs: null,
      maxAttempts: MAX_ATTEMPTS,
      maxAttemptsFixed: false,
      retry: RETRY,
      maxCrashes: 3,
      idempotencyKey: random.chance(0.2) ? `k${random.integer(0, 2)}` : null,
      concurrencyKey: null,
      metadata: null,
      traceId: `r-${id}`,
      keepResultMs: null,
      replayOf: null,
    }
  }

  /** Settles some of what is held, in one lane where the network may cut, and claims. */
  turn(isWhole = false): Request<'job.turn'> {
    const { random } = this
    const lane = random.pick(LANES)
    const mine = [...this.held.values()].filter(
      ({ id }) => isWhole || (id.startsWith(`${lane}/`) && random.chance(0.7)),
    )
    const settlements = mine.map((held) => this.settlement(held, isWhole))
    const lanes = isWhole ? LANES : random.pick([[lane], [lane], LANES])
    this.claims += 1
    const claim = {
      workerId: this.name,
      nonce: `n${this.claims}`,
      lanes,
      limit: isWhole ? 50 : random.integer(1, 3),
      leaseMs: LEASE_MS,
      keepDeadMs: null,
    }
    return { settlements, claims: isWhole || random.chance(0.8) ? [claim] : [], resend: false }
  }

  private settlement(held: Held, isWhole: boolean): Settlement {
    const { random, board } = this
    const { id, token, attempt, crashes } = held
    this.held.delete(id)
    const keepMs = board.heard.has(id) && random.chance(0.2) ? 0 : null
    const base = { id, token, durationMs: 1, keepMs }
    const point = random.next()
    if (held.isCancelled && point < 0.5)
      return { ...base, kind: 'cancel', failure: { code: 'CANCELLED', message: 'cancelled' } }
    if (isWhole || point < 0.5) return { ...base, kind: 'complete', output: '"out"', keepOutputMs: null }
    if (point < 0.75 && attempt < MAX_ATTEMPTS) {
      const terms = { retry: RETRY, maxAttempts: MAX_ATTEMPTS, crashes: 0 }
      return { ...base, kind: 'retry', delayMs: random.pick([0, 20, 150]), failure: FAILURE, ...terms }
    }
    if (point < 0.9) return { ...base, kind: 'release', started: random.chance(0.5) }
    return { ...base, kind: 'dead', code: 'HANDLER_ERROR', failure: FAILURE, crashes }
  }

  renew(): Request<'lease.renew'> {
    const leases = [...this.held.values()].map(({ id, token }) => ({ id, token }))
    return { leases: leases.slice(0, 1), leaseMs: LEASE_MS }
  }

  /** The first held job reports, and logs a line more each time. */
  note(): Request<'job.note'> {
    const [lease] = this.held.values()
    if (lease === undefined) return { notes: [] }
    this.lines += 1
    const lines = [{ number: this.lines, text: '{}' }]
    return { notes: [{ id: lease.id, token: lease.token, progress: '0.5', lines, keepLines: 3 }] }
  }

  /** First what was found to be expired, then a look for more. */
  reap(isWhole = false): Request<'lease.reap'> {
    const decisions = this.expired.map((lease): ReapDecision => {
      const decision = decideExpiry(lease, lease.cancelRequested)
      const base = { id: lease.id, token: lease.token, durationMs: 0, keepMs: null }
      const failure = expiryFailure(lease.workerId)
      if (decision.next === 'cancel') return { ...base, kind: 'cancel', failure }
      if (decision.next === 'requeue') return { ...base, kind: 'requeue', failure, crashes: decision.crashes }
      return { ...base, kind: 'dead', code: decision.code, failure, crashes: decision.crashes }
    })
    this.expired = []
    return { decisions: isWhole ? decisions : decisions.slice(0, 1), limit: 100 }
  }

  cancel(): Request<'job.cancel'> {
    return { ids: [this.anyId()], force: this.random.chance(0.3), keepMs: null }
  }

  promote(): Request<'job.promote'> {
    return { ids: [this.anyId()] }
  }

  private anyId(): string {
    const { ids } = this.board
    // Most of the old ones have ended.
    return ids.length === 0 ? 'a/none' : this.random.pick(ids.slice(-8))
  }

  /** Takes in what a turn was given; returns only what is new. */
  take({ grants }: Reply<'job.turn'>): readonly Held[] {
    const fresh: Held[] = []
    for (const { id, token, attempt, crashes } of grants.flatMap(({ jobs }) => jobs)) {
      if (this.held.get(id)?.token === token) continue
      const held = { id, token, attempt, crashes, isCancelled: false }
      this.held.set(id, held)
      fresh.push(held)
    }
    return fresh
  }
}
