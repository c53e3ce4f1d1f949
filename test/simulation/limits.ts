/**
 * Limits of lanes in a simulated system: how many jobs may run at once, and how many of one concurrency key. Drawn from a stream of their own,
 * so that they change nothing else about a seed, and judged from the facts alone.
 */
import { collect, type Violation } from './checkers.ts'
import type { Fact, Run } from './history.ts'
import { isAccepted, replay } from './ledger.ts'
import { SeededRandom } from './random.ts'

export interface SimulatedLimits {
  readonly lane: string
  readonly maxInFlight: number | null
  readonly maxPerKey: number | null
}

const STREAM = 2 ** 33

/** null: nothing is limited, as in most seeds. */
export function planLimits(seed: number, lanes: readonly string[]): SimulatedLimits | null {
  const random = new SeededRandom(seed + STREAM)
  if (!random.chance(0.25)) return null
  const what = random.pick(['both', 'lane', 'key'] as const)
  return {
    lane: random.pick(lanes),
    maxInFlight: what === 'key' ? null : random.integer(1, 4),
    maxPerKey: what === 'lane' ? null : random.integer(1, 2),
  }
}

/** The concurrency key of the job that a call asks for: some have none. */
export function concurrencyKeyOf(ref: string | null): string | null {
  const number = Number(ref?.slice(1))
  return number % 4 === 3 ? null : `tenant-${number % 4}`
}

const ends = (fact: Fact): boolean =>
  (fact.kind === 'settle' && isAccepted(fact)) || (fact.kind === 'cancel' && fact.outcome === 'cancelled')

/** I15: never more leases than the limits of a lane allow, whoever holds them; one that ran out counts until it was reaped. */
export function checkLimits(run: Run, { lane, maxInFlight, maxPerKey }: SimulatedLimits): Violation[] {
  return collect('I15', (report) => {
    const keys = new Map<string, string | null>()
    const running = new Set<string>()
    replay(run.facts, (fact, before) => {
      if (fact.kind === 'enqueue' && fact.lane === lane) keys.set(fact.job, concurrencyKeyOf(fact.ref))
      if (ends(fact)) running.delete(fact.job)
      if (fact.kind !== 'grant' || fact.token === before.held || !keys.has(fact.job)) return
      running.add(fact.job)
      if (maxInFlight !== null && running.size > maxInFlight)
        report(fact.at, fact.job, `${running.size} run at once in ${lane}; at most ${maxInFlight} may`)
      const key = keys.get(fact.job) ?? null
      const alike = [...running].filter((job) => keys.get(job) === key).length
      if (maxPerKey !== null && key !== null && alike > maxPerKey)
        report(fact.at, fact.job, `${alike} of ${key} run at once; at most ${maxPerKey} may`)
    })
  })
}
