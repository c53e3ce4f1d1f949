/**
 * The order in which the memory store hands out jobs, against the plainest model there is: sort what is due, take the first.
 * Jobs are delayed, promoted, cancelled, retried and released in between, which is what orders kept up to date get wrong.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MemoryStore } from '#dist/src/backends/memory/store.js'
import type { Reply, Settlement } from '#dist/src/backends/protocol/index.js'
import type { JobDefinition, JobId } from '#dist/src/job.js'

interface Plain {
  readonly id: JobId
  readonly sequence: number
  readonly priority: number
  runAt: number
  isWaiting: boolean
}

type Step =
  | { readonly kind: 'enqueue'; readonly delayMs: number; readonly priority: number }
  | { readonly kind: 'promote' | 'cancel'; readonly which: number }
  | { readonly kind: 'retry'; readonly which: number; readonly delayMs: number }
  | { readonly kind: 'release'; readonly which: number }
  | { readonly kind: 'claim'; readonly limit: number }
  | { readonly kind: 'pass'; readonly ms: number }

const which = fc.nat(20)
const delayMs = fc.integer({ min: 0, max: 30 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('enqueue' as const), delayMs, priority: fc.integer({ min: 0, max: 2 }) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('promote' as const, 'cancel' as const), which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('retry' as const), which, delayMs }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('release' as const), which }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const), limit: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 12 }) }) },
)

const LANE = 'l'
const POLICY = { kind: 'fixed', attempts: 99, baseMs: 0, capMs: 0, jitter: 0 } as const

function definition(id: JobId, delay: number, priority: number): JobDefinition {
  return {
    ...{ id, type: 't', lane: LANE, payload: '', priority, runAt: null, delayMs: delay, deadlineAt: null },
    ...{
      timeoutMs: null,
      maxAttempts: 99,
      maxAttemptsFixed: true,
      retry: null,
      maxCrashes: 99,
      idempotencyKey: null,
      concurrencyKey: null,
    },
    ...{ metadata: null, traceId: null, keepResultMs: null, replayOf: null },
  }
}

/** The store and the model side by side. */
class Pair {
  private now = 0
  private readonly store = new MemoryStore({ now: () => this.now, monotonic: () => this.now })
  private readonly jobs: Plain[] = []
  private readonly held = new Map<JobId, string>()
  private claims = 0

  apply(next: Step): void {
    if (next.kind === 'enqueue') this.enqueue(next.delayMs, next.priority)
    else if (next.kind === 'pass') this.now += next.ms
    else if (next.kind === 'claim') this.claim(next.limit)
    else if (next.kind === 'retry' || next.kind === 'release') this.putBack(next)
    else this.poke(next)
  }

  private enqueue(delay: number, priority: number): void {
    const id = `${LANE}/${this.jobs.length}`
    this.jobs.push({ id, sequence: this.jobs.length, priority, runAt: this.now + delay, isWaiting: true })
    this.store.handlers['job.enqueue']({ jobs: [definition(id, delay, priority)] })
  }

  private claim(limit: number): void {
    this.claims += 1
    const { grants } = this.turn([], limit)
    const due = this.jobs.filter((job) => job.isWaiting && job.runAt <= this.now)
    due.sort((a, b) => b.priority - a.priority || a.runAt - b.runAt || a.sequence - b.sequence)
    const taken = due.slice(0, limit)
    const given = grants[0]?.jobs ?? []
    expect(given.map(({ id }) => id)).toEqual(taken.map(({ id }) => id))
    for (const { id, token } of given) this.held.set(id, token)
    for (const job of taken) job.isWaiting = false
    const later = this.jobs.filter((job) => job.isWaiting && job.runAt > this.now).map((job) => job.runAt - this.now)
    expect(grants[0]?.dueInMs).toBe(later.length === 0 ? null : Math.min(...later))
    expect(grants[0]?.more).toBe(due.length > taken.length)
  }

  private turn(settlements: readonly Settlement[], limit: number): Reply<'job.turn'> {
    const claim = { workerId: 'w', nonce: `n${this.claims}`, lanes: [LANE], limit, leaseMs: 1e9, keepDeadMs: null }
    return this.store.handlers['job.turn']({ settlements, claims: limit === 0 ? [] : [claim], resend: false })
  }

  private putBack(next: Extract<Step, { kind: 'retry' | 'release' }>): void {
    const ids = [...this.held.keys()]
    const id = ids[next.which % Math.max(1, ids.length)]
    const job = this.jobs.find((candidate) => candidate.id === id)
    if (id === undefined || job === undefined) return
    const base = { id, token: this.held.get(id) ?? '', durationMs: 0, keepMs: null }
    const settlement: Settlement =
      next.kind === 'release'
        ? { ...base, kind: 'release', started: false }
        : {
            ...{ ...base, kind: 'retry', delayMs: next.delayMs, failure: { code: 'X', message: 'x' } },
            ...{ crashes: 0, retry: POLICY, maxAttempts: 99 },
          }
    expect(this.turn([settlement], 0).verdicts).toEqual(['applied'])
    this.held.delete(id)
    job.isWaiting = true
    if (next.kind === 'retry') job.runAt = this.now + next.delayMs
  }

  private poke({ kind, which: number }: Extract<Step, { kind: 'promote' | 'cancel' }>): void {
    const waiting = this.jobs.filter((job) => job.isWaiting)
    const job = waiting[number % Math.max(1, waiting.length)]
    if (job === undefined) return
    if (kind === 'cancel') {
      this.store.handlers['job.cancel']({ ids: [job.id], force: false, keepMs: null })
      job.isWaiting = false
      return
    }
    const { outcomes } = this.store.handlers['job.promote']({ ids: [job.id] })
    if (outcomes[0] === 'promoted') job.runAt = this.now
  }
}

test('29 jobs are handed out by priority, then time, then sequence, and none is passed over', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), (steps) => {
      const pair = new Pair()
      for (const next of steps) pair.apply(next)
    }),
    { numRuns: 3_000 },
  )
})
