/** Whether one worker of this process can get at jobs, judged from what it knows of itself. Pure. */
import type { PulseReading } from './actors/pulse.ts'

/** One worker of this process, as `health()` tells of it. */
export interface WorkerHealth {
  readonly workerId: string
  readonly ok: boolean
  /** What is wrong, a sentence each. */
  readonly problems: readonly string[]
  /** Milliseconds since the store answered a claim; null: it has not yet. A worker whose slots are all taken does not claim. */
  readonly lastClaimMs: number | null
  readonly failuresInARow: number
  readonly lastError: string | null
  readonly slots: number
  readonly running: number
  /** Handlers that could not be stopped, were given up, and still run. */
  readonly lostSlots: number
  /** The longest standstill of the main loop within the last minute; 0: none of a second or more. */
  readonly blockedMs: number
  readonly isStopping: boolean
}

export interface WorkerFacts extends PulseReading {
  readonly workerId: string
  readonly slots: number
  readonly running: number
  readonly lostSlots: number
  readonly isStopping: boolean
  /** Why it has given up; null: it has not. */
  readonly fatal: Error | null
  /** How long leases are kept while the main loop stands still. */
  readonly keptMs: number
  /** A worker with a free slot that has not moved for so long never will. */
  readonly quietMaxMs: number
}

export function judgeWorker(facts: WorkerFacts): WorkerHealth {
  const { workerId, slots, running, lostSlots, isStopping, lastClaimMs, failuresInARow, lastError, blockedMs } = facts
  const problems = problemsOf(facts)
  return {
    workerId,
    ok: problems.length === 0,
    problems,
    lastClaimMs: lastClaimMs === null ? null : Math.round(lastClaimMs),
    failuresInARow,
    lastError: lastError?.message ?? null,
    slots,
    running,
    lostSlots,
    blockedMs: Math.round(blockedMs),
    isStopping,
  }
}

function problemsOf(facts: WorkerFacts): readonly string[] {
  const { slots, running, isStopping, fatal, keptMs, blockedMs, quietMs, quietMaxMs } = facts
  if (fatal !== null) return [`it has given up: ${fatal.message}`]
  const problems: string[] = []
  if (facts.failuresInARow > 0) problems.push(failing(facts))
  else if (facts.lastClaimMs === null && !isStopping) problems.push('no claim of it has been answered yet')
  // Whoever has nothing to claim for says nothing.
  if (!isStopping && running < slots && quietMs !== null && quietMs > quietMaxMs)
    problems.push(`it has a free slot and has not claimed for ${seconds(quietMs)}`)
  if (blockedMs >= keptMs)
    problems.push(`the main loop stood still for ${seconds(blockedMs)}, longer than its leases are kept`)
  return problems
}

function failing({ failuresInARow, lastError, lastClaimMs }: WorkerFacts): string {
  const times = failuresInARow === 1 ? 'its last claim' : `its last ${failuresInARow} claims`
  const since =
    lastClaimMs === null ? 'none was answered before' : `the last that worked was ${seconds(lastClaimMs)} ago`
  return `${times} failed: ${lastError?.message ?? 'for no known reason'} (${since})`
}

const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`
