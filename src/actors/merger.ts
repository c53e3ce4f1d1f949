/**
 * Merges what waits while calls are in flight into the next call: a quiet system answers at once, a busy one works in batches,
 * and there is no timer to tune. Requests keep their order. The caller says how to join requests and how to split replies.
 */
import { HoldfastError } from '../errors.ts'

interface Waiting<Q, R> {
  readonly request: Q
  readonly size: number
  readonly resolve: (reply: R) => void
  readonly reject: (error: unknown) => void
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
}

export class Merger<Q, R> {
  private waiting: Waiting<Q, R>[] = []
  private waitingSize = 0
  private inFlight = 0
  private readonly options: MergerOptions<Q, R>

  constructor(options: MergerOptions<Q, R>) {
    this.options = options
  }

  send(request: Q): Promise<R> {
    const { size, waitingMax, inFlightMax, call } = this.options
    const own = size(request)
    if (this.waitingSize + own > waitingMax && this.waiting.length > 0) {
      return Promise.reject(
        new HoldfastError('OVERLOADED', `more than ${waitingMax} jobs wait for the store`, {
          details: { limit: waitingMax, outcome: 'notDone' },
        }),
      )
    }
    if (this.inFlight < inFlightMax && this.waiting.length === 0) {
      this.inFlight += 1
      return call(request).then(this.landedWell, this.landedBadly)
    }
    return new Promise((resolve, reject) => {
      this.waiting.push({ request, size: own, resolve, reject })
      this.waitingSize += own
    })
  }

  private readonly landedWell = (reply: R): R => {
    this.landed()
    return reply
  }

  private readonly landedBadly = (error: unknown): never => {
    this.landed()
    throw error
  }

  private landed(): void {
    this.inFlight -= 1
    while (this.inFlight < this.options.inFlightMax && this.waiting.length > 0) this.flush(this.takeBatch())
  }

  private takeBatch(): readonly Waiting<Q, R>[] {
    let count = 0
    let total = 0
    for (const { size } of this.waiting) {
      if (count > 0 && total + size > this.options.sizeMax) break
      count += 1
      total += size
    }
    this.waitingSize -= total
    return this.waiting.splice(0, count)
  }

  private flush(batch: readonly Waiting<Q, R>[]): void {
    const requests = batch.map(({ request }) => request)
    const [first] = requests
    if (first === undefined) return
    this.inFlight += 1
    this.options
      .call(requests.length === 1 ? first : this.options.join(requests))
      .then(
        (reply) => {
          const replies = requests.length === 1 ? [reply] : this.options.split(reply, requests)
          batch.forEach(({ resolve, reject }, index) => {
            const own = replies[index]
            if (own === undefined) reject(new HoldfastError('INTERNAL', 'the store left a merged request unanswered'))
            else resolve(own)
          })
        },
        (error: unknown) => {
          for (const { reject } of batch) reject(error)
        },
      )
      .finally(() => this.landed())
  }
}
