/**
 * Everybody in this client who waits for results, and the reads that they share: whatever their number, one read of states is on its
 * way at a time, and at most one begins in `GAP_MS`. A job that ends in this process, or a hint of the store that one has ended,
 * makes it due at once; behind both stands a poll with growing pauses.
 */
import type { BackendActor } from './actors/backend-actor.ts'
import type { StoredJob } from './backends/protocol/index.ts'
import type { Clock, TimerHandle, Timers } from './clock.ts'
import { HoldfastError } from './errors.ts'
import { isTerminal, type JobId, type JobState } from './job.ts'
import { ResultHints } from './result-hints.ts'
import { outcomeOf, resultLost, resultTimedOut } from './result-outcome.ts'

const PAUSE_FIRST_MS = 20
const PAUSE_MAX_MS = 1_000
const PAUSE_GROWTH = 1.5
/** Those whose pause is nearly over are read with those whose pause is over. */
const EARLY = 0.3
const GAP_MS = 20
const STATES_MAX = 1_000
/** Jobs in one read with their outputs, which may be large. */
const JOBS_MAX = 50
/** After the time of a waiter is up: how long the last look may take. */
const LAST_LOOK_MS = 1_000

export interface Wait {
  readonly id: JobId
  readonly timeoutMs: number
  /** The job may be in a transaction that has not ended. */
  readonly mayAppear: boolean
  /** It was there, so that one which is not there now has ended. */
  readonly wasSeen: boolean
}

interface Waiter {
  readonly wait: Wait
  readonly untilMs: number
  wasSeen: boolean
  state: JobState | null
  pauseMs: number
  dueAt: number
  isLate: boolean
  readonly resolve: (output: unknown) => void
  readonly reject: (error: HoldfastError) => void
}

export interface ResultWaitersOptions {
  readonly backend: BackendActor
  readonly clock: Clock
  readonly timers: Timers
}

export class ResultWaiters {
  private readonly options: ResultWaitersOptions
  private readonly waiters = new Map<JobId, Set<Waiter>>()
  private readonly ended = new Set<JobId>()
  private readonly hints: ResultHints
  private timer: TimerHandle = null
  private timerAt = Number.POSITIVE_INFINITY
  private lookedAt = Number.NEGATIVE_INFINITY
  private isLooking = false
  private isFetching = false
  private isClosed = false

  constructor(options: ResultWaitersOptions) {
    this.options = options
    const { clock } = options
    this.hints = new ResultHints({
      backend: options.backend.backend,
      clock,
      onHint: (lane, at) => this.hinted(`${lane}/`, at),
    })
  }

