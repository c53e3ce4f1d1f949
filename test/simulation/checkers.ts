/**
 * The invariants as pure functions from a run to its violations. An empty list is a clean run; every violation names the
 * invariant, the job and the moment, and says what was seen.
 */
import { isTerminal, type JobId } from '#dist/src/job.js'
import { type DumpedJob, type Effect, epochOf, type Fact, type FactOf, type Run } from './history.ts'
import { isAccepted, replay, type Situation } from './ledger.ts'

export interface Violation {
  readonly invariant: string
  readonly job: JobId
  readonly at: number
  readonly message: string
}

type Report = (at: number, job: JobId, message: string) => void

export function collect(invariant: string, check: (report: Report) => void): Violation[] {
  const violations: Violation[] = []
  check((at, job, message) => violations.push({ invariant, job, at, message }))
  return violations
}

const endOf = (run: Run): number => run.facts.at(-1)?.at ?? 0

/** I1: no accepted job is lost, none appears that nobody asked for, and after a drain every one has ended. */
export function checkNoneLost(run: Run, options: { readonly drained: boolean } = { drained: true }): Violation[] {
  return collect('I1', (report) => {
    const kept = new Map(run.dump.map((job) => [job.id, job]))
    for (const { status, id, ref } of run.produced) {
      if (status !== 'ok' || id === null) continue
      const job = kept.get(id)
      if (job === undefined) {
        if (run.pruned?.has(id) !== true) report(endOf(run), id, `accepted as ${ref} and absent from the store`)
      } else if (options.drained && !isTerminal(job.state)) {
        report(endOf(run), id, `still ${job.state} after the drain`)
      }
    }
    const calls = new Map(run.produced.map((call) => [call.ref, call]))
    for (const fact of run.facts) {
      if (fact.kind !== 'enqueue' || fact.outcome !== 'created' || fact.ref === null) continue
      const call = calls.get(fact.ref)
      if (call === undefined) report(fact.at, fact.job, `created for ${fact.ref}, which nobody asked for`)
      else if (call.status === 'failed') report(fact.at, fact.job, `created, but ${fact.ref} was told that it failed`)
    }
    const created = new Set(run.facts.filter((fact) => fact.kind === 'enqueue').map((fact) => fact.job))
    for (const effect of run.effects) {
      if (!created.has(effect.job)) report(effect.at, effect.job, 'a handler ran for a job that was never enqueued')
    }
  })
}

/** I2: at most one valid lease. A lease ends by its own settlement, by force, or by expiry on the store's clock. */
export function checkOneLease(run: Run): Violation[] {
  return collect('I2', (report) => {
    replay(run.facts, (fact, before) => {
      const isUnexpired = before.held !== null && fact.storeNow < before.expiresAt
      if (!isUnexpired) return
      if (fact.kind === 'grant' && fact.token !== before.held) {
        report(fact.at, fact.job, `${fact.token} granted while ${before.held} is valid until ${before.expiresAt}`)
      }
      if (fact.kind === 'settle' && fact.via === 'reap' && isAccepted(fact)) {
        report(fact.at, fact.job, `${before.held} reaped ${before.expiresAt - fact.storeNow} ms before its expiry`)
      }
    })
  })
}

/** I3: no token is granted twice, and the epochs of a job grow. */
export function checkTokensUnique(run: Run): Violation[] {
  return collect('I3', (report) => {
    replay(run.facts, (fact, before) => {
      if (fact.kind !== 'grant') return
      if (fact.token === before.held) {
        if (!fact.resend) report(fact.at, fact.job, `${fact.token} given to a claim that was not sent again`)
        return
      }
      if (before.granted.has(fact.token)) report(fact.at, fact.job, `${fact.token} granted a second time`)
      const epoch = epochOf(fact.token)
      if (!(epoch > before.lastEpoch)) report(fact.at, fact.job, `epoch ${epoch} after epoch ${before.lastEpoch}`)
    })
  })
}

