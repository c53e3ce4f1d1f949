/**
 * Turns hints of the store into wake-ups of a dispatcher, and tells the store whether the dispatcher is idle: a store may spend a
 * wake-up on one idle worker alone. A lost hint costs latency only: a poll stands behind it.
 */
import type { Backend, HintSubscription } from '../backends/backend.ts'
import { Actor } from './actor.ts'

type NotifierMessage = { readonly type: 'hint'; readonly lane: string | null }

/** The notifier as its dispatcher sees it. */
export interface WakeUps {
  want(isWanted: boolean): void
  readonly isReliable: boolean
}

export class Notifier extends Actor<NotifierMessage> implements WakeUps {
  private readonly backend: Backend
  private readonly lanes: readonly string[]
  private readonly wake: () => void
  private subscription: HintSubscription | null = null
  private isWanted = false

  constructor(backend: Backend, lanes: readonly string[], wake: () => void) {
    super('notifier')
    this.backend = backend
    this.lanes = lanes
    this.wake = wake
  }

  /** Tells the store, when it is news to it. Counts only between start and stop, as the dispatcher lives. */
  want(isWanted: boolean): void {
    if (this.subscription === null || isWanted === this.isWanted) return
    this.isWanted = isWanted
    this.subscription.want(isWanted)
  }

  get isReliable(): boolean {
    return this.subscription?.isReliable === true
  }

  protected override onStart(): void {
    this.isWanted = false
    this.subscription = this.backend.subscribe(this.lanes, (lane) => this.tell({ type: 'hint', lane }))
  }

  protected override onStop(): void {
    this.subscription?.stop()
    this.subscription = null
  }

  protected override receive({ lane }: NotifierMessage): void {
    if (lane === null || this.lanes.includes(lane)) this.wake()
  }
}
