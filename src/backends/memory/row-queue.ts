/**
 * Rows of a lane in one order. Stale entries are skipped when they come up: an entry counts only while its row still has the ticket it was
 * put in with. An order is rebuilt when more than half of it is stale, so cancelling millions leaves nothing behind.
 */
import TinyQueue from 'tinyqueue'
import type { JobRow } from './row.ts'

/** `runAt` is the row's when it entered: a row that moves on and comes back at another time must not disturb the order it left. */
export interface Entry {
  readonly row: JobRow
  readonly ticket: number
  readonly runAt: number
}

export type Order = (a: Entry, b: Entry) => number

export const byReadiness: Order = (a, b) =>
  b.row.definition.priority - a.row.definition.priority || a.runAt - b.runAt || a.row.sequence - b.row.sequence
export const byRunAt: Order = (a, b) => a.runAt - b.runAt || a.row.sequence - b.row.sequence
export const byDeadline: Order = (a, b) => (a.row.definition.deadlineAt ?? 0) - (b.row.definition.deadlineAt ?? 0)

/**
 * Rows in an order, minus those that moved on. Most rows arrive in order already and go to the back of a plain array;
 * the rest go to a heap. Measured 2026-11-29 with 200,000 jobs: 174 k turns/s with a heap alone, see the commit for this.
 */
export class RowQueue {
  private run: (Entry | undefined)[] = []
  private head = 0
  private heap: TinyQueue<Entry>
  private readonly order: Order
  private readonly isLive: (entry: Entry) => boolean
  private staleHint = 0

  constructor(order: Order, isLive: (entry: Entry) => boolean) {
    this.order = order
    this.isLive = isLive
    this.heap = new TinyQueue<Entry>([], order)
  }

  push(row: JobRow): void {
    const entry = { row, ticket: row.ticket, runAt: row.runAt }
    const last = this.run[this.run.length - 1]
    if (last === undefined || this.order(last, entry) <= 0) this.run.push(entry)
    else this.heap.push(entry)
  }

  /** The first live row, left in place. */
  peek(): JobRow | undefined {
    for (let entry = this.first(); entry !== undefined; entry = this.first()) {
      if (this.isLive(entry)) return entry.row
      this.drop(entry)
      this.staleHint = Math.max(0, this.staleHint - 1)
    }
    return undefined
  }

  pop(): JobRow | undefined {
    const row = this.peek()
    const entry = row === undefined ? undefined : this.first()
    if (entry !== undefined) this.drop(entry)
    return row
  }

  private first(): Entry | undefined {
    const sorted = this.run[this.head]
    const heaped = this.heap.peek()
    if (sorted === undefined || heaped === undefined) return sorted ?? heaped
    return this.order(sorted, heaped) <= 0 ? sorted : heaped
  }

  private drop(entry: Entry): void {
    if (this.run[this.head] !== entry) {
      this.heap.pop()
      return
    }
    this.run[this.head] = undefined
    this.head += 1
    if (this.head === this.run.length || (this.head > 1_024 && this.head * 2 > this.run.length)) {
      this.run = this.run.slice(this.head)
      this.head = 0
    }
  }

  /** Live rows. Looks at all of them. */
  get size(): number {
    const sorted = this.run.slice(this.head).filter((entry) => entry !== undefined && this.isLive(entry))
    return sorted.length + this.heap.data.filter(this.isLive).length
  }

  /** Told when a row leaves by another way than `pop`. */
  noteStale(): void {
    this.staleHint += 1
    if (this.staleHint <= 1_000 || this.staleHint * 2 <= this.heap.length + this.run.length - this.head) return
    this.run = this.run.slice(this.head).filter((entry) => entry !== undefined && this.isLive(entry))
    this.head = 0
    this.heap = new TinyQueue<Entry>(this.heap.data.filter(this.isLive), this.order)
    this.staleHint = 0
  }
}

/** An entry that its row has not left. */
export const isCurrent = (entry: Entry): boolean => entry.row.ticket === entry.ticket
