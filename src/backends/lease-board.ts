/**
 * The leases of one worker in memory that its main loop and a thread both see: the main loop writes what it holds the moment it is
 * granted, so that it is known before a handler can block; the thread only reads, when it looks, and notes what it has renewed.
 * So a lease that comes and goes between two looks costs the thread nothing. Measured 2026-11-30 on Node 20: 0.1 µs a lease.
 * Each cell has one writer. Both sides are on one monotonic clock, in milliseconds.
 */
import type { LeaseRef } from './protocol/index.ts'

/** Leases of one page. */
const SLOTS = 256
/** An id is a lane and a ULID, a token an epoch, the id of a worker and a nonce: 155 and 176 characters at most, all of them ASCII. */
const TEXT_BYTES = 384

const HEADER_BYTES = 16
const MARKS_AT = HEADER_BYTES
const LENGTHS_AT = MARKS_AT + SLOTS * 4
const RENEWED_MARKS_AT = LENGTHS_AT + SLOTS * 4
const CONFIRMED_AT = RENEWED_MARKS_AT + SLOTS * 4
const UNTIL_AT = CONFIRMED_AT + SLOTS * 8
const RENEWED_AT = UNTIL_AT + SLOTS * 8
const TEXT_AT = RENEWED_AT + SLOTS * 8
const PAGE_BYTES = TEXT_AT + SLOTS * TEXT_BYTES

/** Node's own way to write one byte a character, ten times as fast as the general one for short text; its types leave it out. */
interface AsciiBuffer extends Buffer {
  latin1Write(text: string, offset: number, length: number): number
  latin1Slice(start: number, end: number): string
}

export interface NotedLease extends LeaseRef {
  readonly slot: number
  /** Unique to this stay of the lease in its slot. */
  readonly mark: number
  readonly confirmedAt: number
  readonly renewUntil: number
}

/** One block of shared memory, as either side sees it. */
export class LeasePage {
  readonly memory: SharedArrayBuffer
  private readonly beats: Float64Array
  private readonly counts: Int32Array
  private readonly marks: Int32Array
  private readonly lengths: Int32Array
  private readonly renewedMarks: Int32Array
  private readonly confirmed: Float64Array
  private readonly until: Float64Array
  private readonly renewed: Float64Array
  private readonly text: AsciiBuffer
  private lastMark = 0

  constructor(memory = new SharedArrayBuffer(PAGE_BYTES)) {
    this.memory = memory
    this.beats = new Float64Array(memory, 0, 1)
    this.counts = new Int32Array(memory, 8, 2)
    this.marks = new Int32Array(memory, MARKS_AT, SLOTS)
    this.lengths = new Int32Array(memory, LENGTHS_AT, SLOTS)
    this.renewedMarks = new Int32Array(memory, RENEWED_MARKS_AT, SLOTS)
    this.confirmed = new Float64Array(memory, CONFIRMED_AT, SLOTS)
    this.until = new Float64Array(memory, UNTIL_AT, SLOTS)
    this.renewed = new Float64Array(memory, RENEWED_AT, SLOTS)
    this.text = Buffer.from(memory, TEXT_AT) as AsciiBuffer
  }

  /** The last sign of life of the main loop. */
  get beatAt(): number {
    return this.beats[0] ?? 0
  }

  set beatAt(at: number) {
    this.beats[0] = at
  }

  /** Main loop: fills a free slot; the mark comes last, so that a reader sees all of it or none. */
  put(slot: number, { id, token }: LeaseRef, confirmedAt: number): void {
    // One text: both are put together from parts, and to make each of them whole would cost more than to write it.
    this.text.latin1Write(id + token, slot * TEXT_BYTES, TEXT_BYTES)
    this.lengths[slot] = id.length * 1024 + token.length
    this.confirmed[slot] = confirmedAt
    this.until[slot] = Number.POSITIVE_INFINITY
    if (slot >= (this.counts[0] ?? 0)) Atomics.store(this.counts, 0, slot + 1)
    this.lastMark = this.lastMark >= 0x7fff_ffff ? 1 : this.lastMark + 1
    Atomics.store(this.marks, slot, this.lastMark)
  }

  clear(slot: number): void {
    Atomics.store(this.marks, slot, 0)
  }

  confirm(slot: number, at: number): void {
    this.confirmed[slot] = at
  }

