/**
 * What a seed means: how many processes and jobs, what the handlers do, which faults the network has and what befalls whom
 * when. Pure: the same seed gives the same scenario, which `system.ts` then runs.
 */
import { type Faults, NO_FAULTS } from './faulty-backend.ts'
import { planLimits, type SimulatedLimits } from './limits.ts'
import { SeededRandom } from './random.ts'

/** What a handler does in one attempt. */
export type Act =
  | { readonly kind: 'return' | 'throw' | 'permanent' }
  | { readonly kind: 'work' | 'workThenThrow' | 'progress'; readonly ms: number }
  /** Waits for its signal and obeys it. */
  | { readonly kind: 'untilSignal' }
  /** Works on whatever its signal says. */
  | { readonly kind: 'deaf'; readonly ms: number }

export interface PlannedJob {
  readonly ref: string
  readonly at: number
  readonly process: number
  readonly lane: string
  /** Index into the leases of types; null: of the type that has the lease of its worker. */
  readonly ownLease: number | null
  readonly key: string | null
  readonly priority: number
  readonly delayMs: number
  readonly deadlineInMs: number | null
  readonly timeoutMs: number | null
  readonly attempts: number
  /** What each attempt does; the last repeats. */
  readonly acts: readonly Act[]
}

export type Mishap =
  | {
      readonly kind: 'crash' | 'pause' | 'block' | 'stop'
      readonly at: number
      readonly process: number
      readonly forMs: number
    }
  | { readonly kind: 'wallJump'; readonly at: number; readonly process: number; readonly byMs: number }
  | { readonly kind: 'storeJump'; readonly at: number; readonly byMs: number }
  | { readonly kind: 'storeDown'; readonly at: number; readonly forMs: number }
  | { readonly kind: 'pauseLane'; readonly at: number; readonly lane: string; readonly forMs: number }
  | {
      readonly kind: 'cancel' | 'cancelByForce' | 'retryNow'
      readonly at: number
      readonly process: number
      readonly job: number
    }

export interface Scenario {
  readonly seed: number
  /** Calm: no faults at all. Cuts: answers are cut. Blocks: main loops stand still. Nothing else goes wrong then. Storm: everything. */
  readonly weather: 'calm' | 'cuts' | 'blocks' | 'storm'
  /** Slots of a worker, by process; each process has `workers` of them on one client. */
  readonly workers: number
  readonly slots: readonly number[]
  readonly lanes: readonly string[]
  readonly leaseMs: number
  /** Of types that have one of their own: shorter and longer ones. */
  readonly typeLeasesMs: readonly number[]
  readonly maxBlockedMs: number
  readonly pollMs: number
  readonly reapMs: number
  readonly killGraceMs: number
  readonly callDeadlineMs: number
  readonly maxCrashes: number
  readonly retryBaseMs: number
  readonly retryCapMs: number
  readonly limits: SimulatedLimits | null
  readonly jobs: readonly PlannedJob[]
  readonly faults: Faults
  readonly mishaps: readonly Mishap[]
  /** Faults end here; what follows is judged for liveness. */
  readonly healAt: number
}

function planAct(random: SeededRandom, leaseMs: number): Act {
  // In tenths of a lease, so that handlers of different workers often end at the same moment.
  const ms = (random.integer(1, 10) * leaseMs) / 10
  const point = random.next()
  if (point < 0.25) return { kind: 'return' }
  if (point < 0.5) return { kind: 'work', ms }
  if (point < 0.58) return { kind: 'work', ms: ms * 3 }
  if (point < 0.68) return { kind: 'throw' }
  if (point < 0.78) return { kind: 'workThenThrow', ms }
  if (point < 0.82) return { kind: 'permanent' }
  if (point < 0.92) return { kind: 'progress', ms }
  return point < 0.96 ? { kind: 'untilSignal' } : { kind: 'deaf', ms: ms * 3 }
}

interface JobLimits {
  readonly lanes: readonly string[]
  readonly leaseMs: number
  readonly processes: number
  readonly untilMs: number
  /** How many types have a lease of their own. */
  readonly types: number
}

function planJob(random: SeededRandom, index: number, limits: JobLimits): PlannedJob {
  const { lanes, leaseMs, processes, untilMs, types } = limits
  const acts = Array.from({ length: random.integer(1, 3) }, () => planAct(random, leaseMs))
  // Without a timeout a handler that waits for its signal would rightly keep its slot for ever.
  const needsTimeout = acts.some(({ kind }) => kind === 'untilSignal')
  return {
    ref: `r${index}`,
    at: random.chance(0.5) ? random.pick([0, 0, 0, 50]) : random.integer(0, untilMs),
    process: random.integer(0, processes - 1),
    lane: random.pick(lanes),
    ownLease: types === 0 || random.chance(0.4) ? null : random.integer(0, types - 1),
    key: random.chance(0.15) ? `k${random.integer(0, 3)}` : null,
    priority: random.integer(0, 2),
    delayMs: random.chance(0.3) ? random.integer(0, 2 * leaseMs) : 0,
    deadlineInMs: random.chance(0.08) ? random.integer(1, 4 * leaseMs) : null,
    timeoutMs: needsTimeout || random.chance(0.1) ? random.integer(1, 2 * leaseMs) : null,
    attempts: random.integer(1, 4),
    acts,
  }
}

