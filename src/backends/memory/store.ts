/**
 * The reference model: the protocol on plain maps, with the injected clock as the store's clock.
 * Synchronous and single-threaded, so every handler is atomic. The other stores are tested against it.
 */
import type { Clock } from '../../clock.ts'
import type { JobId } from '../../job.ts'
import { isTerminal } from '../../job.ts'
import { Roster } from '../../roster.ts'
import { keepDeadIn } from '../kept.ts'
import type {
  Claim,
  Grant,
  Reply,
  Request,
  Settlement,
  SyncBackendHandlers,
  Throttle,
  Verdict,
} from '../protocol/index.ts'
import { leaseToken, nextEpoch } from '../rules.ts'
import { Lane } from './lane.ts'
import type { Limiter, Taken } from './limiter.ts'
import { changePolicy, policyOf, usageOf } from './policy.ts'
import { JobRow } from './row.ts'
import { bury, settle, takeNote } from './settle.ts'
import { statsOf } from './stats.ts'
import { surplusOf } from './surplus.ts'
import { aheadOf, attemptsOf, claimedOf, expiredOf, linesOf, listOf, storedOf } from './view.ts'
import { Workers } from './workers.ts'

export class MemoryStore {
  private readonly clock: Clock
  private readonly jobs = new Map<JobId, JobRow>()
  private readonly running = new Roster<JobRow>()
  /** Terminal rows and outputs with an end of their time. */
  private readonly expiring = new Set<JobRow>()
  private readonly lanes = new Map<string, Lane>()
  private readonly keys = new Map<string, JobRow>()
  private readonly workers = new Workers()
  private sequence = 0

  constructor(clock: Clock) {
    this.clock = clock
  }

  readonly handlers = {
    'job.enqueue': (request) => this.enqueue(request),
    'job.turn': (request) => this.turn(request),
    'lease.renew': (request) => this.renew(request),
    'lease.reap': (request) => this.reap(request),
    'job.note': (request) => this.note(request),
    'job.logs': ({ queries }) => ({ logs: queries.map((query) => linesOf(this.jobs.get(query.id), query)) }),
    'job.cancel': (request) => this.cancel(request),
    'job.promote': (request) => this.promote(request),
    'job.states': ({ ids }) => ({ states: ids.map((id) => this.jobs.get(id)?.state ?? null) }),
    'job.get': ({ ids }) => ({
      jobs: ids.map((id) => viewOf(this.jobs.get(id), (row) => storedOf(row, true)) ?? null),
    }),
    'job.ahead': ({ ids, limit }) => ({
      ahead: ids.map((id) => aheadOf(this.jobs.get(id), this.jobs.values(), limit)),
    }),
    'job.list': (request) => listOf([...this.jobs.values()], request),
    'job.history': ({ ids }) => ({ attempts: ids.map((id) => viewOf(this.jobs.get(id), attemptsOf) ?? []) }),
    'queue.stats': ({ lanes }) => ({
      lanes: statsOf(lanes, this.lanes, { jobs: this.jobs.values(), now: this.clock.now() }),
    }),
    'queue.policy': (request) => this.policy(request),
    'store.maintain': (request) => this.maintain(request),
    'worker.beat': (request) => this.workers.beat(request, this.clock.now()),
    'worker.list': (request) => this.workers.list(request, this.clock.now()),
    'store.health': ({ rights = false }) => ({
      nowMs: this.clock.now(),
      details: { jobs: this.jobs.size, ...(rights ? { missingRights: '' } : {}) },
    }),
  } satisfies SyncBackendHandlers

  private lane(name: string): Lane {
    let lane = this.lanes.get(name)
    if (lane === undefined) {
      lane = new Lane(name)
      this.lanes.set(name, lane)
    }
    return lane
  }

  private enqueue({ jobs }: Request<'job.enqueue'>): Reply<'job.enqueue'> {
    const now = this.clock.now()
    const results = jobs.map((definition) => {
      const same = this.jobs.get(definition.id)
      if (same !== undefined) return { outcome: 'created' as const, id: definition.id, state: same.state }
      const key = definition.idempotencyKey === null ? null : keyOf(definition.lane, definition.idempotencyKey)
      const first = key === null ? undefined : this.keys.get(key)
      if (first !== undefined) return { outcome: 'deduplicated' as const, id: first.definition.id, state: first.state }
      const retryAfterMs = this.lanes.get(definition.lane)?.limiter?.admit(now) ?? 0
      if (retryAfterMs > 0) return { outcome: 'refused' as const, id: definition.id, retryAfterMs }
      this.sequence += 1
      const row = new JobRow(definition, this.sequence, now)
      this.jobs.set(definition.id, row)
      if (key !== null) this.keys.set(key, row)
      this.lane(definition.lane).add(row)
      return { outcome: 'created' as const, id: definition.id, state: row.state }
    })
    return { results }
  }

