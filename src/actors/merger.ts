/**
 * Merges what waits while calls are in flight into the next call: a quiet system answers at once, a busy one works in batches,
 * and there is no timer to tune. Requests keep their order. The caller says how to join requests and how to split replies.
 * With `defer`, what follows answers is gathered until all that is ready has run, and calls in flight share what there is evenly: of a
 * hundred callers that each wait for their own answer, one half prepares while the other is under way.
 */
import type { Timers } from '../clock.ts'
import type { Deadline, Deadlines } from '../deadlines.ts'
import { HoldfastError } from '../errors.ts'

interface Waiting<Q, R> {
  readonly request: Q
  readonly size: number
  readonly resolve: (reply: R) => void
  readonly reject: (error: unknown) => void
  round: Round<Q, R> | null
}

/** What was handed over in one turn of the loop. It shares a deadline: one for each request cost a tenth of an enqueue (2026-12-01). */
interface Round<Q, R> {
  readonly members: Waiting<Q, R>[]
  readonly deadline: Deadline
  unanswered: number
}

/** How long a request may take, counted from when it was handed over and not from when it was sent. */
export interface Patience {
  readonly deadlines: Deadlines
  readonly ms: number
  /** What a request that has waited too long is answered with. */
  readonly late: (isSent: boolean) => Error
}

export interface MergerOptions<Q, R> {
  readonly inFlightMax: number
  /** How much one call may carry, in the unit of `size`; a single larger request still goes alone. */
  readonly sizeMax: number
  /** How much may wait. */
  readonly waitingMax: number
  readonly size: (request: Q) => number
  readonly join: (requests: readonly Q[]) => Q
  /** One reply for each request, in order. */
  readonly split: (reply: R, requests: readonly Q[]) => readonly R[]
  readonly call: (request: Q) => Promise<R>
  readonly defer?: Timers['defer']
  /** Default: however long a call takes. One that goes at once has the deadline of its call. */
  readonly patience?: Patience
}

export class Merger<Q, R> {
  private waiting: Waiting<Q, R>[] = []
  private waitingSize = 0
  private inFlight = 0
  private inFlightSize = 0
  private isGathering = false
  private round: Round<Q, R> | null = null
  private readonly options: MergerOptions<Q, R>

  constructor(options: MergerOptions<Q, R>) {
    this.options = options
  }

  send(request: Q): Promise<R> {
    const { size, waitingMax, defer } = this.options
    const own = size(request)
    if (this.waitingSize + own > waitingMax && this.waiting.length > 0) {
      return Promise.reject(
        new HoldfastError('OVERLOADED', `more than ${waitingMax} jobs wait for the store`, {
          details: { limit: waitingMax, outcome: 'notDone' },
        }),
      )
    }
    if (this.mayGoAtOnce) return this.callAlone(request, own)
    const answer = new Promise<R>((resolve, reject) => {
      const waiting: Waiting<Q, R> = { request, size: own, resolve, reject, round: null }
      this.limitPatience(waiting)
      this.waiting.push(waiting)
      this.waitingSize += own
    })
    if (defer !== undefined) this.gather(defer)
    return answer
  }

  private limitPatience(waiting: Waiting<Q, R>): void {
    const { patience } = this.options
    if (patience === undefined) return
    const round = this.round ?? this.openRound(patience)
    round.members.push(waiting)
    round.unanswered += 1
    waiting.round = round
  }

  private openRound({ deadlines, ms, late }: Patience): Round<Q, R> {
    const { defer } = this.options
    const members: Waiting<Q, R>[] = []
    const round = { members, deadline: deadlines.add(ms, () => this.expire(members, late)), unanswered: 0 }
    if (defer === undefined) return round
    this.round = round
    defer(() => this.closeRound(round))
    return round
  }

  private closeRound(round: Round<Q, R>): void {
    if (this.round === round) this.round = null
  }

  /** Those that were answered hear nothing of it. */
  private expire(members: readonly Waiting<Q, R>[], late: Patience['late']): void {
    const sent = new Set(members)
    const unsent = new Set(this.waiting.filter((waiting) => sent.delete(waiting)))
    this.waiting = this.waiting.filter((waiting) => !unsent.has(waiting))
    for (const waiting of unsent) {
      this.waitingSize -= waiting.size
      waiting.reject(late(false))
    }
    for (const waiting of sent) waiting.reject(late(true))
  }

  private answered({ round }: Waiting<Q, R>): void {
    if (round === null) return
    round.unanswered -= 1
    if (round.unanswered > 0) return
    this.options.patience?.deadlines.delete(round.deadline)
    // What comes in the same turn still begins a round of its own.
    this.closeRound(round)
  }

  /** Where others are under way, more will come with it. */
  private get mayGoAtOnce(): boolean {
    const { inFlightMax, defer } = this.options
    const isFree = this.inFlight < (defer === undefined ? inFlightMax : 1)
    return isFree && this.waiting.length === 0 && !this.isGathering
  }

  private gather(defer: Timers['defer']): void {
    if (this.isGathering || this.inFlight >= this.options.inFlightMax) return
    this.isGathering = true
    defer(() => {
      this.isGathering = false
      this.fill()
    })
  }

  private callAlone(request: Q, size: number): Promise<R> {
    this.inFlight += 1
    this.inFlightSize += size
    return this.options.call(request).then(
      (reply) => {
        this.landed(size)
        return reply
      },
      (error: unknown) => {
        this.landed(size)
        throw error
      },
    )
  }

  /** Those who are answered now, when there are several, may come again at once. */
  private landed(size: number, answered = 1): void {
    const { defer } = this.options
    this.inFlight -= 1
    this.inFlightSize -= size
    if (defer !== undefined && answered > 1) this.gather(defer)
    if (!this.isGathering) this.fill()
  }

  private fill(): void {
    while (this.inFlight < this.options.inFlightMax && this.waiting.length > 0) this.flush()
  }

  private takeBatch(): readonly Waiting<Q, R>[] {
    const { inFlightMax, sizeMax } = this.options
    const share = Math.ceil((this.waitingSize + this.inFlightSize) / inFlightMax)
    let count = 0
    let total = 0
    for (const { size } of this.waiting) {
      if (count > 0 && total + size > Math.min(sizeMax, share)) break
      count += 1
      total += size
    }
    this.waitingSize -= total
    return this.waiting.splice(0, count)
  }

  private flush(): void {
    const { call, join, split } = this.options
    const batch = this.takeBatch()
    const requests = batch.map(({ request }) => request)
    const [first] = requests
    if (first === undefined) return
    const size = batch.reduce((sum, each) => sum + each.size, 0)
    this.inFlight += 1
    this.inFlightSize += size
    call(requests.length === 1 ? first : join(requests)).then(
      (reply) => {
        this.landed(size, batch.length)
        const replies = requests.length === 1 ? [reply] : split(reply, requests)
        batch.forEach((waiting, index) => {
          const own = replies[index]
          this.answered(waiting)
          if (own !== undefined) waiting.resolve(own)
          else waiting.reject(new HoldfastError('INTERNAL', 'the store left a merged request unanswered'))
        })
      },
      (error: unknown) => {
        this.landed(size, batch.length)
        for (const waiting of batch) {
          this.answered(waiting)
          waiting.reject(error)
        }
      },
    )
  }
}