  /** Gives the output of the job. Rejects as `JobHandle.result` says. */
  wait(wait: Wait): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.isClosed) {
        reject(closed())
        return
      }
      const now = this.options.clock.monotonic()
      const { wasSeen, timeoutMs } = wait
      const times = { untilMs: now + timeoutMs, pauseMs: PAUSE_FIRST_MS / PAUSE_GROWTH, dueAt: now }
      this.add({ wait, wasSeen, state: null, isLate: false, ...times, resolve, reject })
      this.armFor(now)
    })
  }

  /** The job has ended. */
  notify(id: JobId): void {
    const waiters = this.waiters.get(id)
    if (waiters === undefined) return
    // Whatever ends was there, even if it is not kept.
    for (const waiter of waiters) waiter.wasSeen = true
    this.fetch(id)
  }

  close(): void {
    this.isClosed = true
    this.options.timers.clear(this.timer)
    for (const waiters of this.waiters.values()) for (const waiter of waiters) waiter.reject(closed())
    this.waiters.clear()
    this.ended.clear()
    this.hints.close()
  }

  private add(waiter: Waiter): void {
    const { id } = waiter.wait
    const waiters = this.waiters.get(id)
    if (waiters === undefined) this.waiters.set(id, new Set([waiter]))
    else waiters.add(waiter)
    this.hints.add(id)
  }

  private remove(waiter: Waiter): void {
    const { id } = waiter.wait
    const waiters = this.waiters.get(id)
    waiters?.delete(waiter)
    if (waiters?.size === 0) this.waiters.delete(id)
    this.hints.remove(id)
  }

  private hinted(prefix: string, at: number): void {
    for (const waiter of this.all()) {
      const isFetched = waiter.dueAt === Number.POSITIVE_INFINITY
      if (!isFetched && waiter.wait.id.startsWith(prefix)) waiter.dueAt = Math.min(waiter.dueAt, at)
    }
    this.armFor(at)
  }

  private *all(): Generator<Waiter> {
    for (const waiters of this.waiters.values()) yield* waiters
  }

  /** For the next look, or the next whose time is up. */
  private arm(): void {
    const { timers } = this.options
    let at = Number.POSITIVE_INFINITY
    for (const { dueAt, untilMs, isLate } of this.all()) {
      const isUnderWay = this.isLooking || dueAt === Number.POSITIVE_INFINITY
      at = Math.min(at, isUnderWay ? Number.POSITIVE_INFINITY : dueAt, isLate ? untilMs + LAST_LOOK_MS : untilMs)
    }
    timers.clear(this.timer)
    this.timerAt = Number.POSITIVE_INFINITY
    if (at < Number.POSITIVE_INFINITY) this.armFor(at)
  }

  /** What is armed for an earlier time stays. */
  private armFor(time: number): void {
    const { clock, timers } = this.options
    const at = Math.max(time, this.lookedAt + GAP_MS)
    if (at >= this.timerAt) return
    timers.clear(this.timer)
    this.timerAt = at
    this.timer = timers.set(
      () => {
        this.timerAt = Number.POSITIVE_INFINITY
        this.tick()
      },
      Math.max(0, at - clock.monotonic()),
    )
  }

  private tick(): void {
    const now = this.options.clock.monotonic()
    for (const waiter of this.all()) {
      if (waiter.isLate && waiter.untilMs + LAST_LOOK_MS <= now) this.giveUp(waiter)
      else if (!waiter.isLate && waiter.untilMs <= now) {
        waiter.isLate = true
        waiter.dueAt = now
      }
    }
    if (!this.isLooking) this.look(now)
    this.arm()
  }

  private look(now: number): void {
    const ids: JobId[] = []
    for (const [id, waiters] of this.waiters) {
      if (ids.length >= STATES_MAX) break
      if ([...waiters].some(({ dueAt, pauseMs }) => dueAt - pauseMs * EARLY <= now)) ids.push(id)
    }
    if (ids.length === 0) return
    this.isLooking = true
    this.lookedAt = now
    const over = (): void => {
      this.isLooking = false
      this.arm()
    }
    this.options.backend.ask('job.states', { ids }).then(
      ({ states }) => {
        for (const [index, id] of ids.entries()) this.looked(id, states[index] ?? null)
        over()
      },
      (error: HoldfastError) => {
        this.failed(ids, error)
        over()
      },
    )
  }

  private looked(id: JobId, state: JobState | null): void {
    if (state !== null && isTerminal(state)) {
      this.hints.ended(id)
      this.fetch(id)
      return
    }
    for (const waiter of this.waiters.get(id) ?? []) this.goOn(waiter, state)
  }

  /** The job has not ended, or is not there. */
  private goOn(waiter: Waiter, state: JobState | null): void {
    const { id, mayAppear } = waiter.wait
    if (state === null && waiter.wasSeen) this.end(waiter, resultLost(id))
    else if (state === null && !mayAppear) this.end(waiter, notFound(id))
    else {
      waiter.wasSeen ||= state !== null
      waiter.state = state
      if (waiter.isLate) this.giveUp(waiter)
      else this.rest(waiter)
    }
  }

  private rest(waiter: Waiter): void {
    waiter.pauseMs = Math.min(PAUSE_MAX_MS, waiter.pauseMs * PAUSE_GROWTH)
    waiter.dueAt = this.options.clock.monotonic() + waiter.pauseMs
  }

  private giveUp(waiter: Waiter): void {
    this.end(waiter, resultTimedOut(waiter.wait, waiter.state))
  }

  private end(waiter: Waiter, error: HoldfastError): void {
    this.remove(waiter)
    waiter.reject(error)
  }

  /** An outage is waited through, as long as there is time. */
  private failed(ids: readonly JobId[], error: HoldfastError): void {
    for (const waiter of ids.flatMap((id) => [...(this.waiters.get(id) ?? [])])) {
      if (!error.retryable) this.end(waiter, error)
      else if (waiter.isLate) this.giveUp(waiter)
      else this.rest(waiter)
    }
  }

  /** Reads jobs that have ended; all that end now together. */
  private fetch(id: JobId): void {
    for (const waiter of this.waiters.get(id) ?? []) waiter.dueAt = Number.POSITIVE_INFINITY
    this.ended.add(id)
    if (this.isFetching) return
    this.isFetching = true
    this.options.timers.defer(() => this.fetchNext())
  }

  private fetchNext(): void {
    const ids = [...this.ended].slice(0, JOBS_MAX)
    for (const id of ids) this.ended.delete(id)
    this.isFetching = ids.length > 0
    if (ids.length === 0) {
      if (!this.isClosed) this.arm()
      return
    }
    this.options.backend.ask('job.get', { ids }).then(
      ({ jobs }) => {
        for (const [index, id] of ids.entries()) this.fetched(id, jobs[index] ?? null)
        this.fetchNext()
      },
      (error: HoldfastError) => {
        this.failed(ids, error)
        this.fetchNext()
      },
    )
  }

  private fetched(id: JobId, job: StoredJob | null): void {
    for (const waiter of this.waiters.get(id) ?? []) {
      if (job === null || !isTerminal(job.state)) {
        this.goOn(waiter, job?.state ?? null)
        continue
      }
      this.remove(waiter)
      try {
        waiter.resolve(outcomeOf(job))
      } catch (error) {
        waiter.reject(error as HoldfastError)
      }
    }
  }
}

const closed = (): HoldfastError => new HoldfastError('CLOSED', 'the client was closed')

const notFound = (id: JobId): HoldfastError =>
  new HoldfastError('JOB_NOT_FOUND', `no job has the id ${id}`, { details: { jobId: id } })
