/**
 * The turn: settlements by lane first, then what each claim may have. One lane, one script: the usual turn of a worker with one lane
 * is a single call. Settlements may be repeated freely; a claim whose answer was lost is looked up by its nonce before it claims anew.
 */
import { HoldfastError, isHoldfastError } from '../../errors.ts'
import type { JobId } from '../../job.ts'
import { keepDeadIn } from '../kept.ts'
import type { Claim, ClaimedJob, Grant, Reply, Request, Throttle, ThrottleReason, Verdict } from '../protocol/index.ts'
import { type Grantee, readGrant, readHeld } from './claim.ts'
import { probe } from './lease.ts'
import { listOf, meaningOf, numberOf, optionalNumber, optionalText, textOf } from './reply.ts'
import type { RedisArgument, RedisReply } from './servers.ts'
import { BATCH, chunksOf, groupByLane, type RedisSession } from './session.ts'
import { type LocalSettlement, otherArguments, SettlementSections, settlementBytes, VERDICTS } from './settlement.ts'

/** What is left of a lane after a turn on it. */
interface LaneView {
  readonly more: boolean
  readonly dueInMs: number | null
  readonly isDeadlined: boolean
  readonly isLimited: boolean
  readonly throttle: Throttle | null
  readonly grant: readonly ClaimedJob[]
}

/** A claim on one lane: how many, and where its ordinals go on. */
interface LaneClaim {
  readonly claim: Claim
  readonly lane: string
  readonly limit: number
  readonly ordinal: number
}

/** Told of lanes that others want to hear of. */
export interface TurnListener {
  /** Work is left that somebody else could do. */
  left(lane: string, isClaimed: boolean): void
  /** Attempts were settled, and somebody waits for ends. */
  ended(lane: string): void
}

export class Turn {
  private readonly session: RedisSession
  private readonly listener: TurnListener
  private readonly request: Request<'job.turn'>
  private readonly verdicts: Verdict[]

  constructor(session: RedisSession, request: Request<'job.turn'>, listener: TurnListener) {
    this.session = session
    this.request = request
    this.listener = listener
    this.verdicts = request.settlements.map(() => 'gone')
  }

  async take(): Promise<Reply<'job.turn'>> {
    const { claims, resend } = this.request
    const [first] = claims
    const only = first !== undefined && claims.length === 1 && !resend ? first : null
    const joined = await this.settle(only)
    const grants: Grant[] = []
    try {
      for (const claim of claims) grants.push(await this.claim(claim, joined))
    } catch (error) {
      throw this.afterSomething(error)
    }
    return { verdicts: this.verdicts, grants }
  }

  /** What came before this call was done, so that the turn as a whole is not "not done". */
  private afterSomething(error: unknown): unknown {
    const { settlements, claims } = this.request
    if (!isHoldfastError(error) || error.details.outcome !== 'notDone') return error
    if (settlements.length === 0 && claims.length === 1 && claims[0]?.lanes.length === 1) return error
    return new HoldfastError(error.code, error.message, {
      details: { ...error.details, outcome: 'unknown' },
      cause: error,
    })
  }

  /** Settles all lanes; the last call on the first lane of the only claim claims too. */
  private async settle(only: Claim | null): Promise<LaneView | null> {
    const lane = only?.lanes[0]
    const groups = groupByLane(this.request.settlements, ({ id }) => id)
    const ofClaim = groups.find((group) => group.lane === lane)
    await Promise.all(
      groups.filter((group) => group !== ofClaim).map(({ lane, items }) => this.settleLane(lane, items)),
    )
    if (ofClaim === undefined) return null
    const last = await this.settleLane(ofClaim.lane, ofClaim.items, only)
    return last
  }

  private async settleLane(
    lane: string,
    items: readonly LocalSettlement[],
    claim: Claim | null = null,
  ): Promise<LaneView | null> {
    const rounds = withoutRepeats(items).flatMap((round) => chunksOf(round, BATCH.settlements, settlementBytes))
    let view: LaneView | null = null
    for (const [index, round] of rounds.entries()) {
      const isLast = claim !== null && index === rounds.length - 1
      const limit = isLast ? Math.min(claim.limit, BATCH.claimJobs) : -1
      view = await this.call(lane, round, isLast ? { claim, lane, limit, ordinal: 0 } : null)
      if (!isLast && view.more) this.listener.left(lane, claim !== null)
    }
    return view
  }

