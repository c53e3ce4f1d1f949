/**
 * The only caller of a Backend. Merges enqueues and turns, gives every call a deadline, repeats what may be repeated, and
 * knows when the store last answered. Everything else in the engine asks here.
 */
import type { Backend } from '../backends/backend.ts'
import type { Claim, MessageType, Reply, Request } from '../backends/protocol/index.ts'
import type { TransactionalEnqueue } from '../backends/transactional.ts'
import { type Clock, type Timers, withDeadline } from '../clock.ts'
import { DEFAULTS } from '../config.ts'
import { Deadlines } from '../deadlines.ts'
import { HoldfastError } from '../errors.ts'
import type { Random } from '../random.ts'
import { Merger } from './merger.ts'
import { StoreCaller, type StoreContact, unanswered, unsent } from './store-call.ts'

/**
 * Calls of a kind that may be under way at once. Two enqueues overlap so that the next batch forms while one commits; turns that only
 * settle are a kind of their own, so that they never wait for a claim.
 */
const ENQUEUES_IN_FLIGHT = 2
const TURNS_IN_FLIGHT = 1
const WAITING_JOBS_MAX = 100_000

export interface BackendActorOptions {
  readonly backend: Backend
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /** How long one try may take, and how long a call is repeated. */
  readonly callDeadlineMs?: number
}

type Enqueue = Request<'job.enqueue'>
type Enqueued = Reply<'job.enqueue'>
type Turn = Request<'job.turn'>
type Turned = Reply<'job.turn'>

export class BackendActor {
  readonly backend: Backend
  private readonly caller: StoreCaller
  private readonly enqueues: Merger<Enqueue, Enqueued>
  /** Those with idempotency keys: they may have to wait for a caller's transaction that has used one, and nothing else must wait with them. */
  private readonly keyedEnqueues: Merger<Enqueue, Enqueued>
  private readonly claims: Merger<Turn, Turned>
  private readonly settlements: Merger<Turn, Turned>
  /** How long a call may take, repetitions included. */
  readonly deadlineMs: number
  private readonly timers: Timers
  private readonly withdrawn = new WeakSet<Claim>()
  private isClosed = false

  constructor(options: BackendActorOptions) {
    this.backend = options.backend
    this.timers = options.timers
    this.deadlineMs = options.callDeadlineMs ?? DEFAULTS.callDeadlineMs
    this.caller = new StoreCaller({ ...options, callDeadlineMs: this.deadlineMs })
    const deadlines = new Deadlines(options.clock, options.timers)
    this.enqueues = this.enqueueMerger(deadlines)
    this.keyedEnqueues = this.enqueueMerger(deadlines)
    this.claims = this.turnMerger()
    this.settlements = this.turnMerger()
  }

  private enqueueMerger(deadlines: Deadlines): Merger<Enqueue, Enqueued> {
    const { name, limits } = this.backend
    return new Merger({
      inFlightMax: ENQUEUES_IN_FLIGHT,
      sizeMax: limits.enqueueJobs,
      waitingMax: WAITING_JOBS_MAX,
      size: ({ jobs }) => jobs.length,
      join: (requests) => ({ jobs: requests.flatMap(({ jobs }) => jobs), resend: false }),
      split: splitEnqueued,
      call: (request) =>
        this.caller.call('job.enqueue', request, this.deadlineMs, (same, mayBeDone) =>
          mayBeDone ? { ...same, resend: true } : same,
        ),
      defer: (run) => this.timers.defer(run),
      patience: {
        deadlines,
        ms: this.deadlineMs,
        late: (isSent) =>
          isSent ? unanswered(name, 'job.enqueue', this.deadlineMs) : unsent(name, 'job.enqueue', this.deadlineMs),
      },
    })
  }

