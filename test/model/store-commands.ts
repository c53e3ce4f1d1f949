/** Commands to a store, made up by fast-check: what is asked depends on what was granted before, so each is a step on a pair of stores. */
import fc from 'fast-check'
import type { Claim, Note, ReapDecision, Settlement } from '#dist/src/backends/protocol/index.js'
import { JOB_STATES, type JobDefinition } from '#dist/src/job.js'
import { beatOf } from '../support/protocol.ts'
import type { Lease, Pair } from './store-pair.ts'

export type Command = (pair: Pair) => Promise<void>

const pick = <T>(items: readonly T[], index: number): T | undefined => items[index % Math.max(1, items.length)]
const keepMs = fc.constantFrom<(number | null)[]>(null, null, 0, 100)
const index = fc.nat(1_000)
const failure = (code: string) => ({ code, message: `failed with ${code}`, name: 'Error' })
const retry = { kind: 'fixed', attempts: 4, baseMs: 50, capMs: 50, jitter: 0 } as const

const PLAIN: Omit<JobDefinition, 'id' | 'lane' | 'runAt' | 'deadlineAt'> = {
  type: 'send',
  payload: '',
  priority: 0,
  delayMs: 0,
  timeoutMs: null,
  maxAttempts: 7,
  maxAttemptsFixed: false,
  retry: null,
  maxCrashes: 3,
  idempotencyKey: null,
  concurrencyKey: null,
  metadata: null,
  traceId: null,
  keepResultMs: null,
  replayOf: null,
}

const definition = fc.record({
  lane: fc.constantFrom('a', 'a', 'b', 'b', 'c'),
  idempotencyKey: fc.constantFrom(null, null, 'k1', 'key of ü'),
  concurrencyKey: fc.constantFrom(null, null, 'tenant', 'tenant', 'ü'),
  priority: fc.constantFrom(0, 0, 0, -1, 1),
  delayMs: fc.constantFrom(0, 0, 0, 50, 500),
  runAtIn: fc.constantFrom(null, null, null, null, -10, 70),
  deadlineIn: fc.constantFrom(null, null, null, -1, 60, 600),
  payload: fc.constantFrom<(string | Uint8Array)[]>('', '{"n":"ü"}', 'null', new Uint8Array([0, 255, 7])),
  retry: fc.constantFrom(null, retry),
  timeoutMs: fc.constantFrom(null, 1_000),
  maxAttempts: fc.constantFrom(7, 4),
  maxAttemptsFixed: fc.boolean(),
  traceId: fc.constantFrom(null, 'trace'),
  keepResultMs: fc.constantFrom(null, 5),
  metadata: fc.constantFrom(null, { tenant: 'ä', deep: { x: [1, null] } }),
  again: fc.nat(9),
  target: index,
})

const enqueue = fc.array(definition, { minLength: 1, maxLength: 4 }).map(
  (items): Command =>
    async (pair) => {
      const jobs = items.map(({ runAtIn, deadlineIn, again, target, lane: wanted, ...rest }): JobDefinition => {
        const known = again === 0 ? pick(pair.ids, target) : undefined
        const id = known ?? `${wanted}/${pair.ids.length}`
        const lane = id.slice(0, id.indexOf('/'))
        pair.ids.push(id)
        const now = pair.clock.now()
        const runAt = runAtIn === null ? null : now + runAtIn
        return { ...PLAIN, ...rest, id, lane, runAt, deadlineAt: deadlineIn === null ? null : now + deadlineIn }
      })
      await pair.send('job.enqueue', { jobs })
    },
)

/** Many plain jobs at once, and some of the first of them cancelled: the front of a lane has gaps then. */
const burst = fc.record({ lane: fc.constantFrom('a', 'b'), count: fc.integer({ min: 3, max: 8 }), keepMs }).map(
  ({ lane, count, keepMs }): Command =>
    async (pair) => {
      const jobs = Array.from({ length: count }, (_, index): JobDefinition => {
        const id = `${lane}/${pair.ids.length + index}`
        return { ...PLAIN, id, lane, runAt: null, deadlineAt: null }
      })
      const ids = jobs.map(({ id }) => id)
      pair.ids.push(...ids)
      await pair.send('job.enqueue', { jobs })
      await pair.send('job.cancel', { ids: ids.slice(0, count / 3), force: false, keepMs: pair.keep(keepMs) })
    },
)