  private turn({ settlements, claims, resend }: Request<'job.turn'>): Reply<'job.turn'> {
    const now = this.clock.now()
    const verdicts = settlements.map((settlement) => this.settle(settlement, now))
    const grants = claims.map((claim) => this.claim(claim, now, resend))
    return { verdicts, grants }
  }

  private settle(settlement: Settlement, now: number): Verdict {
    const row = this.jobs.get(settlement.id)
    if (row === undefined) return 'gone'
    const verdict = settle(row, settlement, now)
    if (verdict === 'applied' || verdict === 'cancelled') this.leftRunning(row)
    return verdict
  }

  private leftRunning(row: JobRow): void {
    this.running.delete(row)
    if (isTerminal(row.state)) this.ended(row)
    else this.lane(row.definition.lane).add(row)
  }

  private ended(row: JobRow): void {
    if (row.run.keepUntil !== null && row.run.keepUntil <= row.updatedAt) this.forget(row)
    else if (row.run.keepUntil !== null || row.run.outputUntil !== null) this.expiring.add(row)
  }

  private forget(row: JobRow): void {
    const { id, lane, idempotencyKey } = row.definition
    this.jobs.delete(id)
    this.expiring.delete(row)
    row.forget()
    if (idempotencyKey !== null) this.keys.delete(keyOf(lane, idempotencyKey))
  }

  private claim(claim: Claim, now: number, resend: boolean): Grant {
    const rows = resend ? this.grantedBefore(claim) : []
    const limit = rows.length > 0 ? rows.length : claim.limit
    const deadlined: JobId[] = []
    let dueAt: number | null = null
    const throttled: Throttle[] = []
    const limited = claim.lanes.filter((name) => this.isLimited(name) && this.lanes.get(name)?.isPaused === false)
    let more = false
    for (const name of claim.lanes) {
      const lane = this.lanes.get(name)
      if (lane === undefined || lane.isPaused) continue
      lane.promoteDue(now)
      deadlined.push(...this.buryDeadlined(lane, now, keepDeadIn(claim, lane.name)))
      const wanted = limit - rows.length
      const limiter = lane.limiter?.holdsClaims === true ? lane.limiter : null
      const taken = limiter === null ? null : this.takeLimited(lane, limiter, wanted, now)
      for (const row of taken?.rows ?? lane.takeUpTo(wanted)) {
        this.grant(row, claim, now, rows.length)
        rows.push(row)
      }
      if (taken !== null && taken.throttle !== null) throttled.push({ lane: name, ...taken.throttle })
      more ||= taken === null ? lane.firstReady() !== undefined : taken.more
      const laneDueAt = lane.nextDueAt()
      if (laneDueAt !== null) dueAt = Math.min(dueAt ?? laneDueAt, laneDueAt)
    }
    return {
      jobs: rows.map((row) => claimedOf(row, now)),
      more,
      dueInMs: dueAt === null ? null : dueAt - now,
      deadlined,
      ...(throttled.length > 0 && { throttled }),
      ...(limited.length > 0 && { limited }),
    }
  }

  private takeLimited(lane: Lane, limiter: Limiter, wanted: number, now: number): Taken {
    const taken = limiter.take(lane, wanted, { running: this.runningIn(lane.name), now })
    lane.tidy()
    return taken
  }

  private runningIn(lane: string): readonly JobRow[] {
    return this.running.list().filter(({ definition }) => definition.lane === lane)
  }

  /** What this very claim was given when it was first sent, in the same order. */
  private grantedBefore({ workerId, nonce }: Claim): JobRow[] {
    const ordinalOf = ({ run }: JobRow): number => Number(run.token?.slice(run.token.lastIndexOf('.') + 1))
    return this.running
      .list()
      .filter(({ run }) => run.token?.includes(`:${workerId}:${nonce}.`))
      .sort((a, b) => ordinalOf(a) - ordinalOf(b))
  }

  private grant(row: JobRow, claim: Claim, now: number, ordinal: number): void {
    row.move('claim', now)
    row.run.attempts += 1
    row.run.leaseEpoch = nextEpoch(row.run.leaseEpoch, now)
    row.run.token = leaseToken(row.run.leaseEpoch, claim.workerId, claim.nonce, ordinal)
    row.run.workerId = claim.workerId
    row.run.startedAt = now
    row.run.leaseExpiresAt = now + claim.leaseMs
    this.running.add(row)
  }

  private buryDeadlined(lane: Lane, now: number, keepMs: number | null): JobId[] {
    return Array.from(lane.takeDeadlined(now), (row) => {
      bury(row, now, keepMs)
      lane.dropped()
      this.ended(row)
      return row.definition.id
    })
  }

  private renew({ leases, leaseMs }: Request<'lease.renew'>): Reply<'lease.renew'> {
    const now = this.clock.now()
    const outcomes = leases.map(({ id, token }) => {
      const row = this.jobs.get(id)
      if (row === undefined) return 'gone' as const
      if (!row.isHeldBy(token)) return 'leaseLost' as const
      row.run.leaseExpiresAt = now + leaseMs
      return row.run.cancelRequested ? ('cancelRequested' as const) : ('renewed' as const)
    })
    return { outcomes }
  }