  private turnMerger(): Merger<Turn, Turned> {
    return new Merger({
      inFlightMax: TURNS_IN_FLIGHT,
      sizeMax: this.backend.limits.turnSettlements,
      waitingMax: WAITING_JOBS_MAX,
      size: ({ settlements }) => settlements.length,
      join: (requests) => ({
        settlements: requests.flatMap(({ settlements }) => settlements),
        claims: requests.flatMap(({ claims }) => claims),
        resend: requests.some(({ resend }) => resend),
      }),
      split: splitTurned,
      call: (request) =>
        this.caller.call('job.turn', request, this.deadlineMs, (same, mayBeDone) => this.revised(same, mayBeDone)),
    })
  }

  /**
   * The claim is no longer wanted: each try from now on asks only for what an earlier one may have granted, or a worker that has
   * stopped would be given jobs when the store is back.
   */
  withdraw(claim: Claim): void {
    this.withdrawn.add(claim)
  }

  private revised(turn: Turn, mayBeDone: boolean): Turn {
    const isWithdrawn = (claim: Claim): boolean => this.withdrawn.has(claim)
    if (!turn.claims.some(isWithdrawn)) return mayBeDone ? { ...turn, resend: true } : turn
    const claims = turn.claims.map((claim) => (isWithdrawn(claim) ? { ...claim, limit: 0 } : claim))
    return { ...turn, claims, resend: true }
  }

  /** Sends one message and waits for its answer, at most `callDeadlineMs`. Rejects with a HoldfastError. */
  ask<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>>
  ask(type: MessageType, request: unknown): Promise<unknown> {
    if (this.isClosed) return Promise.reject(new HoldfastError('CLOSED', 'the client was closed'))
    if (type === 'job.turn') {
      const turn = request as Turn
      return (turn.claims.length === 0 ? this.settlements : this.claims).send(turn)
    }
    if (type === 'job.enqueue') {
      const enqueue = request as Enqueue
      return (isKeyed(enqueue) ? this.keyedEnqueues : this.enqueues).send(enqueue)
    }
    // Whoever asks for health wants to be told of an outage, not to wait until it is over.
    const deadlineMs = type === 'store.health' ? Math.min(DEFAULTS.healthDeadlineMs, this.deadlineMs) : this.deadlineMs
    return this.caller.call(type, request as Request<typeof type>, deadlineMs)
  }

  /** What writes through a caller's transaction. Throws CLOSED, or UNSUPPORTED where the store has none. */
  transactional(): TransactionalEnqueue {
    if (this.isClosed) throw new HoldfastError('CLOSED', 'the client was closed')
    const { transactional } = this.backend
    if (transactional !== null) return transactional
    const details = { capability: 'transactionalEnqueue' }
    throw new HoldfastError('UNSUPPORTED', 'this store does not offer transactionalEnqueue', { details })
  }

  /** When messages of a type were last answered, and what went wrong since. */
  contact(type: MessageType): StoreContact {
    return this.caller.contact(type)
  }

  /** Lets the store finish for `closeDeadlineMs` at most, then rejects with STORE_TIMEOUT. Either way no call stays under way. */
  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    this.caller.close()
    const { closeDeadlineMs } = DEFAULTS
    try {
      await withDeadline(this.backend.close(), closeDeadlineMs, this.timers, () => {
        return new HoldfastError('STORE_TIMEOUT', `${this.backend.name}: was not closed within ${closeDeadlineMs} ms`)
      })
    } finally {
      this.caller.abandon()
    }
  }
}

const isKeyed = ({ jobs }: Enqueue): boolean => jobs.some(({ idempotencyKey }) => idempotencyKey !== null)

function splitEnqueued(reply: Enqueued, requests: readonly Enqueue[]): readonly Enqueued[] {
  let from = 0
  return requests.map(({ jobs }) => {
    from += jobs.length
    return { results: reply.results.slice(from - jobs.length, from) }
  })
}

function splitTurned(reply: Turned, requests: readonly Turn[]): readonly Turned[] {
  let verdict = 0
  let grant = 0
  return requests.map(({ settlements, claims }) => {
    verdict += settlements.length
    grant += claims.length
    return {
      verdicts: reply.verdicts.slice(verdict - settlements.length, verdict),
      grants: reply.grants.slice(grant - claims.length, grant),
    }
  })
}
