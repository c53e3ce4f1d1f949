/**
 * Hints that jobs have ended, of the lanes in which somebody of this client waits for results. A busy lane gives many that are about
 * the jobs of others: looks that find nothing become rarer, so that one who waits costs a busy store little.
 */
import type { Backend } from './backends/backend.ts'
import type { Clock } from './clock.ts'
import type { JobId } from './job.ts'

const GAP_MIN_MS = 20
const GAP_MAX_MS = 250

interface LaneHints {
  waiters: number
  gapMs: number
  /** When the last look by a hint is or was due. */
  dueAt: number
  readonly stop: () => void
}

export interface ResultHintsOptions {
  readonly backend: Pick<Backend, 'awaitEnds'>
  readonly clock: Clock
  /** A look at those who wait for jobs of this lane is worth it at this monotonic time. */
  readonly onHint: (lane: string, at: number) => void
}

const laneOf = (id: JobId): string => id.slice(0, id.indexOf('/'))

export class ResultHints {
  private readonly options: ResultHintsOptions
  private readonly lanes = new Map<string, LaneHints>()

  constructor(options: ResultHintsOptions) {
    this.options = options
  }

  add(id: JobId): void {
    const lane = laneOf(id)
    const known = this.lanes.get(lane)
    if (known !== undefined) {
      known.waiters += 1
      return
    }
    const stop = this.options.backend.awaitEnds(lane, () => this.heard(lane))
    this.lanes.set(lane, { waiters: 1, gapMs: GAP_MIN_MS, dueAt: Number.NEGATIVE_INFINITY, stop })
  }

  remove(id: JobId): void {
    const lane = laneOf(id)
    const hints = this.lanes.get(lane)
    if (hints === undefined) return
    hints.waiters -= 1
    if (hints.waiters > 0) return
    hints.stop()
    this.lanes.delete(lane)
  }

  /** Somebody waited for this one: hints are worth following at once again. */
  ended(id: JobId): void {
    const hints = this.lanes.get(laneOf(id))
    if (hints !== undefined) hints.gapMs = GAP_MIN_MS
  }

  close(): void {
    for (const { stop } of this.lanes.values()) stop()
    this.lanes.clear()
  }

  private heard(lane: string): void {
    const hints = this.lanes.get(lane)
    const now = this.options.clock.monotonic()
    if (hints === undefined || hints.dueAt > now) return
    hints.dueAt = Math.max(now, hints.dueAt + hints.gapMs)
    hints.gapMs = Math.min(GAP_MAX_MS, hints.gapMs * 2)
    this.options.onHint(lane, hints.dueAt)
  }
}
