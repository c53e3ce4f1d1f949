/** The SQLite store against the memory store: the same commands give the same replies and leave the same jobs. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MemoryStore } from '#dist/src/backends/memory/store.js'
import type { Claim, MessageType, ReapDecision, Reply, Request, Settlement } from '#dist/src/backends/protocol/index.js'
import type { SqliteStore } from '#dist/src/backends/sqlite/store.js'
import { JOB_STATES, type JobDefinition } from '#dist/src/job.js'
import { job, ManualClock, openStore } from './support.ts'

interface Lease {
  readonly id: string
  readonly token: string
}

/** Both stores, what was granted so far, and a comparison of every reply. */
class Pair {
  readonly clock = new ManualClock()
  readonly leases: Lease[] = []
  readonly ids: string[] = []
  lastClaim: Claim | null = null
  claims = 0
  private readonly memory = new MemoryStore(this.clock)
  private readonly sqlite: SqliteStore

  constructor(sqlite: (clock: ManualClock) => SqliteStore) {
    this.sqlite = sqlite(this.clock)
  }

  send<T extends MessageType>(type: T, request: Request<T>): Reply<T> {
    const handler = this.memory.handlers[type] as (request: Request<T>) => Reply<T>
    const expected = handler(request)
    const actual = this.sqlite.call(type, request)
    expect(normal(actual), `${type} ${JSON.stringify(request)}`).toEqual(normal(expected))
    return actual
  }

  compareAll(): void {
    const { ids } = this
    this.send('job.get', { ids })
    this.send('job.history', { ids })
    this.send('queue.stats', { lanes: null })
    this.send('queue.stats', { lanes: ['a', 'b', 'none'] })
    this.send('queue.policy', { changes: [] })
    this.send('lease.reap', { decisions: [], limit: 1_000 })
    for (const filter of [
      { lane: null, states: null },
      { lane: 'a', states: null },
      { lane: null, states: ['dlq' as const, 'queued' as const] },
      { lane: null, states: ['completed' as const] },
      { lane: 'b', states: ['cancelled' as const, 'running' as const, 'completed' as const] },
    ])
      expect(this.pages(this.sqlite.call.bind(this.sqlite), filter)).toEqual(this.pages(this.askMemory, filter))
  }

  private readonly askMemory = (_type: 'job.list', query: Request<'job.list'>): Reply<'job.list'> =>
    this.memory.handlers['job.list'](query)

  /** Follows the cursors, which are each store's own. */
  private pages(
    ask: (type: 'job.list', query: Request<'job.list'>) => Reply<'job.list'>,
    filter: Pick<Request<'job.list'>, 'lane' | 'states'>,
  ): readonly unknown[] {
    const pages: unknown[] = []
    let cursor: string | null = null
    do {
      const reply: Reply<'job.list'> = ask('job.list', { ...filter, type: null, limit: 3, cursor })
      pages.push(reply.jobs)
      cursor = reply.cursor
    } while (cursor !== null)
    return pages
  }

  close(): void {
    const { database } = this.sqlite.connection
    for (const query of [ORPHANS, DOUBLES]) expect(database.prepare(query).all(), query).toEqual([])
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
    this.sqlite.close()
  }
}

/** Attempts whose job is gone, or does not know of them. */
const ORPHANS = `SELECT job_seq FROM holdfast_attempt WHERE job_seq NOT IN (
  SELECT seq FROM holdfast_job WHERE recorded = 1 UNION SELECT seq FROM holdfast_archive WHERE recorded = 1)`
/** Jobs that are live and archived at once. */
const DOUBLES = 'SELECT id FROM holdfast_job INTERSECT SELECT id FROM holdfast_archive'

const byText = (a: unknown, b: unknown): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

/** Orders what the protocol leaves unordered, and drops what is each store's own. */
function normal(reply: Reply<MessageType>): unknown {
  if ('grants' in reply)
    return { ...reply, grants: reply.grants.map((grant) => ({ ...grant, deadlined: [...grant.deadlined].sort() })) }
  if ('expired' in reply) return { ...reply, expired: [...reply.expired].sort(byText) }
  if ('policies' in reply) return { policies: [...reply.policies].sort(byText) }
  if ('lanes' in reply) {
    const isKnown = (counts: object): boolean => Object.values(counts).some((count) => count > 0)
    return { lanes: reply.lanes.filter(({ counts, paused }) => paused || isKnown(counts)) }
  }
  return reply
}