function staleness(fact: FactOf<'settle' | 'renew' | 'progress'>, before: Readonly<Situation>): string | null {
  const verdict = fact.kind === 'renew' ? fact.outcome : fact.verdict
  const isHolder = before.held === fact.token
  if (isAccepted(fact) && !isHolder)
    return `${verdict} for ${fact.token} while ${before.held ?? 'nobody'} holds the job`
  if (verdict === 'alreadyApplied' && fact.kind === 'settle' && before.applied.get(fact.token) !== fact.how) {
    return `alreadyApplied for a ${fact.how} by ${fact.token} that was never applied`
  }
  // A reaper is refused while the lease runs; everybody else must be heard as long as nobody else was given the job.
  const isEarlyReap = fact.kind === 'settle' && fact.via === 'reap' && fact.storeNow < before.expiresAt
  if (isHolder && !isAccepted(fact) && !isEarlyReap) return `${verdict} for ${fact.token}, which holds the job`
  return null
}

/** I4: a stale token cannot write, a valid one can, and a write is called applied only if it was. */
export function checkFencing(run: Run): Violation[] {
  return collect('I4', (report) => {
    replay(run.facts, (fact, before) => {
      if (fact.kind !== 'settle' && fact.kind !== 'renew' && fact.kind !== 'progress') return
      const problem = staleness(fact, before)
      if (problem !== null) report(fact.at, fact.job, `${fact.kind}: ${problem}`)
    })
  })
}

function illegality(fact: Fact, { phase, charged, cancelRequested }: Readonly<Situation>): string | null {
  switch (fact.kind) {
    case 'grant':
      if (phase !== 'waiting') return `granted while ${phase}`
      if (cancelRequested) return 'granted after its cancellation was requested'
      return fact.attempt === charged + 1 ? null : `attempt ${fact.attempt} granted after ${charged} charged`
    case 'settle':
      return isAccepted(fact) && phase !== 'running' ? `${fact.how} ${fact.verdict} while ${phase}` : null
    case 'cancel':
      if (fact.outcome === 'cancelled' && (phase === 'terminal' || phase === 'absent'))
        return `cancelled while ${phase}`
      if (fact.outcome === 'cancelled' && phase === 'running' && !fact.force)
        return 'cancelled without force while running'
      return fact.outcome === 'requested' && phase !== 'running' ? `cancellation requested while ${phase}` : null
    case 'promote':
      return fact.outcome === 'promoted' && phase !== 'waiting' ? `promoted while ${phase}` : null
    case 'bury':
      return phase === 'waiting' ? null : `buried while ${phase}`
    default:
      return null
  }
}

/** Moves that time alone makes need no message: a delayed job falls due, a waiting one passes its deadline. */
function disagreement(job: DumpedJob, { phase, terminal, charged }: Readonly<Situation>): string | null {
  if (job.attempts !== charged) return `${job.attempts} attempts stored, ${charged} charged`
  if (phase === 'terminal')
    return job.state === terminal ? null : `stored as ${job.state} after it ended as ${terminal}`
  if (phase === 'running') return job.state === 'running' ? null : `stored as ${job.state} while its lease is held`
  return job.state === 'running' || job.state === 'completed'
    ? `stored as ${job.state} with no grant to explain it`
    : null
}

/** I5: only legal moves, terminal is final, and attempts are what was granted and charged. */
export function checkLifecycle(run: Run): Violation[] {
  return collect('I5', (report) => {
    const situations = replay(run.facts, (fact, before) => {
      const isRepeat = fact.kind === 'grant' && fact.token === before.held
      const problem = isRepeat ? null : illegality(fact, before)
      if (problem !== null) report(fact.at, fact.job, problem)
    })
    for (const job of run.dump) {
      const situation = situations.get(job.id)
      const problem = situation === undefined ? 'stored, but never enqueued' : disagreement(job, situation)
      if (problem !== null) report(endOf(run), job.id, problem)
    }
  })
}

export interface Punctuality {
  /** The store's time from which nothing disturbs the run and a slot is free. */
  readonly calmFrom: number
  readonly boundMs: number
}

