/**
 * Turns hints of the store into wake-ups of a dispatcher, and tells the store whether the dispatcher is idle: a store may spend a
 * wake-up on one idle worker alone. A lost hint costs latency only: a poll stands behind it.
 */
import type { Backend, CancelListener, HintSubscription } from '../backends/backend.ts'
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
  private readonly onCancel: CancelListener
  private subscription: HintSubscription | null = null
  private isWanted = false

  constructor(
    backend: Backend,
    lanes: readonly string[],
    { wake, onCancel }: { readonly wake: () => void; readonly onCancel: CancelListener },
  ) {
    super('notifier')
    this.backend = backend
    this.lanes = lanes
    this.wake = wake
    this.onCancel = onCancel
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

  get hearsCancels(): boolean {
    return this.subscription?.hearsCancels === true
  }

  protected override onStart(): void {
    this.isWanted = false
    const onHint = (lane: string | null): void => void this.tell({ type: 'hint', lane })
    this.subscription = this.backend.subscribe(this.lanes, onHint, this.onCancel)
  }

  protected override onStop(): void {
    this.subscription?.stop()
    this.subscription = null
  }

  protected override receive({ lane }: NotifierMessage): void {
    if (lane === null || this.lanes.includes(lane)) this.wake()
  }
}
