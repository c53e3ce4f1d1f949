/** The jobs of one lane that wait, in their orders: ready (priority, time, sequence), due (time) and deadline (time); and its policy. */
import { bucketUnder, isLimited } from '../limits.ts'
import type { LaneLimits } from '../protocol/index.ts'
import { Limiter } from './limiter.ts'
import type { JobRow } from './row.ts'
import { byDeadline, byReadiness, byRunAt, isCurrent, RowQueue } from './row-queue.ts'

export class Lane {
  readonly name: string
  isPaused = false
  /** null: no limits. It stays after the last limit was taken away for as long as jobs are set aside. */
  limiter: Limiter | null = null
  private readonly ready = new RowQueue(byReadiness, isCurrent)
  private readonly due = new RowQueue(byRunAt, isCurrent)
  private readonly deadlines = new RowQueue(
    byDeadline,
    ({ row }) =>
      row.state === 'queued' || row.state === 'scheduled' || row.state === 'retry_wait' || row.state === 'waiting',
  )

  constructor(name: string) {
    this.name = name
  }

  /** Takes in a row that waits, by its state. */
  add(row: JobRow): void {
    if (row.state === 'queued') this.ready.push(row)
    else this.due.push(row)
    if (row.definition.deadlineAt !== null) this.deadlines.push(row)
  }

  /** Told after a waiting row moved on by another way than `takeReady`. */
  dropped(): void {
    this.ready.noteStale()
    this.due.noteStale()
    this.deadlines.noteStale()
    this.limiter?.dropped()
  }

  takeReady(): JobRow | undefined {
    return this.ready.pop()
  }

  /** Up to `wanted` rows that are ready, one after the other. */
  *takeUpTo(wanted: number): Generator<JobRow> {
    for (let left = wanted; left > 0; left -= 1) {
      const row = this.ready.pop()
      if (row === undefined) return
      yield row
    }
  }

  firstReady(): JobRow | undefined {
    return this.ready.peek()
  }

  /** Moves what is due into the ready order; returns how many. */
  promoteDue(now: number): number {
    let count = 0
    for (let row = this.due.peek(); row !== undefined && row.runAt <= now; row = this.due.peek()) {
      this.due.pop()
      row.move('due', now)
      this.ready.push(row)
      count += 1
    }
    return count
  }

  nextDueAt(): number | null {
    return this.due.peek()?.runAt ?? null
  }

  /** Sets the limits, all of them. */
  limit(limits: LaneLimits): void {
    if (this.limiter !== null) this.limiter.change(limits, bucketUnder)
    else if (isLimited(limits)) this.limiter = new Limiter(limits)
    this.tidy()
  }

  /** Lets go of a limiter that limits nothing any more. */
  tidy(): void {
    if (this.limiter !== null && !isLimited(this.limiter.limits) && !this.limiter.hasParked) this.limiter = null
  }

  /** The rows whose deadline has passed while they waited. */
  takeDeadlined(now: number): Set<JobRow> {
    const rows = new Set<JobRow>()
    for (
      let row = this.deadlines.peek();
      row !== undefined && (row.definition.deadlineAt ?? now + 1) <= now;
      row = this.deadlines.peek()
    ) {
      this.deadlines.pop()
      rows.add(row)
    }
    return rows
  }
}