/** What a handler might say, as its worker would send it: some lines again, then new ones, no more than the job keeps. */
const said = fc.record({
  progress: fc.constantFrom(null, '0.5', ''),
  again: fc.integer({ min: 0, max: 2 }),
  fresh: fc.integer({ min: 0, max: 4 }),
})
const KEEP_LINES = 3
const linesOf = new WeakMap<Pair, Map<string, number>>()

function noteOf(
  pair: Pair,
  token: string,
  { progress, again, fresh }: { progress: string | null; again: number; fresh: number },
): Note {
  const counts = linesOf.get(pair) ?? new Map<string, number>()
  linesOf.set(pair, counts)
  const before = counts.get(token) ?? 0
  counts.set(token, before + fresh)
  const numbers = Array.from({ length: again + fresh }, (_, index) => before - again + 1 + index)
  const lines = numbers.filter((number) => number > 0).slice(-KEEP_LINES)
  return {
    progress,
    lines: lines.map((number) => ({ number, text: `{"msg":"\u2028 ${number}"}` })),
    keepLines: KEEP_LINES,
  }
}

const settlement = fc
  .record({
    kind: fc.constantFrom('complete', 'complete', 'retry', 'dead', 'cancel', 'release', 'requeue'),
    target: index,
    keepMs,
    output: fc.constantFrom<(string | Uint8Array | null)[]>(null, '"out"', new Uint8Array([1, 0])),
    keepOutputMs: keepMs,
    durationMs: fc.constantFrom(0, 12.5),
    delayMs: fc.constantFrom(0, 50),
    code: fc.constantFrom('HANDLER_ERROR', 'PANIC', 'LEASE_EXPIRED'),
    crashes: fc.nat(3),
    started: fc.boolean(),
    isRecent: fc.boolean(),
    last: fc.option(said),
  })
  .map((wish) => (pair: Pair): Settlement | null => {
    const lease = wish.isRecent ? pair.leases.at(-1 - (wish.target % 4)) : pick(pair.leases, wish.target)
    if (lease === undefined) return null
    const note = wish.last === null ? {} : { note: noteOf(pair, lease.token, wish.last) }
    const base = { ...lease, ...note, durationMs: wish.durationMs, keepMs: pair.keep(wish.keepMs) }
    const { crashes, code } = wish
    switch (wish.kind) {
      case 'complete':
        return { ...base, kind: 'complete', output: wish.output, keepOutputMs: wish.keepOutputMs }
      case 'retry':
        return { ...base, kind: 'retry', delayMs: wish.delayMs, failure: failure(code), crashes, retry, maxAttempts: 4 }
      case 'dead':
        return { ...base, kind: 'dead', code: 'MAX_ATTEMPTS_EXCEEDED', failure: failure(code), crashes }
      case 'cancel':
        return { ...base, kind: 'cancel', failure: failure('CANCELLED') }
      case 'release':
        return { ...base, kind: 'release', started: wish.started }
      default:
        return { ...base, kind: 'requeue', failure: failure('LEASE_EXPIRED'), crashes }
    }
  })

const turn = fc
  .record({
    settlements: fc.array(settlement, { maxLength: 3 }),
    claims: fc.constantFrom(0, 1, 1, 1, 2),
    lanes: fc.constantFrom(
      ['a'],
      ['a', 'b'],
      ['b', 'a'],
      ['none', 'b'],
      ['c'],
      ['none', 'a', 'b', 'c'],
      ['c', 'b', 'a'],
    ),
    limit: fc.constantFrom(1, 1, 2, 3, 5),
    workerId: fc.constantFrom('w1', 'w2'),
    leaseMs: fc.constantFrom(20, 1_000),
    keepDeadMs: keepMs,
    isResent: fc.nat(5),
  })
  .map(
    (wish): Command =>
      async (pair) => {
        const { workerId, lanes, limit, leaseMs, keepDeadMs } = wish
        const resend = wish.isResent === 0 && pair.lastClaim !== null
        const claims = Array.from({ length: wish.claims }, (): Claim => {
          if (resend && pair.lastClaim !== null) return pair.lastClaim
          pair.claims += 1
          return { workerId, nonce: `n${pair.claims}`, lanes, limit, leaseMs, keepDeadMs: pair.keep(keepDeadMs) }
        })
        pair.lastClaim = claims.at(-1) ?? pair.lastClaim
        const settlements = wish.settlements.flatMap((make) => make(pair) ?? [])
        const { grants } = await pair.send('job.turn', { settlements, claims, resend })
        for (const { id, token } of grants.flatMap(({ jobs }) => jobs)) pair.leases.push({ id, token })
      },
  )

