/**
 * One call to a store as the engine makes it: with its own deadline, repeated with full jitter while the store is away, and
 * only in ways that are safe. A call whose outcome is not known is sent again with the same ids and tokens, never as a new one.
 */
import type { Backend, FailedCallOutcome } from '../backends/backend.ts'
import type { MessageType, Reply, Request } from '../backends/protocol/index.ts'
import type { Clock, Timers } from '../clock.ts'
import { Deadlines } from '../deadlines.ts'
import { HoldfastError, isHoldfastError } from '../errors.ts'
import type { Random } from '../random.ts'
import { type Member, Roster } from '../roster.ts'

const BACKOFF_BASE_MS = 20
const BACKOFF_CAP_MS = 1_000

export interface StoreCallOptions {
  readonly backend: Backend
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /** How long one try may take. */
  readonly callDeadlineMs: number
}

/** A call, or the pause before its next try. */
interface UnderWay extends Member {
  readonly end: () => void
}

/** What is sent in place of a request whose outcome may be unknown, or that is not wanted any more as it was. */
export type Revise<Q> = (request: Q, mayBeDone: boolean) => Q

/** What the caller's side knows of the store, for `health()`. */
export interface StoreContact {
  readonly lastOkAt: number | null
  readonly failuresInARow: number
  readonly lastError: HoldfastError | null
}

export class StoreCaller {
  private readonly options: StoreCallOptions
  private readonly contacts = new Map<MessageType, StoreContact>()
  private readonly pending = new Roster<UnderWay>()
  private readonly deadlines: Deadlines
  private isClosed = false

  constructor(options: StoreCallOptions) {
    this.options = options
    this.deadlines = new Deadlines(options.clock, options.timers)
  }

  contact(type: MessageType): StoreContact {
    return this.contacts.get(type) ?? { lastOkAt: null, failuresInARow: 0, lastError: null }
  }

  /** From now on every call, also one that waits to be repeated, fails with CLOSED. */
  close(): void {
    this.isClosed = true
  }

  /** Ends what is still under way, outcome unknown: nobody is left who could answer. */
  abandon(): void {
    this.close()
    this.deadlines.clear()
    for (const call of this.pending.list()) call.end()
  }

  /**
   * Repeats until `budgetMs` is used up. `revise` is asked before each try what to send; `mayBeDone`: the outcome of one before is not
   * known.
   */
  async call<T extends MessageType>(
    type: T,
    request: Request<T>,
    budgetMs: number,
    revise: Revise<Request<T>> = (same) => same,
  ): Promise<Reply<T>> {
    const { clock, random } = this.options
    const startedAt = clock.monotonic()
    let mayBeDone = false
    for (let failures = 0; ; failures += 1) {
      if (this.isClosed) throw closed()
      try {
        const leftMs = Math.max(1, startedAt + budgetMs - clock.monotonic())
        const reply = await this.once(type, revise(request, mayBeDone), Math.min(this.options.callDeadlineMs, leftMs))
        this.note(type, request, { lastOkAt: clock.now(), failuresInARow: 0, lastError: null })
        return reply
      } catch (thrown) {
        const error = toStoreError(thrown)
        this.note(type, request, { ...this.contact(type), failuresInARow: failures + 1, lastError: error })
        const waitMs = random.next() * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** Math.min(failures, 10))
        const isOver = clock.monotonic() - startedAt + waitMs >= budgetMs
        mayBeDone ||= callOutcome(error) === 'unknown'
        if (!error.retryable || isOver) throw mayBeDone ? asUnknown(error) : error
        await this.pause(waitMs)
      }
    }
  }

  /** A turn that only settles says nothing of whether jobs can be claimed. */
  private note(type: MessageType, request: object, contact: StoreContact): void {
    if ('claims' in request && Array.isArray(request.claims) && request.claims.length === 0) return
    this.contacts.set(type, contact)
  }

  private once<T extends MessageType>(type: T, request: Request<T>, deadlineMs: number): Promise<Reply<T>> {
    const { backend } = this.options
    return new Promise((resolve, reject) => {
      const work = backend.call(type, request)
      const underWay = { place: -1, end: () => reject(closed()) }
      const deadline = this.deadlines.add(deadlineMs, () => {
        this.pending.delete(underWay)
        reject(unanswered(backend.name, type, deadlineMs))
      })
      this.pending.add(underWay)
      const over = (): void => {
        this.deadlines.delete(deadline)
        this.pending.delete(underWay)
      }
      work.then(
        (reply) => {
          over()
          resolve(reply)
        },
        (error: unknown) => {
          over()
          reject(error)
        },
      )
    })
  }

  private pause(waitMs: number): Promise<void> {
    const { timers } = this.options
    return new Promise((resolve) => {
      const underWay = {
        place: -1,
        end: (): void => {
          timers.clear(timer)
          this.pending.delete(underWay)
          resolve()
        },
      }
      const timer = timers.set(underWay.end, waitMs)
      this.pending.add(underWay)
    })
  }
}

export function unanswered(name: string, type: MessageType, deadlineMs: number): HoldfastError {
  return new HoldfastError('STORE_TIMEOUT', `${name}: ${type} was not answered within ${Math.round(deadlineMs)} ms`, {
    details: { outcome: 'unknown' satisfies FailedCallOutcome, message: type },
  })
}

/** It waited behind calls that were not answered. */
export function unsent(name: string, type: MessageType, deadlineMs: number): HoldfastError {
  const message = `${name}: ${type} was not sent within ${deadlineMs} ms, since calls before it were not answered`
  return new HoldfastError('STORE_TIMEOUT', message, {
    details: { outcome: 'notDone' satisfies FailedCallOutcome, message: type },
  })
}

const closed = (): HoldfastError => new HoldfastError('CLOSED', 'the client was closed')

/** What an error of a call says about its effect; unknown unless the store said more. */
function callOutcome(error: HoldfastError): FailedCallOutcome {
  const { outcome } = error.details
  return outcome === 'notDone' || outcome === 'refused' ? outcome : 'unknown'
}

/** The last try was not done, but one before it may have been: the call as a whole is unknown. */
function asUnknown(error: HoldfastError): HoldfastError {
  if (callOutcome(error) === 'unknown') return error
  return new HoldfastError(error.code, `${error.message}; an earlier try may have been done`, {
    details: { ...error.details, outcome: 'unknown' satisfies FailedCallOutcome },
    cause: error,
  })
}

function toStoreError(thrown: unknown): HoldfastError {
  if (isHoldfastError(thrown)) return thrown
  return new HoldfastError('INTERNAL', 'the store failed in a way it should have explained', { cause: thrown })
}
