/**
 * What one attempt says of itself and the store has not taken yet: its latest progress and its last lines, in bounds whatever
 * the handler does. Written from time to time by the note writer, and the rest with the settlement.
 * States: `open` (takes and gives), `lost` (the store or the keeper said that the lease is gone: refuses), `ended` (the rest was
 * handed to the settlement: drops).
 */
import type { LeaseRef, Note, NoteLine } from '../backends/protocol/index.ts'
import type { HoldfastError } from '../errors.ts'
import type { Payload } from '../job.ts'

/** Who waits for the next write. One for all that come until then, so that a handler which never awaits costs one promise a write. */
interface Waiting {
  readonly promise: Promise<void>
  resolve(): void
  reject(error: HoldfastError): void
}

function newWaiting(): Waiting {
  let resolve = (): void => {}
  let reject = (_error: HoldfastError): void => {}
  const promise = new Promise<void>((resolved, rejected) => {
    resolve = resolved
    reject = rejected
  })
  // A handler may leave the promise alone.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}

/** What a write took along. */
interface Taken {
  readonly progress: Payload | null
  readonly lines: readonly NoteLine[]
  readonly waiting: Waiting | null
}

const TAKEN = Promise.resolve()
const NOTHING: Taken = { progress: null, lines: [], waiting: null }

export interface NoteOwner {
  readonly keepLines: number
  /** Told when there is something to write. */
  changed(notes: AttemptNotes): void
  ended(notes: AttemptNotes): void
  /** False while this attempt may not write yet, because it has just done so. */
  mayWrite(notes: AttemptNotes): boolean
}

export class AttemptNotes {
  readonly lease: LeaseRef
  /** Monotonic times of the last write, and of the first change since; kept by the writer. */
  writtenAt = Number.NEGATIVE_INFINITY
  changedAt = 0
  private readonly owner: NoteOwner
  private readonly onLost: (error: HoldfastError) => void
  private progress: Payload | null = null
  private lines: NoteLine[] = []
  private lastNumber = 0
  private waiting: Waiting | null = null
  private underWay: Taken = NOTHING
  private lost: HoldfastError | null = null
  private hasEnded = false

  constructor(lease: LeaseRef, owner: NoteOwner, onLost: (error: HoldfastError) => void) {
    this.lease = lease
    this.owner = owner
    this.onLost = onLost
  }

  /**
   * Resolves when this value, or a later one, is stored; at once when the attempt has written less than an interval ago, since
   * then it is stored within the interval, or with the end of the attempt. Throws once the lease is known to be gone.
   */
  report(progress: Payload): Promise<void> {
    if (this.lost !== null) throw this.lost
    this.progress = progress
    if (this.waiting === null && this.owner.mayWrite(this)) this.waiting = newWaiting()
    this.owner.changed(this)
    return this.waiting?.promise ?? TAKEN
  }

  /** Somebody waits for the next write. */
  get isUrgent(): boolean {
    return this.waiting !== null
  }

  /** Only the newest lines that the job may keep are held. */
  log(text: string): void {
    if (this.lost !== null || this.hasEnded) return
    this.lastNumber += 1
    this.lines.push({ number: this.lastNumber, text })
    // Not at every line: the array would be copied each time.
    if (this.lines.length >= this.owner.keepLines * 2) this.trim()
    this.owner.changed(this)
  }

  private trim(): void {
    const { keepLines } = this.owner
    if (this.lines.length > keepLines) this.lines = this.lines.slice(-keepLines)
  }

  /** What is to be written now; null: nothing. One of `stored`, `refused` or `failed` follows. */
  take(): (LeaseRef & Note) | null {
    if (this.hasEnded || this.lost !== null) return null
    this.trim()
    const { progress, lines, waiting } = this
    if (progress === null && lines.length === 0) return null
    this.underWay = { progress, lines, waiting }
    this.progress = null
    this.lines = []
    this.waiting = null
    return { ...this.lease, progress, lines, keepLines: this.owner.keepLines }
  }

  stored(): void {
    this.underWay.waiting?.resolve()
    this.underWay = NOTHING
  }

  /** The lease is gone: nothing is written any more. */
  refused(error: HoldfastError): void {
    this.onLost(error)
    this.lost ??= error
    this.underWay.waiting?.reject(error)
    this.waiting?.reject(error)
    this.underWay = NOTHING
    this.waiting = null
    this.progress = null
    this.lines = []
  }

  /** Nobody knows whether it was written. Those who wait are told; the rest goes with the next write unless `isFinal`. */
  failed(error: HoldfastError, isFinal: boolean): void {
    const { progress, lines, waiting } = this.underWay
    waiting?.reject(error)
    this.underWay = NOTHING
    if (isFinal || this.hasEnded || this.lost !== null) return
    this.progress ??= progress
    this.lines = [...lines, ...this.lines]
    this.trim()
    this.owner.changed(this)
  }

  /**
   * The attempt is over: what the store may not have yet. What is on its way belongs to it: the settlement may arrive first, and
   * the store knows a line that comes twice.
   */
  end(): Note | null {
    this.hasEnded = true
    this.owner.ended(this)
    this.waiting?.resolve()
    this.waiting = null
    if (this.lost !== null) return null
    const { keepLines } = this.owner
    const progress = this.progress ?? this.underWay.progress
    const lines = [...this.underWay.lines, ...this.lines].slice(-keepLines)
    return progress === null && lines.length === 0 ? null : { progress, lines, keepLines }
  }
}
