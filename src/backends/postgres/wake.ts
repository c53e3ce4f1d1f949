/**
 * Wakes idle workers of this process and of others. A job for which this process has an idle worker is told to nobody else; a claim that
 * left work behind tells the others that there is more. Everything here is a hint: a poll stands behind it.
 */
import type { Clock } from '../../clock.ts'
import type { CancelListener, HintListener, HintSubscription } from '../backend.ts'
import { markOf } from './channel.ts'

/** How often workers that are busy pass on that there is more. */
const PASS_ON_MS = 50

interface Subscriber {
  /** By the marks that others give them. */
  readonly lanes: ReadonlyMap<string, string>
  readonly listener: HintListener
  readonly onCancel: CancelListener | undefined
  isWanted: boolean
  /** Something was said while it was busy, perhaps after its last look. */
  hasMissed: boolean
}

export interface WakeOptions {
  readonly clock: Clock
  /** Tells other processes; null: they are not told. */
  readonly notifier: { tell(lane: string | null): void; tellCancelled(): void; close(): void } | null
  /** Hears other processes; null: they are not heard. */
  readonly listener: { readonly isReliable: boolean; start(): void; close(): Promise<void> } | null
}

export class Wake {
  private readonly options: WakeOptions
  private readonly subscribers = new Set<Subscriber>()
  private readonly passedAt = new Map<string, number>()

  constructor(options: WakeOptions) {
    this.options = options
  }

  subscribe(lanes: readonly string[], listener: HintListener, onCancel?: CancelListener): HintSubscription {
    const { options, subscribers } = this
    const marks = new Map(lanes.map((lane) => [markOf(lane), lane]))
    const subscriber: Subscriber = { lanes: marks, listener, onCancel, isWanted: false, hasMissed: false }
    subscribers.add(subscriber)
    options.listener?.start()
    return {
      want: (isWanted) => {
        subscriber.isWanted = isWanted
        if (!isWanted || !subscriber.hasMissed) return
        subscriber.hasMissed = false
        listener(null)
      },
      // Who does not tell does not know that others do.
      get isReliable() {
        return options.listener?.isReliable === true && options.notifier !== null
      },
      get hearsCancels() {
        return options.listener?.isReliable === true && options.notifier !== null
      },
      stop: () => void subscribers.delete(subscriber),
    }
  }

  /** Jobs of this process became ready; null stands for some lane. */
  ready(lane: string | null): void {
    const mark = lane === null ? null : markOf(lane)
    const idle = [...this.subscribers].find(({ isWanted, lanes }) => isWanted && (mark === null || lanes.has(mark)))
    if (idle !== undefined) {
      idle.listener(lane)
      return
    }
    this.wakeAll(mark === null ? null : [mark])
    this.options.notifier?.tell(lane)
  }

  /** A claim of this process left work behind, which others may take. */
  left(lane: string): void {
    const now = this.options.clock.monotonic()
    if (now - (this.passedAt.get(lane) ?? Number.NEGATIVE_INFINITY) < PASS_ON_MS) return
    this.passedAt.set(lane, now)
    this.options.notifier?.tell(lane)
  }

  /** This process cancelled what runs somewhere. */
  cancelled(): void {
    this.options.notifier?.tellCancelled()
  }

  heardCancelled(): void {
    for (const { onCancel } of this.subscribers) onCancel?.()
  }

  /** Other processes said so; their marks stand for lanes. */
  heard(marks: readonly string[] | null): void {
    this.wakeAll(marks)
  }

  async close(): Promise<void> {
    this.options.notifier?.close()
    await this.options.listener?.close()
  }

  private wakeAll(marks: readonly string[] | null): void {
    for (const subscriber of this.subscribers) {
      const mark = marks?.find((each) => subscriber.lanes.has(each))
      if (marks !== null && mark === undefined) continue
      if (subscriber.isWanted) subscriber.listener(mark === undefined ? null : (subscriber.lanes.get(mark) ?? null))
      else subscriber.hasMissed = true
    }
  }
}