const leaseRefs = (pair: Pair, targets: readonly number[]): Lease[] =>
  targets.flatMap((target) => pick([...pair.leases].reverse(), target) ?? [])
const targets = fc.array(index, { minLength: 1, maxLength: 3 })

const renew = fc.record({ targets, leaseMs: fc.constantFrom(20, 1_000) }).map(
  ({ targets, leaseMs }): Command =>
    async (pair) => {
      await pair.send('lease.renew', { leases: leaseRefs(pair, targets), leaseMs })
    },
)

const note = fc.record({ targets, notes: fc.array(said, { minLength: 3, maxLength: 3 }) }).map(
  ({ targets, notes }): Command =>
    async (pair) => {
      await pair.send('job.note', {
        notes: leaseRefs(pair, targets).flatMap((lease, index) => {
          const one = notes[index]
          return one === undefined ? [] : { ...lease, ...noteOf(pair, lease.token, one) }
        }),
      })
    },
)

const reap = fc.record({ settlements: fc.array(settlement, { maxLength: 3 }), isHonest: fc.boolean() }).map(
  ({ settlements, isHonest }): Command =>
    async (pair) => {
      const decisions = settlements.flatMap((make) => {
        const made = make(pair)
        if (made === null || made.kind === 'complete') return []
        // Whoever reaps has nothing to say for the handler.
        const { note: _, ...decision } = made
        return decision
      })
      const { expired } = await pair.send('lease.reap', { decisions, limit: 1_000 })
      if (!isHonest) return
      const requeued = expired.map(({ id, token, crashes, cancelRequested }): ReapDecision => {
        const base = { id, token, durationMs: 0, keepMs: pair.keep(null), failure: failure('LEASE_EXPIRED') }
        return cancelRequested ? { ...base, kind: 'cancel' } : { ...base, kind: 'requeue', crashes: crashes + 1 }
      })
      await pair.send('lease.reap', { decisions: requeued, limit: 1_000 })
    },
)

const idsOf = (pair: Pair, targets: readonly number[]): string[] =>
  // Most of the old ones are gone, or running: every other one is of the latest.
  targets.map((target) => pick(target % 2 === 0 ? pair.ids : pair.ids.slice(-5), target >> 1) ?? 'a/none')

const cancel = fc.record({ targets, force: fc.boolean(), keepMs }).map(
  ({ targets, force, keepMs }): Command =>
    async (pair) => {
      await pair.send('job.cancel', { ids: idsOf(pair, targets), force, keepMs: pair.keep(keepMs) })
    },
)

const promote = targets.map(
  (targets): Command =>
    async (pair) => {
      await pair.send('job.promote', { ids: idsOf(pair, targets) })
    },
)

const pause = fc.record({ lane: fc.constantFrom('a', 'b', 'c'), paused: fc.boolean() })
const rate = (perMs: number, burst: number) =>
  fc.constantFrom(null, { limit: 3, perMs, burst }, { limit: 2, perMs, burst: 1 })
const limits = fc.record(
  {
    lane: fc.constantFrom('a', 'a', 'b'),
    maxInFlight: fc.constantFrom(null, 1, 2),
    rate: rate(100, 2),
    maxPerKey: fc.constantFrom(null, 1, 1, 2),
    enqueueRate: fc.constantFrom(null, null, { limit: 4, perMs: 200, burst: 4 }),
  },
  { requiredKeys: ['lane'] },
)
const policy = fc.oneof(pause, limits).map(
  (change): Command =>
    async (pair) => {
      await pair.send('queue.policy', { changes: [change], usage: [change.lane] })
    },
)

/** A lane under limits, with more jobs of one key than may run. */
const flood = fc
  .record({ lane: fc.constantFrom('a', 'b'), count: fc.integer({ min: 3, max: 8 }), max: fc.constantFrom(1, 2) })
  .map(
    ({ lane, count, max }): Command =>
      async (pair) => {
        const jobs = Array.from({ length: count }, (_, index): JobDefinition => {
          const id = `${lane}/${pair.ids.length + index}`
          return {
            ...PLAIN,
            id,
            lane,
            runAt: null,
            deadlineAt: null,
            concurrencyKey: index < count - 1 ? 'tenant' : null,
          }
        })
        pair.ids.push(...jobs.map(({ id }) => id))
        await pair.send('queue.policy', { changes: [{ lane, maxPerKey: max }] })
        await pair.send('job.enqueue', { jobs })
      },
  )