  private reap({ decisions, limit }: Request<'lease.reap'>): Reply<'lease.reap'> {
    const now = this.clock.now()
    const verdicts = decisions.map((decision) => {
      const row = this.jobs.get(decision.id)
      if (row === undefined) return 'gone' as const
      if (!row.isHeldBy(decision.token) || row.run.leaseExpiresAt > now) return 'leaseLost' as const
      const verdict = this.settle(decision, now)
      row.run.token = null
      return verdict
    })
    const expired = this.running
      .list()
      .filter(({ run }) => run.leaseExpiresAt <= now)
      .sort((a, b) => a.run.leaseExpiresAt - b.run.leaseExpiresAt || a.sequence - b.sequence)
      .slice(0, limit)
    return { verdicts, expired: expired.map((row) => expiredOf(row, now)) }
  }

  private note({ notes }: Request<'job.note'>): Reply<'job.note'> {
    const verdicts = notes.map(({ id, token, ...note }) => {
      const row = this.jobs.get(id)
      if (row === undefined) return 'gone' as const
      if (!row.isHeldBy(token)) return 'leaseLost' as const
      takeNote(row, note)
      return 'applied' as const
    })
    return { verdicts }
  }

  private cancel({ ids, force, keepMs }: Request<'job.cancel'>): Reply<'job.cancel'> {
    const now = this.clock.now()
    const outcomes = ids.map((id) => {
      const row = this.jobs.get(id)
      if (row === undefined) return 'not_found' as const
      if (isTerminal(row.state)) return 'already_terminal' as const
      if (row.state === 'running' && !force) {
        row.run.cancelRequested = true
        return 'requested' as const
      }
      this.cancelNow(row, now, keepMs)
      return 'cancelled' as const
    })
    return { outcomes }
  }

  private cancelNow(row: JobRow, now: number, keepMs: number | null): void {
    const wasRunning = row.state === 'running'
    row.move('cancel', now)
    if (wasRunning)
      row.record('cancelled', now, null, { code: 'CANCELLED', message: 'cancelled by force while it ran' })
    row.run.token = null
    row.run.finishedAt = now
    row.run.keepUntil = keepMs === null ? null : now + keepMs
    if (wasRunning) this.running.delete(row)
    else this.lane(row.definition.lane).dropped()
    this.ended(row)
  }

  private promote({ ids }: Request<'job.promote'>): Reply<'job.promote'> {
    const now = this.clock.now()
    const outcomes = ids.map((id) => {
      const row = this.jobs.get(id)
      if (row === undefined) return 'not_found' as const
      if (row.state !== 'scheduled' && row.state !== 'retry_wait') return 'invalid_state' as const
      row.move('due', now)
      row.runAt = now
      const lane = this.lane(row.definition.lane)
      lane.dropped()
      lane.add(row)
      return 'promoted' as const
    })
    return { outcomes }
  }

  private policy({ changes, usage = [] }: Request<'queue.policy'>): Reply<'queue.policy'> {
    for (const change of changes) changePolicy(this.lane(change.lane), change)
    const content = { running: this.running.list(), now: this.clock.now() }
    return {
      policies: [...this.lanes.values()].flatMap(policyOf),
      usage: usage.map((name) => usageOf(name, this.lanes.get(name), content)),
    }
  }

  /** Whether a start in the lane may wait for an attempt to end. */
  isLimited(lane: string): boolean {
    return this.lanes.get(lane)?.limiter?.holdsClaims === true
  }

  private maintain(request: Request<'store.maintain'>): Reply<'store.maintain'> {
    const { limit, keepCounts } = request
    const now = this.clock.now()
    let pruned = 0
    let outputsDropped = 0
    for (const row of this.expiring) {
      if (pruned + outputsDropped >= limit) break
      if (row.run.keepUntil !== null && row.run.keepUntil <= now) {
        this.forget(row)
        pruned += 1
      } else if (row.run.outputUntil !== null && row.run.outputUntil <= now) {
        row.run.output = null
        row.run.outputUntil = null
        if (row.run.keepUntil === null) this.expiring.delete(row)
        outputsDropped += 1
      }
    }
    for (const row of keepCounts === undefined ? [] : surplusOf(this.jobs.values(), keepCounts)) {
      if (pruned + outputsDropped >= limit) break
      this.forget(row)
      pruned += 1
    }
    let promoted = 0
    let deadlined = 0
    for (const lane of this.lanes.values()) {
      promoted += lane.promoteDue(now)
      deadlined += this.buryDeadlined(lane, now, keepDeadIn(request, lane.name)).length
    }
    return { pruned, outputsDropped, promoted, deadlined, more: pruned + outputsDropped >= limit }
  }
}

const keyOf = (lane: string, idempotencyKey: string): string => `${lane}\n${idempotencyKey}`

const viewOf = <T>(row: JobRow | undefined, view: (row: JobRow) => T): T | undefined =>
  row === undefined ? undefined : view(row)