/** I10: no start before its time or after its deadline on the store's clock; and, when calm, none later than the bound. */
export function checkPunctual(run: Run, calm: Punctuality | null = null): Violation[] {
  return collect('I10', (report) => {
    replay(run.facts, (fact, before) => {
      if (fact.kind !== 'grant' || fact.token === before.held) return
      const early = before.eligibleAt - fact.storeNow
      if (early > 0) report(fact.at, fact.job, `started ${early} ms early`)
      if (fact.storeNow >= before.deadlineAt)
        report(fact.at, fact.job, `started after its deadline ${before.deadlineAt}`)
      if (calm === null || fact.storeNow < calm.calmFrom) return
      const late = fact.storeNow - Math.max(before.eligibleAt, calm.calmFrom)
      if (late > calm.boundMs) report(fact.at, fact.job, `started ${late} ms late; the bound is ${calm.boundMs}`)
    })
  })
}

/** I12: one job per lane and key, and every caller is told the same id. */
export function checkOneJobPerKey(run: Run): Violation[] {
  return collect('I12', (report) => {
    const first = new Map<string, JobId>()
    const claim = (at: number, name: string, id: JobId, what: string): void => {
      const known = first.get(name)
      if (known === undefined) first.set(name, id)
      else if (known !== id && run.pruned?.has(known) !== true) report(at, id, `${what}; ${known} has its key already`)
    }
    const named = (lane: string, key: string): string => `${lane}\n${key}`
    for (const fact of run.facts) {
      if (fact.kind === 'enqueue' && fact.key !== null)
        claim(fact.at, named(fact.lane, fact.key), fact.result, fact.outcome)
    }
    for (const job of run.dump) {
      if (job.key !== null) claim(endOf(run), named(job.lane, job.key), job.id, 'stored')
    }
    for (const { key, lane, id, ref } of run.produced) {
      if (key !== null && id !== null) claim(endOf(run), named(lane, key), id, `told to ${ref}`)
    }
  })
}

/** I16: once the last fault has healed, everything that can run has ended by the deadline (the store's time). */
export function checkLiveness(run: Run, deadline: number): Violation[] {
  return collect('I16', (report) => {
    for (const { id, state, finishedAt } of run.dump) {
      if (!isTerminal(state)) report(endOf(run), id, `stuck in ${state}`)
      else if (finishedAt !== null && finishedAt > deadline) {
        report(endOf(run), id, `ended ${finishedAt - deadline} ms after the deadline`)
      }
    }
  })
}

function checkRuns(run: Run, report: Report): void {
  const granted = new Map<string, FactOf<'grant'>>()
  const nameOf = (job: JobId, epoch: number): string => `${job}\n${epoch}`
  for (const fact of run.facts) {
    if (fact.kind !== 'grant') continue
    // A claim sent again gives the same grant again; what counts is the first time.
    const name = nameOf(fact.job, epochOf(fact.token))
    if (!granted.has(name)) granted.set(name, fact)
  }
  const started = new Set<string>()
  for (const effect of run.effects) {
    if (effect.kind !== 'start') continue
    const name = nameOf(effect.job, effect.epoch)
    const grant = granted.get(name)
    if (grant === undefined || grant.at > effect.at)
      report(effect.at, effect.job, `a run of epoch ${effect.epoch} without its grant`)
    if (started.has(name)) report(effect.at, effect.job, `epoch ${effect.epoch} ran twice`)
    started.add(name)
    if (grant !== undefined && effect.attempt !== grant.attempt) {
      report(effect.at, effect.job, `ran as attempt ${effect.attempt} under the grant of attempt ${grant.attempt}`)
    }
  }
}

const runsOf = (effects: readonly Effect[]): Map<JobId, number> => {
  const runs = new Map<JobId, number>()
  for (const { kind, job } of effects) if (kind === 'start') runs.set(job, (runs.get(job) ?? 0) + 1)
  return runs
}

