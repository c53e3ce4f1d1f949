/**
 * Writes what the attempts of one worker say of themselves: one call for all that have something to say, one call at a time, and
 * no attempt more than once in an interval. So a handler that reports a hundred thousand times costs a few writes.
 */
import type { LeaseRef, Note, Verdict } from '../backends/protocol/index.ts'
import type { Clock, TimerHandle, Timers } from '../clock.ts'
import { HoldfastError } from '../errors.ts'
import type { Warn } from '../telemetry.ts'
import { AttemptNotes, type NoteOwner } from './attempt-notes.ts'
import type { BackendActor } from './backend-actor.ts'

/** Least time between two writes of one attempt, and the longest that one waits unless the store is slow. */
const INTERVAL_MS = 250
/** Notes in one call. */
const NOTES_MAX = 100

export interface NoteWriterOptions {
  readonly backend: BackendActor
  readonly clock: Clock
  readonly timers: Timers
  readonly warn: Warn
  /** How many lines a job keeps; 0: none. */
  readonly keepLines: number
}

export class NoteWriter implements NoteOwner {
  readonly keepLines: number
  private readonly options: NoteWriterOptions
  private readonly changes = new Set<AttemptNotes>()
  private timer: TimerHandle = null
  private isArmed = false
  private isGathering = false
  private isWriting = false

  constructor(options: NoteWriterOptions) {
    this.options = options
    this.keepLines = options.keepLines
  }

  /** `onLost` is told when the store says that the lease is gone. */
  open(id: string, token: string, onLost: (error: HoldfastError) => void): AttemptNotes {
    return new AttemptNotes({ id, token }, this, onLost)
  }

  mayWrite({ writtenAt }: AttemptNotes): boolean {
    return this.options.clock.monotonic() - writtenAt >= INTERVAL_MS
  }

  changed(notes: AttemptNotes): void {
    if (!this.changes.has(notes)) {
      notes.changedAt = this.options.clock.monotonic()
      this.changes.add(notes)
    }
    if (notes.isUrgent) this.gather()
    else this.arm()
  }

  ended(notes: AttemptNotes): void {
    this.changes.delete(notes)
  }

  stop(): void {
    this.options.timers.clear(this.timer)
  }

  /** All that is urgent now goes together. */
  private gather(): void {
    if (this.isGathering || this.isWriting) return
    this.isGathering = true
    this.options.timers.defer(() => {
      this.isGathering = false
      this.write()
    })
  }

  /** For the one that has waited longest. */
  private arm(): void {
    const [first] = this.changes
    if (this.isArmed || this.isWriting || first === undefined) return
    this.isArmed = true
    const waitMs = first.changedAt + INTERVAL_MS - this.options.clock.monotonic()
    this.timer = this.options.timers.set(
      () => {
        this.isArmed = false
        this.write()
      },
      Math.max(1, waitMs),
      true,
    )
  }

  /** What is not urgent and new waits: most attempts end before it is their turn, and then it costs no call of its own. */
  private isReady(notes: AttemptNotes, now: number): boolean {
    return notes.isUrgent || now - notes.changedAt >= INTERVAL_MS / 2
  }

  private write(): void {
    if (this.isWriting) return
    const now = this.options.clock.monotonic()
    const writing: AttemptNotes[] = []
    const notes: (LeaseRef & Note)[] = []
    for (const each of this.changes) {
      if (notes.length >= NOTES_MAX) break
      if (!this.isReady(each, now)) continue
      this.changes.delete(each)
      const note = each.take()
      if (note === null) continue
      each.writtenAt = now
      writing.push(each)
      notes.push(note)
    }
    if (notes.length === 0) {
      this.arm()
      return
    }
    this.isWriting = true
    this.options.backend.ask('job.note', { notes }).then(
      ({ verdicts }) => this.written(writing, verdicts),
      (error: HoldfastError) => this.failed(writing, error),
    )
  }

  private written(writing: readonly AttemptNotes[], verdicts: readonly Verdict[]): void {
    writing.forEach((notes, index) => {
      if (verdicts[index] === 'applied') notes.stored()
      else notes.refused(noteLost(notes.lease.id))
    })
    this.next()
  }

  private failed(writing: readonly AttemptNotes[], error: HoldfastError): void {
    const isFinal = !error.retryable
    this.isWriting = false
    for (const notes of writing) notes.failed(error, isFinal)
    if (error.code === 'CLOSED') return
    this.options.warn({ code: error.code, err: error.message }, 'progress and log lines of jobs could not be stored')
    this.next()
  }

  private next(): void {
    this.isWriting = false
    for (const notes of this.changes) {
      if (!notes.isUrgent) continue
      this.gather()
      return
    }
    this.arm()
  }
}

const noteLost = (id: string): HoldfastError =>
  new HoldfastError('LEASE_LOST', `the lease of ${id} is gone; what its handler said was not stored`, {
    details: { jobId: id },
  })
