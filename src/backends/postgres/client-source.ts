/**
 * Where connections come from: a pool of our own, or the caller's. Both hand out one connection to one borrower at a time, each with
 * a listener for errors, without which the loss of a connection would end the process.
 */
import type { Pool, PoolClient } from 'pg'
import type { Deadlines } from '../../deadlines.ts'
import { closed, noConnection } from './errors.ts'
import type { Wiring } from './wiring.ts'

export interface ClientSource {
  /** As messages name the server. */
  readonly server: string
  /** A pooler refused connections with settings of ours; they are made without. */
  readonly isRefusingSettings: boolean
  /** Rejects with what the driver said, or a HoldfastError. */
  connect(): Promise<PoolClient>
  /** The server of this connection takes no writes: the next connection is made to another one, if there is one. */
  passOn(client: PoolClient): void
  close(): Promise<void>
}

/** A pool as it is borrowed from. */
export class Borrowing {
  private readonly pool: Pool
  private readonly server: string
  private readonly waitMs: number
  private readonly deadlines: Deadlines
  private readonly waiting = new Set<(error: Error) => void>()
  private readonly guarded = new WeakSet<PoolClient>()

  constructor(pool: Pool, server: string, { limits }: Wiring, deadlines: Deadlines) {
    this.pool = pool
    this.server = server
    this.waitMs = limits.connectMs
    this.deadlines = deadlines
  }

  /** A connection that comes too late goes back to the pool. */
  take(): Promise<PoolClient> {
    return new Promise((resolve, reject) => {
      const end = (error: Error): void => {
        if (this.waiting.delete(end)) reject(error)
      }
      this.waiting.add(end)
      const deadline = this.deadlines.add(this.waitMs, () => end(noConnection(this.server, this.waitMs)))
      this.pool.connect((error, client) => {
        this.deadlines.delete(deadline)
        if (client === undefined) return end(error ?? noConnection(this.server, this.waitMs))
        this.guard(client)
        if (this.waiting.delete(end)) resolve(client)
        else client.release()
      })
    })
  }

  /** Nobody waits any longer. */
  close(): void {
    for (const end of [...this.waiting]) end(closed(this.server))
  }

  /** The pool listens to a connection only while nobody has borrowed it. */
  private guard(client: PoolClient): void {
    if (this.guarded.has(client)) return
    this.guarded.add(client)
    client.on('error', () => {})
  }
}