function planFaults(random: SeededRandom, leaseMs: number, weather: Scenario['weather']): Faults {
  const quiet = { ...NO_FAULTS, delayMs: random.pick([1, 40]), dropHints: random.pick([0, 1]) }
  if (weather === 'calm' || weather === 'blocks') return quiet
  if (weather === 'cuts') return { ...quiet, cutReply: random.next() * 0.3 }
  const sometimes = (most: number): number => (random.chance(0.5) ? random.next() * most : 0)
  return {
    delayMs: random.pick([0, 1, 10, 100]),
    late: sometimes(0.1),
    lateMs: 3 * leaseMs,
    loseRequest: sometimes(0.1),
    refuse: sometimes(0.15),
    cutReply: sometimes(0.15),
    loseReply: sometimes(0.1),
    duplicate: sometimes(0.3),
    dropHints: random.pick([0, 0, 0.5, 1]),
  }
}

interface MishapLimits extends JobLimits {
  readonly jobs: number
  readonly weather: Scenario['weather']
}

function planMishap(random: SeededRandom, limits: MishapLimits): Mishap {
  const { leaseMs, untilMs, processes } = limits
  const at = random.integer(0, untilMs)
  const process = random.integer(0, processes - 1)
  const forMs = random.integer(1, 3 * leaseMs)
  const job = random.integer(0, limits.jobs - 1)
  const point = random.next()
  if (limits.weather === 'blocks') return { kind: 'block', at, process, forMs }
  if (point < 0.2) return { kind: 'crash', at, process, forMs }
  if (point < 0.3) return { kind: 'pause', at, process, forMs }
  // The main loop alone stands still; its threads go on.
  if (point < 0.4) return { kind: 'block', at, process, forMs }
  if (point < 0.5) return { kind: 'stop', at, process, forMs }
  if (point < 0.58) return { kind: 'wallJump', at, process, byMs: random.integer(-3_600_000, 3_600_000) }
  if (point < 0.64) return { kind: 'storeJump', at, byMs: random.integer(-2 * leaseMs, 2 * leaseMs) }
  if (point < 0.72) return { kind: 'storeDown', at, forMs }
  if (point < 0.77) return { kind: 'pauseLane', at, lane: random.pick(limits.lanes), forMs }
  return { kind: random.pick(['cancel', 'cancelByForce', 'retryNow'] as const), at, process, job }
}

export function planScenario(seed: number): Scenario {
  const random = new SeededRandom(seed)
  const weather = random.pick([
    'calm',
    'calm',
    'cuts',
    'blocks',
    ...Array.from({ length: 7 }, () => 'storm' as const),
  ] as const)
  const processes = random.integer(1, 4)
  // Where answers are cut, a lease must outlive several tries in a row: none may be lost by bad luck alone.
  const leaseMs = weather === 'cuts' ? 6_000 : random.pick([400, 1_000, 3_000])
  const untilMs = leaseMs * random.integer(1, weather === 'storm' || weather === 'blocks' ? 8 : 2)
  const lanes = random.chance(0.5) ? ['a'] : ['a', 'b']
  const typeLeasesMs = random.chance(0.5) ? [] : [leaseMs / 2, 3 * leaseMs]
  const limits = { lanes, leaseMs, processes, untilMs, types: typeLeasesMs.length }
  const jobs = random.integer(1, random.pick([3, 10, 40]))
  const mishaps = weather === 'storm' ? random.integer(0, 8) : weather === 'blocks' ? random.integer(1, 4) : 0
  return {
    seed,
    weather,
    // Turns are merged when two wait while a third is under way.
    workers: processes > 2 ? 1 : random.pick([1, 1, 2, 4]),
    slots: Array.from({ length: processes }, () => random.pick([1, 2, 4, 16])),
    lanes,
    leaseMs,
    typeLeasesMs,
    maxBlockedMs: weather === 'blocks' ? 3_600_000 : random.pick([0, leaseMs, 60_000, 60_000]),
    pollMs: random.integer(100, 1_000),
    reapMs: random.integer(200, 1_000),
    killGraceMs: random.integer(10, 300),
    callDeadlineMs: random.integer(200, 2_000),
    maxCrashes: random.integer(1, 6),
    retryBaseMs: random.integer(1, 300),
    retryCapMs: random.integer(300, 2_000),
    limits: planLimits(seed, lanes),
    jobs: Array.from({ length: jobs }, (_, index) => planJob(random, index, limits)),
    faults: planFaults(random, leaseMs, weather),
    mishaps: Array.from({ length: mishaps }, () => planMishap(random, { ...limits, jobs, weather })),
    healAt: untilMs,
  }
}

const longestAct = ({ acts, timeoutMs }: PlannedJob): number => {
  const times = acts.map((act) => ('ms' in act ? act.ms : 0))
  return Math.max(timeoutMs ?? 0, ...times)
}

/**
 * The time within which all must have ended after the faults: leases of the dead run out and are reaped, calls that hang reach
 * their deadline, retries wait their turn, and the work that is left runs, in the worst case in a single slot.
 */
export function livenessBoundMs(scenario: Scenario): number {
  const { reapMs, pollMs, retryCapMs, callDeadlineMs, killGraceMs, jobs, mishaps } = scenario
  const leaseMs = Math.max(scenario.leaseMs, ...scenario.typeLeasesMs)
  const setBack = mishaps.reduce(
    (sum, mishap) => sum + (mishap.kind === 'storeJump' ? Math.max(0, -mishap.byMs) : 0),
    0,
  )
  const work = jobs.reduce((sum, job) => sum + (longestAct(job) + killGraceMs + 20) * job.attempts, 0)
  const waits = 4 * (retryCapMs + 2 * pollMs)
  const delays = Math.max(...jobs.map(({ delayMs }) => delayMs))
  // A crash that nobody renews costs a lease, a look of the reaper, and one of the crashes that the job may have.
  const takeovers = 4 * (leaseMs + 2 * reapMs)
  return setBack + work + waits + delays + takeovers + 4 * callDeadlineMs + 3 * leaseMs
}