  /** One script. Verdicts go to their places. */
  private async call(lane: string, items: readonly LocalSettlement[], claim: LaneClaim | null): Promise<LaneView> {
    const { workerId = '', nonce = '', leaseMs = 0 } = claim?.claim ?? {}
    const ordinal = claim?.ordinal ?? 0
    const asked = [claim?.limit ?? -1, workerId, nonce, leaseMs, ordinal]
    const reply = listOf(
      items.length === 0 ? await this.session.run('job_claim', lane, asked) : await this.settleAnd(lane, items, asked),
    )
    const nowUs = numberOf(reply[1])
    return this.view(reply, { lane, workerId, nonce, ordinal, nowUs })
  }

  private async settleAnd(
    lane: string,
    items: readonly LocalSettlement[],
    asked: readonly RedisArgument[],
  ): Promise<RedisReply> {
    const sections = new SettlementSections(items)
    const reply = await this.session.run('job_turn', lane, [...asked, ...sections.counts, ...sections.arguments])
    const letters = textOf(listOf(reply)[0])
    sections.order.forEach((index, place) => {
      this.verdicts[index] = meaningOf(VERDICTS, letters[place])
    })
    return reply
  }

  private async view(reply: readonly RedisReply[], grantee: Grantee): Promise<LaneView> {
    const flags = textOf(reply[2])
    const dueAt = optionalNumber(reply[3])
    if (flags.includes('w')) this.listener.ended(grantee.lane)
    const { jobs, damaged } = readGrant(reply.slice(4, 8), grantee)
    if (damaged.length > 0) await this.bury(grantee.lane, damaged)
    return {
      more: flags.includes('m'),
      isDeadlined: flags.includes('d'),
      dueInMs: dueAt === null ? null : Math.max(0, dueAt - Math.floor(grantee.nowUs / 1000)),
      isLimited: flags.includes('l'),
      throttle: throttleOf(grantee.lane, optionalText(reply[8])),
      grant: jobs,
    }
  }

  /** Jobs that cannot be read must not hold up their lane for ever. */
  private async bury(
    lane: string,
    damaged: readonly { readonly local: string; readonly token: string }[],
  ): Promise<void> {
    const failure = { code: 'STORE_CORRUPT', message: 'the record of the job is damaged' }
    const args = damaged.flatMap(({ local, token }) =>
      otherArguments(
        { kind: 'dead', id: '', token, durationMs: 0, keepMs: null, code: failure.code, failure, crashes: 0 },
        local,
      ),
    )
    await this.session.run('job_turn', lane, [-1, '', '', 0, 0, 0, 0, 0, damaged.length, ...args])
  }

  private async claim(claim: Claim, joined: LaneView | null): Promise<Grant> {
    const held = this.request.resend ? await this.heldBy(claim) : []
    const state = new GrantState(claim, held)
    const [first, ...others] = claim.lanes
    // An idle worker with many lanes looks at all of them in one call; one that has just settled has seen the first.
    const isFirstSeen = joined !== null || others.length === 0 || state.isFull
    if (first !== undefined && isFirstSeen) await this.claimLane(first, state, joined)
    for (const lane of await this.worthwhile(isFirstSeen ? others : claim.lanes, state)) {
      if (state.isFull) {
        state.unvisited()
        break
      }
      await this.claimLane(lane, state, null)
    }
    return state.grant()
  }

  /** Of several lanes on one server, a look at all of them in one call tells which can give something. */
  private async worthwhile(lanes: readonly string[], state: GrantState): Promise<readonly string[]> {
    if (lanes.length < 2 || state.isFull || this.session.servers.facts().isCluster) return lanes
    const { looks } = await probe(this.session, lanes)
    return lanes.filter((_lane, index) => {
      const look = looks[index]
      if (look === undefined || look.isReady) return true
      state.look(false, look.dueInMs)
      return false
    })
  }

  private async claimLane(lane: string, state: GrantState, joined: LaneView | null): Promise<void> {
    let view = joined
    for (let round = 0; ; round += 1) {
      const limit = Math.min(state.left, BATCH.claimJobs)
      view ??= await this.call(lane, [], { claim: state.claim, lane, limit, ordinal: state.count })
      state.add(view.grant)
      state.limits(lane, view)
      const { isDeadlined, more, dueInMs } = view
      view = null
      if (isDeadlined) {
        state.deadlined.push(...(await this.buryDeadlined(lane, keepDeadIn(state.claim, lane))))
        if (round < ROUNDS_MAX) continue
      }
      if (more && state.left > 0 && round < ROUNDS_MAX) continue
      state.look(more, dueInMs)
      if (more) this.listener.left(lane, true)
      return
    }
  }

