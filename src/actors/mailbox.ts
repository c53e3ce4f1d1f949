/** A bounded queue of messages: what does not fit is refused, never dropped silently and never let grow. */
export class Mailbox<M> {
  private items: M[] = []
  private readonly capacity: number

  constructor(capacity: number) {
    this.capacity = capacity
  }

  get size(): number {
    return this.items.length
  }

  /** False when the mailbox is full. */
  put(message: M): boolean {
    if (this.items.length >= this.capacity) return false
    this.items.push(message)
    return true
  }

  /** Everything that waits, in order; the mailbox is empty afterwards. */
  takeAll(): readonly M[] {
    const taken = this.items
    this.items = []
    return taken
  }
}