  limit(slot: number, until: number): void {
    this.until[slot] = until
  }

  /** When the thread last renewed what is in the slot now, as `confirm` counts it; minus infinity: never. */
  renewedAt(slot: number): number {
    const isOfNow = Atomics.load(this.renewedMarks, slot) === this.marks[slot]
    return isOfNow ? (this.renewed[slot] ?? 0) : Number.NEGATIVE_INFINITY
  }

  /** Thread: what is held now. */
  held(): readonly NotedLease[] {
    const leases: NotedLease[] = []
    const used = Atomics.load(this.counts, 0)
    for (let slot = 0; slot < used; slot += 1) {
      const lease = this.read(slot)
      if (lease !== null) leases.push(lease)
    }
    return leases
  }

  /** null: the slot is free, or was written while it was read. */
  private read(slot: number): NotedLease | null {
    const mark = Atomics.load(this.marks, slot)
    if (mark === 0) return null
    const lengths = this.lengths[slot] ?? 0
    const at = slot * TEXT_BYTES
    const middle = at + Math.floor(lengths / 1024)
    const lease = {
      slot,
      mark,
      id: this.text.latin1Slice(at, middle),
      token: this.text.latin1Slice(middle, middle + (lengths % 1024)),
      confirmedAt: Math.max(this.confirmed[slot] ?? 0, this.renewedAt(slot)),
      renewUntil: this.until[slot] ?? 0,
    }
    return Atomics.load(this.marks, slot) === mark ? lease : null
  }

  /** Thread: this stay of the lease was renewed by a request sent at `at`. */
  noteRenewed({ slot, mark }: NotedLease, at: number): void {
    Atomics.store(this.renewedMarks, slot, 0)
    this.renewed[slot] = at
    Atomics.store(this.renewedMarks, slot, mark)
  }

  /** Renewals by the thread so far. */
  get standIns(): number {
    return Atomics.load(this.counts, 1)
  }

  countStandIn(): void {
    Atomics.add(this.counts, 1, 1)
  }
}

/** The main loop's side: finds a free slot for each lease, and asks for another page when there is none. */
export class LeaseBoard {
  private readonly pages: LeasePage[] = []
  private readonly free: number[] = []
  private readonly onPage: (memory: SharedArrayBuffer) => void

  constructor(now: number, onPage: (memory: SharedArrayBuffer) => void) {
    this.onPage = onPage
    this.addPage(now)
  }

  private addPage(now: number): void {
    const page = new LeasePage()
    page.beatAt = now
    const first = this.pages.length * SLOTS
    this.pages.push(page)
    // The lowest first, so that a quiet worker's leases are where the thread looks first, and last.
    for (let slot = SLOTS - 1; slot >= 0; slot -= 1) this.free.push(first + slot)
    this.onPage(page.memory)
  }

  /** The main loop lives: it runs its timers. */
  beat(now: number): void {
    const [first] = this.pages
    if (first !== undefined) first.beatAt = now
  }

  /** Returns the slot; -1 when the lease does not fit, and only the main loop can renew it. */
  put(lease: LeaseRef, confirmedAt: number): number {
    if (lease.id.length + lease.token.length > TEXT_BYTES) return -1
    if (this.free.length === 0) this.addPage(confirmedAt)
    const slot = this.free.pop() ?? -1
    this.pageOf(slot)?.put(slot % SLOTS, lease, confirmedAt)
    return slot
  }

  clear(slot: number): void {
    if (slot < 0) return
    this.pageOf(slot)?.clear(slot % SLOTS)
    this.free.push(slot)
  }

  confirm(slot: number, at: number): void {
    this.pageOf(slot)?.confirm(slot % SLOTS, at)
  }

  limit(slot: number, until: number): void {
    this.pageOf(slot)?.limit(slot % SLOTS, until)
  }

  renewedAt(slot: number): number {
    return this.pageOf(slot)?.renewedAt(slot % SLOTS) ?? Number.NEGATIVE_INFINITY
  }

  get standIns(): number {
    return this.pages.reduce((sum, page) => sum + page.standIns, 0)
  }

  private pageOf(slot: number): LeasePage | undefined {
    return slot < 0 ? undefined : this.pages[Math.floor(slot / SLOTS)]
  }
}