  private async buryDeadlined(lane: string, keepMs: number | null): Promise<readonly JobId[]> {
    const ids = await this.session.run('lane_bury', lane, [BATCH.buried, keepMs ?? '', DEADLINE_PASSED])
    return listOf(ids).map((id) => `${lane}/${textOf(id)}`)
  }

  /** What this very claim was given when it was first sent, in the same order. */
  private async heldBy({ lanes, workerId, nonce }: Claim): Promise<readonly ClaimedJob[]> {
    const owner = `:${workerId}:${nonce}.`
    const found: ClaimedJob[] = []
    for (const lane of lanes) {
      for (let from = 0; ; from += BATCH.leases) {
        const reply = listOf(await this.session.run('lease_find', lane, [owner, from, BATCH.leases]))
        const nowMs = Math.floor(numberOf(reply[0]) / 1000)
        const [ids = [], definitions, runs, terms] = reply.slice(2).map(listOf)
        ids.forEach((id, index) => {
          found.push(
            readHeld([id, definitions?.[index] ?? null, runs?.[index] ?? null, terms?.[index] ?? null], {
              lane,
              nowMs,
            }),
          )
        })
        if (numberOf(reply[1]) < BATCH.leases) break
      }
    }
    return found.sort((a, b) => ordinalOf(a) - ordinalOf(b))
  }
}

export const DEADLINE_PASSED = JSON.stringify({
  code: 'DEADLINE_EXCEEDED',
  message: 'the deadline passed before the job could start',
})

/** Looks at one lane in one turn: each moves or removes something, the next turn goes on. */
const ROUNDS_MAX = 100

const ordinalOf = ({ token }: ClaimedJob): number => Number(token.slice(token.lastIndexOf('.') + 1))

/** A script compares all tokens before it writes, so a job that is settled twice in one turn needs a call for each. */
function withoutRepeats(items: readonly LocalSettlement[]): readonly (readonly LocalSettlement[])[] {
  if (new Set(items.map(({ local }) => local)).size === items.length) return items.length === 0 ? [] : [items]
  return items.map((item) => [item])
}

const REASONS: Readonly<Record<string, ThrottleReason>> = {
  I: 'IN_FLIGHT_EXCEEDED',
  R: 'RATE_EXCEEDED',
  K: 'KEY_LIMIT_EXCEEDED',
}

/** A letter, and behind that of a rate when the next may start. */
function throttleOf(lane: string, text: string | null): Throttle | null {
  if (text === null) return null
  return { lane, reason: meaningOf(REASONS, text[0]), inMs: text.length > 1 ? Number(text.slice(1)) : null }
}

/** One grant as it fills up. */
class GrantState {
  readonly claim: Claim
  readonly deadlined: JobId[] = []
  private readonly jobs: ClaimedJob[]
  private readonly limit: number
  private more = false
  private dueInMs: number | null = null
  private readonly throttled: Throttle[] = []
  private readonly limited = new Set<string>()

  constructor(claim: Claim, held: readonly ClaimedJob[]) {
    this.claim = claim
    this.jobs = [...held]
    this.limit = held.length > 0 ? held.length : claim.limit
  }

  get count(): number {
    return this.jobs.length
  }

  get left(): number {
    return this.limit - this.jobs.length
  }

  get isFull(): boolean {
    return this.left <= 0
  }

  add(jobs: readonly ClaimedJob[]): void {
    this.jobs.push(...jobs)
  }

  limits(lane: string, { isLimited, throttle }: LaneView): void {
    if (isLimited) this.limited.add(lane)
    if (throttle !== null) this.throttled.push(throttle)
  }

  look(more: boolean, dueInMs: number | null): void {
    this.more ||= more
    if (dueInMs !== null) this.dueInMs = Math.min(this.dueInMs ?? dueInMs, dueInMs)
  }

  /** A lane was not looked at: it may hold more. */
  unvisited(): void {
    this.more = true
  }

  grant(): Grant {
    return {
      jobs: this.jobs,
      more: this.more,
      dueInMs: this.dueInMs,
      deadlined: this.deadlined,
      ...(this.throttled.length > 0 && { throttled: this.throttled }),
      ...(this.limited.size > 0 && { limited: [...this.limited] }),
    }
  }
}