type Command = (pair: Pair) => void

const pick = <T>(items: readonly T[], index: number): T | undefined => items[index % Math.max(1, items.length)]
const keepMs = fc.constantFrom<(number | null)[]>(null, null, 0, 100)
const index = fc.nat(1_000)
const failure = (code: string) => ({ code, message: `failed with ${code}`, name: 'Error' })
const retry = { kind: 'fixed', attempts: 4, baseMs: 50, capMs: 50, jitter: 0 } as const

const definition = fc.record({
  lane: fc.constantFrom('a', 'b'),
  idempotencyKey: fc.constantFrom(null, null, 'k1', 'k2'),
  priority: fc.integer({ min: -1, max: 1 }),
  delayMs: fc.constantFrom(0, 0, 50, 500),
  runAtIn: fc.constantFrom(null, null, -10, 70),
  deadlineIn: fc.constantFrom(null, null, null, -1, 60, 600),
  payload: fc.constantFrom<(string | Uint8Array)[]>('', '{"n":1}', 'null', new Uint8Array([0, 255, 7])),
  retry: fc.constantFrom(null, retry),
  metadata: fc.constantFrom(null, { tenant: 'ä', deep: { x: [1, null] } }),
  again: fc.nat(9),
  target: index,
})

const enqueue = fc.array(definition, { minLength: 1, maxLength: 4 }).map(
  (items): Command =>
    (pair) => {
      const jobs = items.map(({ runAtIn, deadlineIn, again, target, lane, ...rest }): JobDefinition => {
        const known = again === 0 ? pick(pair.ids, target) : undefined
        const id = known ?? `${lane}/${pair.ids.length}`
        pair.ids.push(id)
        const now = pair.clock.now()
        const runAt = runAtIn === null ? null : now + runAtIn
        return { ...job(''), ...rest, id, lane, runAt, deadlineAt: deadlineIn === null ? null : now + deadlineIn }
      })
      pair.send('job.enqueue', { jobs })
    },
)

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
  })
  .map((wish) => (pair: Pair): Settlement | null => {
    const lease = wish.isRecent ? pair.leases.at(-1 - (wish.target % 4)) : pick(pair.leases, wish.target)
    if (lease === undefined) return null
    const base = { ...lease, durationMs: wish.durationMs, keepMs: wish.keepMs }
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
    lanes: fc.constantFrom(['a'], ['a', 'b'], ['b', 'a'], ['none', 'b']),
    limit: fc.integer({ min: 1, max: 5 }),
    workerId: fc.constantFrom('w1', 'w2'),
    leaseMs: fc.constantFrom(20, 1_000),
    keepDeadMs: keepMs,
    isResent: fc.nat(5),
  })
  .map(
    (wish): Command =>
      (pair) => {
        const { workerId, lanes, limit, leaseMs, keepDeadMs } = wish
        const resend = wish.isResent === 0 && pair.lastClaim !== null
        const claims = Array.from({ length: wish.claims }, (): Claim => {
          if (resend && pair.lastClaim !== null) return pair.lastClaim
          pair.claims += 1
          return { workerId, nonce: `n${pair.claims}`, lanes, limit, leaseMs, keepDeadMs }
        })
        pair.lastClaim = claims.at(-1) ?? pair.lastClaim
        const settlements = wish.settlements.flatMap((make) => make(pair) ?? [])
        const { grants } = pair.send('job.turn', { settlements, claims, resend })
        for (const { id, token } of grants.flatMap(({ jobs }) => jobs)) pair.leases.push({ id, token })
      },
  )

const leaseRefs = (pair: Pair, targets: readonly number[]): Lease[] =>
  targets.flatMap((target) => pick([...pair.leases].reverse(), target) ?? [])
