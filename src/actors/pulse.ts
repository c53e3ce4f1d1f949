/**
 * What a worker knows of its own claiming: when it last asked the store for jobs, when it was last answered, what went wrong since, and
 * how long its main loop stood still. The dispatcher writes it down, `health()` reads it.
 */
import type { HoldfastError } from '../errors.ts'

/** A standstill is told for this long. */
const BLOCKED_TOLD_MS = 60_000

export interface PulseReading {
  /** Milliseconds since a claim was sent or answered; null: none was sent yet. */
  readonly quietMs: number | null
  /** Milliseconds since a claim was answered; null: none was yet. */
  readonly lastClaimMs: number | null
  readonly failuresInARow: number
  readonly lastError: HoldfastError | null
  /** The longest standstill of the main loop that ended within the last minute; 0: none. */
  readonly blockedMs: number
}

export class Pulse {
  private readonly monotonic: () => number
  private movedAt: number | null = null
  private answeredAt: number | null = null
  private failures = 0
  private error: HoldfastError | null = null
  private blocked: { readonly at: number; readonly ms: number } | null = null

  constructor(monotonic: () => number) {
    this.monotonic = monotonic
  }

  /** A claim was sent. */
  sent(): void {
    this.movedAt = this.monotonic()
  }

  /** A claim was answered, or could not be. */
  ended(error: HoldfastError | null): void {
    const now = this.monotonic()
    this.movedAt = now
    this.error = error
    if (error === null) this.answeredAt = now
    this.failures = error === null ? 0 : this.failures + 1
  }

  stoodStill(ms: number): void {
    const { blockedMs } = this.read()
    if (ms >= blockedMs) this.blocked = { at: this.monotonic(), ms }
  }

  read(): PulseReading {
    const now = this.monotonic()
    const { movedAt, answeredAt, blocked } = this
    return {
      quietMs: movedAt === null ? null : now - movedAt,
      lastClaimMs: answeredAt === null ? null : now - answeredAt,
      failuresInARow: this.failures,
      lastError: this.error,
      blockedMs: blocked === null || now - blocked.at > BLOCKED_TOLD_MS ? 0 : blocked.ms,
    }
  }
}