/** I19: every run is explained by a grant of its own, none goes over the budget, and without faults nothing runs twice. */
export function checkRunsExplained(
  run: Run,
  options: { readonly faultFree: boolean } = { faultFree: false },
): Violation[] {
  return collect('I19', (report) => {
    checkRuns(run, report)
    for (const fact of run.facts) {
      if (fact.kind === 'grant' && fact.attempt > fact.maxAttempts) {
        report(fact.at, fact.job, `attempt ${fact.attempt} of at most ${fact.maxAttempts}`)
      }
    }
    const runs = runsOf(run.effects)
    for (const [job, { retries, takenBack }] of replay(run.facts)) {
      const most = 1 + retries + (options.faultFree ? 0 : takenBack)
      const seen = runs.get(job) ?? 0
      if (seen > most) report(endOf(run), job, `${seen} runs where ${most} are explained`)
    }
  })
}

/** I19: while main loops stand still and nothing else goes wrong, no job is taken from a handler that runs, within its own time. */
export function checkNoneTaken(run: Run, isTimed: (job: JobId) => boolean): Violation[] {
  return collect('I19/taken', (report) => {
    const running = new Map<JobId, number>()
    for (const { kind, job, epoch, at } of run.effects) {
      const first = running.get(job)
      if (kind === 'end' && first === epoch) running.delete(job)
      if (kind !== 'start') continue
      if (first !== undefined && !isTimed(job)) report(at, job, `starts under ${epoch} while it runs under ${first}`)
      running.set(job, epoch)
    }
  })
}

/** I17: a paused lane gives nothing. */
export function checkPauses(run: Run): Violation[] {
  return collect('I17', (report) => {
    const paused = new Set<string>()
    const laneOf = new Map<JobId, string>()
    replay(run.facts, (fact, before) => {
      if (fact.kind === 'enqueue') laneOf.set(fact.job, fact.lane)
      if (fact.kind === 'policy' && fact.paused) paused.add(fact.lane)
      if (fact.kind === 'policy' && !fact.paused) paused.delete(fact.lane)
      const isNew = fact.kind === 'grant' && fact.token !== before.held
      if (isNew && paused.has(laneOf.get(fact.job) ?? '')) report(fact.at, fact.job, 'granted from a paused lane')
    })
  })
}

/**
 * Where answers are cut but nothing else goes wrong, a grant whose answer was lost is not left to expire: the claim is sent
 * again, is given the same grant, and every grant is run or given back.
 */
export function checkNoneOrphaned(run: Run): Violation[] {
  return collect('I19/orphan', (report) => {
    const used = new Set(run.effects.map(({ job, epoch }) => `${job}\n${epoch}`))
    for (const fact of run.facts) {
      if (fact.kind === 'settle' && fact.via === 'turn') used.add(`${fact.job}\n${epochOf(fact.token)}`)
    }
    for (const fact of run.facts) {
      if (fact.kind !== 'grant' || used.has(`${fact.job}\n${epochOf(fact.token)}`)) continue
      report(fact.at, fact.job, `${fact.token} was neither run nor given back`)
    }
  })
}

/** Beside the numbered ones: a job is completed only by the grant whose handler returned. */
export function checkOutcomesMatch(run: Run): Violation[] {
  return collect('I4/outcome', (report) => {
    const results = new Map<string, string>()
    for (const { kind, job, epoch, result } of run.effects) {
      if (kind === 'end' && result !== undefined) results.set(`${job}\n${epoch}`, result)
    }
    for (const fact of run.facts) {
      if (fact.kind !== 'settle' || fact.how !== 'complete' || fact.verdict !== 'applied') continue
      const result = results.get(`${fact.job}\n${epochOf(fact.token)}`)
      if (result !== 'returned') report(fact.at, fact.job, `completed by a run that ${result ?? 'never ended'}`)
    }
  })
}

/** All that hold at every moment, whatever the faults. */
export function checkSafety(run: Run): Violation[] {
  return [
    ...checkOneLease(run),
    ...checkTokensUnique(run),
    ...checkFencing(run),
    ...checkLifecycle(run),
    ...checkPunctual(run),
    ...checkOneJobPerKey(run),
    ...checkRunsExplained(run),
    ...checkPauses(run),
    ...checkOutcomesMatch(run),
  ]
}
