/**
 * What a dispatcher still has to tell the store: settlements in order, and the claim whose answer was lost.
 * When a turn is refused for good, its settlements are sent again one by one, so that a single bad one cannot hold up the others.
 */
import type { Claim, Settlement } from '../backends/protocol/index.ts'
import { type AttemptEnvironment, settleRelease } from './attempt.ts'
import type { JobActor } from './job-actor.ts'

export interface Ending {
  readonly actor: JobActor
  readonly settlement: Settlement
}

/** Of a job that never started: it goes back uncharged. */
export const givenBack = (actor: JobActor, env: Pick<AttemptEnvironment, 'retention'>): Ending => ({
  actor,
  settlement: settleRelease(env, actor.job, null),
})

/** A turn on its way. `sentAt` is monotonic, taken before it was sent. */
export interface SentTurn {
  readonly endings: readonly Ending[]
  readonly claim: Claim | null
  readonly sentAt: number
}

export class TurnQueue {
  private endings: Ending[] = []
  /** How many at the front are to be sent alone. */
  private suspects = 0
  private unanswered: Claim | null = null

  get size(): number {
    return this.endings.length
  }

  /** True when the store knows everything: no ending waits, and no claim whose answer was lost. */
  get isEmpty(): boolean {
    return this.endings.length === 0 && this.unanswered === null
  }

  get hasSuspects(): boolean {
    return this.suspects > 0
  }

  add(ending: Ending): void {
    this.endings.push(ending)
  }

  take(limit: number): readonly Ending[] {
    if (this.suspects > 0) {
      this.suspects -= 1
      return this.endings.splice(0, 1)
    }
    if (this.endings.length <= limit) {
      const all = this.endings
      this.endings = []
      return all
    }
    return this.endings.splice(0, limit)
  }

  /** Takes back what was not settled, in front of what came since. */
  putBack(endings: readonly Ending[], isolate: boolean): void {
    this.endings = [...endings, ...this.endings]
    if (isolate) this.suspects += endings.length
  }

  /** Remembers a claim that the store may have answered; it must be sent again as it was. */
  rememberClaim(claim: Claim | null): void {
    this.unanswered = claim
  }

  takeUnansweredClaim(): Claim | null {
    const claim = this.unanswered
    this.unanswered = null
    return claim
  }
}
