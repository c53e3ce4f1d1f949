/** Turns hints of the store into wake-ups of a dispatcher. A lost hint costs latency only: a poll stands behind it. */
import type { Backend } from '../backends/backend.ts'
import { Actor } from './actor.ts'

type NotifierMessage = { readonly type: 'hint'; readonly lane: string | null }

export class Notifier extends Actor<NotifierMessage> {
  private readonly backend: Backend
  private readonly lanes: ReadonlySet<string>
  private readonly wake: () => void
  private unsubscribe: (() => void) | null = null

  constructor(backend: Backend, lanes: readonly string[], wake: () => void) {
    super('notifier')
    this.backend = backend
    this.lanes = new Set(lanes)
    this.wake = wake
  }

  protected override onStart(): void {
    this.unsubscribe = this.backend.onHint((lane) => this.tell({ type: 'hint', lane }))
  }

  protected override onStop(): void {
    this.unsubscribe?.()
    this.unsubscribe = null
  }

  protected override receive({ lane }: NotifierMessage): void {
    if (lane === null || this.lanes.has(lane)) this.wake()
  }
}
