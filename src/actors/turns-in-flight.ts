/** Which turns of one dispatcher are on their way: none, one, or one that claims and one that only settles. */
import type { SentTurn } from './turn-queue.ts'

export class TurnsInFlight {
  private count = 0
  private hasClaim = false

  get isNone(): boolean {
    return this.count === 0
  }

  /** True while an answer may bring jobs: nothing more is claimed until then. */
  get isClaiming(): boolean {
    return this.hasClaim
  }

  /** True when nothing but a claim, and what it settles too, is on its way. */
  get isOnlyClaim(): boolean {
    return this.hasClaim && this.count === 1
  }

  sent({ claim }: SentTurn): void {
    this.count += 1
    this.hasClaim ||= claim !== null
  }

  landed({ claim }: SentTurn): void {
    this.count = Math.max(0, this.count - 1)
    if (claim !== null) this.hasClaim = false
  }

  forget(): void {
    this.count = 0
    this.hasClaim = false
  }
}
