/** Which turns of one dispatcher are on their way: none, one, or one that claims and one that only settles. */
import type { Claim } from '../backends/protocol/index.ts'
import type { SentTurn } from './turn-queue.ts'

export class TurnsInFlight {
  private count = 0
  /** Null: none is on its way. */
  claim: Claim | null = null

  get isNone(): boolean {
    return this.count === 0
  }

  /** True while an answer may bring jobs: nothing more is claimed until then. */
  get isClaiming(): boolean {
    return this.claim !== null
  }

  /** True when nothing but a claim, and what it settles too, is on its way. */
  get isOnlyClaim(): boolean {
    return this.claim !== null && this.count === 1
  }

  sent({ claim }: SentTurn): void {
    this.count += 1
    this.claim ??= claim
  }

  landed({ claim }: SentTurn): void {
    this.count = Math.max(0, this.count - 1)
    if (claim !== null) this.claim = null
  }

  forget(): void {
    this.count = 0
    this.claim = null
  }
}
