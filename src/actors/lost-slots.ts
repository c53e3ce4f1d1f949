/**
 * The slots that were given up with their handler still in them: a thread inside a native call that nothing can interrupt, a process
 * that the system does not end, an inline handler deaf to its signal. Each counts until its handler ends after all.
 * Written by the hosts of modules and by job actors, read by the runtime.
 */

export interface LostSlot {
  readonly jobId: string
  readonly type: string
  readonly attempt: number
  readonly where: 'inline' | 'thread' | 'process'
}

export type LostSlotListener = (slot: LostSlot, change: 'lost' | 'recovered') => void

export class LostSlots {
  private readonly slots = new Set<LostSlot>()
  private heavy = 0
  private readonly listener: LostSlotListener

  constructor(listener: LostSlotListener = () => undefined) {
    this.listener = listener
  }

  get count(): number {
    return this.slots.size
  }

  /** Those that hold a thread or a process, which are the ones that have to be bounded. Asked before every claim. */
  get heavyCount(): number {
    return this.heavy
  }

  /** Counts the slot until `end` settles. */
  add(slot: LostSlot, end: PromiseLike<unknown>): void {
    const weight = slot.where === 'inline' ? 0 : 1
    this.slots.add(slot)
    this.heavy += weight
    this.listener(slot, 'lost')
    const recovered = (): void => {
      this.slots.delete(slot)
      this.heavy -= weight
      this.listener(slot, 'recovered')
    }
    end.then(recovered, recovered)
  }
}