const targets = fc.array(index, { minLength: 1, maxLength: 3 })

const renew = fc.record({ targets, leaseMs: fc.constantFrom(20, 1_000) }).map(
  ({ targets, leaseMs }): Command =>
    (pair) => {
      pair.send('lease.renew', { leases: leaseRefs(pair, targets), leaseMs })
    },
)

const progress = targets.map(
  (targets): Command =>
    (pair) => {
      pair.send('job.progress', { updates: leaseRefs(pair, targets).map((lease) => ({ ...lease, progress: '0.5' })) })
    },
)

const reap = fc.record({ settlements: fc.array(settlement, { maxLength: 3 }), isHonest: fc.boolean() }).map(
  ({ settlements, isHonest }): Command =>
    (pair) => {
      const decisions = settlements.flatMap((make) => {
        const decision = make(pair)
        return decision === null || decision.kind === 'complete' ? [] : decision
      })
      const { expired } = pair.send('lease.reap', { decisions, limit: 1_000 })
      if (!isHonest) return
      const requeued = expired.map(({ id, token, crashes, cancelRequested }): ReapDecision => {
        const base = { id, token, durationMs: 0, keepMs: null, failure: failure('LEASE_EXPIRED') }
        return cancelRequested ? { ...base, kind: 'cancel' } : { ...base, kind: 'requeue', crashes: crashes + 1 }
      })
      pair.send('lease.reap', { decisions: requeued, limit: 1_000 })
    },
)

const idsOf = (pair: Pair, targets: readonly number[]): string[] =>
  targets.map((target) => pick(pair.ids, target) ?? 'a/none')

const cancel = fc.record({ targets, force: fc.boolean(), keepMs }).map(
  ({ targets, force, keepMs }): Command =>
    (pair) => {
      pair.send('job.cancel', { ids: idsOf(pair, targets), force, keepMs })
    },
)

const promote = targets.map(
  (targets): Command =>
    (pair) => {
      pair.send('job.promote', { ids: idsOf(pair, targets) })
    },
)

const policy = fc.record({ lane: fc.constantFrom('a', 'b'), paused: fc.boolean() }).map(
  (change): Command =>
    (pair) => {
      pair.send('queue.policy', { changes: [change] })
    },
)

const maintain = keepMs.map(
  (keepDeadMs): Command =>
    (pair) => {
      pair.send('store.maintain', { limit: 1_000, keepDeadMs })
    },
)

const advance = fc.constantFrom(1, 30, 60, 110, 2_000).map(
  (ms): Command =>
    (pair) => {
      pair.clock.ms += ms
    },
)

const command = fc.oneof(
  { weight: 5, arbitrary: enqueue },
  { weight: 9, arbitrary: turn },
  { weight: 1, arbitrary: renew },
  { weight: 1, arbitrary: progress },
  { weight: 2, arbitrary: reap },
  { weight: 2, arbitrary: cancel },
  { weight: 1, arbitrary: promote },
  { weight: 1, arbitrary: policy },
  { weight: 2, arbitrary: maintain },
  { weight: 4, arbitrary: advance },
)

const RUNS = Number(process.env.HOLDFAST_MODEL_RUNS ?? 150)
const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 31)

test(`the same replies as the memory store, seed ${seed}`, () => {
  const states = new Set<string>()
  fc.assert(
    fc.property(fc.array(command, { minLength: 20, maxLength: 60, size: 'max' }), (commands) => {
      const pair = new Pair((clock) => openStore({}, clock))
      for (const run of commands) run(pair)
      pair.compareAll()
      for (const { counts } of pair.send('queue.stats', { lanes: null }).lanes)
        for (const [state, count] of Object.entries(counts)) if (count > 0) states.add(state)
      pair.close()
    }),
    {
      numRuns: RUNS,
      seed, // A planted bug need only be found; shrinking it would take a minute.
      endOnFailure: process.env.HOLDFAST_DIST !== undefined,
    },
  )
  // Guards the generator: a run that never gets anywhere would agree on everything.
  expect([...states].sort()).toEqual(JOB_STATES.filter((state) => state !== 'waiting').sort())
})
