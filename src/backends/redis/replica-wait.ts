/**
 * Waits until replicas have the writes of one connection. WAIT blocks the connection, so one at a time is under way, and the next
 * one is for all writes that were sent meanwhile: however many callers there are, what they send is held up by one WAIT at most.
 */
export class ReplicaWait {
  /** Sends WAIT; resolves to how many replicas have all writes of the connection. */
  private readonly wait: () => Promise<number>
  private current: Promise<number> | undefined
  private next: Promise<number> | undefined

  constructor(wait: () => Promise<number>) {
    this.wait = wait
  }

  /** How many replicas have what was sent on the connection before this call; 0 when the connection fails. */
  confirmed(): Promise<number> {
    if (this.current === undefined) return this.start()
    this.next ??= this.current.then(() => this.start())
    return this.next
  }

  private start(): Promise<number> {
    this.next = undefined
    const current = this.wait()
      .catch(() => 0)
      .finally(() => {
        this.current = undefined
      })
    this.current = current
    return current
  }
}
