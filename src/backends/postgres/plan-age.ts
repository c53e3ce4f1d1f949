/**
 * How old the plans of a connection are. A generic plan is made once and kept, and one that was made while a table was small looks through
 * all of an index for each row of a batch: with 5,000 jobs running, to renew 100 leases took 120 ms in place of 6 (2026-11-30), until the
 * server analysed the table a minute later. So plans are made anew now and then, and soon after a statement was slow. One costs 1 to 3 ms.
 */
import type { PoolClient } from 'pg'
import type { Clock } from '../../clock.ts'

const OLD_MS = 10_000
const SLOW_MS = 25
/** Where everything is slow, such as the disk, new plans would not help. */
const BETWEEN_MS = 1000

export class PlanAge {
  private readonly clock: Pick<Clock, 'monotonic'>
  private readonly madeAt = new WeakMap<PoolClient, number>()
  /** Plans that were made before are too old. */
  private oldBefore = Number.NEGATIVE_INFINITY

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock
  }

  isOld(client: PoolClient): boolean {
    const madeAt = this.madeAt.get(client)
    return madeAt !== undefined && (madeAt < this.oldBefore || this.clock.monotonic() - madeAt >= OLD_MS)
  }

  /** It has none, or none any more. */
  renewed(client: PoolClient): void {
    this.madeAt.set(client, this.clock.monotonic())
  }

  /** A statement took this long; also one that was stopped for it. */
  took(durationMs: number): void {
    if (durationMs < SLOW_MS) return
    const now = this.clock.monotonic()
    if (now - this.oldBefore >= BETWEEN_MS) this.oldBefore = now
  }
}