const count = fc.constantFrom(null, null, 0, 1, 3)
const counts = fc.record({ completed: count, cancelled: count, dlq: count })
const keepCounts = fc.record({ all: counts, lanes: fc.record({ a: counts, none: counts }, { requiredKeys: [] }) })

const maintain = fc.record({ keepDeadMs: keepMs, ofA: keepMs, keepCounts, wants: fc.nat(5) }).map(
  ({ keepDeadMs, ofA, keepCounts, wants }): Command =>
    async (pair) => {
      const request = { limit: 1_000, keepDeadMs: pair.keep(keepDeadMs) }
      if (wants === 0) await pair.send('store.maintain', { ...request, keepCounts })
      else if (wants === 1) await pair.send('store.maintain', { ...request, keepDeadMsOf: { a: pair.keep(ofA) } })
      else await pair.send('store.maintain', request)
    },
)

const ahead = fc.record({ targets, limit: fc.constantFrom(1, 2, 1_000) }).map(
  ({ targets, limit }): Command =>
    async (pair) => {
      await pair.send('job.ahead', { ids: idsOf(pair, targets), limit })
    },
)

const workerIds = fc.uniqueArray(fc.constantFrom('w1', 'w2', 'ü'), { maxLength: 2 })
const workers = fc.record({ present: workerIds, gone: workerIds, running: fc.nat(3) }).map(
  ({ present, gone, running }): Command =>
    async (pair) => {
      const beats = present
        .filter((id) => !gone.includes(id))
        .map((id) => beatOf(id, { running, types: ['send', 'ü'] }))
      await pair.send('worker.beat', { workers: beats, gone, forgetAfterMs: 5_000 })
      await pair.send('worker.list', { forgetAfterMs: 5_000, limit: 10 })
      await pair.send('worker.list', { forgetAfterMs: 100, limit: 10 })
    },
)

const advance = fc.constantFrom(1, 30, 60, 110, 2_000, -40).map(
  (ms): Command =>
    async (pair) => {
      pair.clock.advance(ms)
    },
)

const command = fc.oneof(
  { weight: 5, arbitrary: enqueue },
  { weight: 1, arbitrary: burst },
  { weight: 9, arbitrary: turn },
  { weight: 1, arbitrary: renew },
  { weight: 2, arbitrary: note },
  { weight: 2, arbitrary: reap },
  { weight: 2, arbitrary: cancel },
  { weight: 1, arbitrary: promote },
  { weight: 2, arbitrary: policy },
  { weight: 1, arbitrary: flood },
  { weight: 2, arbitrary: maintain },
  { weight: 1, arbitrary: ahead },
  { weight: 1, arbitrary: workers },
  { weight: 4, arbitrary: advance },
)

export interface ModelRun {
  readonly commands: readonly Command[]
  readonly isForgetful: boolean
}

export const modelRun: fc.Arbitrary<ModelRun> = fc
  .record({
    commands: fc.array(command, { minLength: 20, maxLength: 60, size: 'max' }),
    isForgetful: fc.boolean(),
  })
  // What failed is told by the pair, call by call; the code of the commands says nothing.
  .map((run) => ({ ...run, [fc.toStringMethod]: () => `${run.commands.length} commands` }))

/** Runs the commands one by one, compares all there is, and adds the states that jobs are in. */
export async function play({ commands }: ModelRun, pair: Pair, seen: Set<string>): Promise<void> {
  for (const run of commands) await run(pair)
  await pair.compareAll()
  for (const { counts } of (await pair.send('queue.stats', { lanes: null })).lanes)
    for (const [state, count] of Object.entries(counts)) if (count > 0) seen.add(state)
}

/** Guards the generator: runs that never get anywhere would agree on everything. */
export const ALL_STATES = JOB_STATES.filter((state) => state !== 'waiting').sort()

const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 31)

export const MODEL_OPTIONS = {
  numRuns: Number(process.env.HOLDFAST_MODEL_RUNS ?? 150),
  seed,
  // A planted bug need only be found; shrinking it would take a minute.
  endOnFailure: process.env.HOLDFAST_DIST !== undefined,
}

export const MODEL_TIMEOUT_MS = 30_000 + MODEL_OPTIONS.numRuns * 1_000
