/** Policies of lanes: a change is one script in the slot of its lane, so that the claim sees it in the same step. */
import { NO_LIMITS } from '../limits.ts'
import type {
  LaneLimits,
  LanePolicy,
  LaneUsage,
  PolicyChange,
  RateLimit,
  Reply,
  Request,
  ThrottleCount,
  ThrottleReason,
} from '../protocol/index.ts'
import { FULL_KEYS_MAX } from '../protocol/index.ts'
import type { ControlContext } from './control.ts'
import { listOf, numberOf, optionalNumber, optionalText, textOf } from './reply.ts'
import type { RedisReply } from './servers.ts'
import type { RedisSession } from './session.ts'

export async function policy(
  { session, registry, onReady }: ControlContext,
  { changes, usage = [] }: Request<'queue.policy'>,
): Promise<Reply<'queue.policy'>> {
  for (const change of changes) {
    const noted = registry.note(change.lane)
    if (noted !== null) await noted
    await session.run('lane_policy', change.lane, changeArguments(change))
    if (change.paused !== true) onReady(change.lane)
  }
  const policies = await Promise.all((await registry.list()).map((lane) => policyOf(session, lane)))
  return {
    policies: policies.flatMap((each) => each ?? []),
    usage: await Promise.all(usage.map((lane) => usageOf(session, lane))),
  }
}

/** `-` leaves a part as it is. */
const KEEP = '-'

function changeArguments({ paused, maxInFlight, rate, maxPerKey, enqueueRate }: PolicyChange): readonly string[] {
  const part = <T>(value: T | null | undefined, pack: (value: T) => string): string =>
    value === undefined ? KEEP : value === null ? '' : pack(value)
  return [
    part(paused, (is) => (is ? '1' : '0')),
    part(maxInFlight, String),
    part(rate, ({ limit, perMs, burst }) => `${limit} ${perMs} ${burst}`),
    part(maxPerKey, String),
    part(enqueueRate, ({ limit, perMs }) => `${limit} ${perMs}`),
  ]
}

async function policyOf(session: RedisSession, lane: string): Promise<LanePolicy | null> {
  const meta = session.keys(lane).key('meta')
  const fields = listOf(await session.servers.command('HMGET', meta, [meta, 'paused', 'limits', 'gate']))
  const [paused, limits, gate] = fields.map(optionalText)
  const policy = { lane, paused: paused !== null, ...limitsOf(limits ?? null), enqueueRate: gateOf(gate ?? null) }
  const isAny = policy.paused || [policy.maxInFlight, policy.rate, policy.maxPerKey, policy.enqueueRate].some(Boolean)
  return isAny ? policy : null
}

function limitsOf(text: string | null): LaneLimits {
  if (text === null) return NO_LIMITS
  const [maxInFlight, limit, perMs, burst, maxPerKey] = text.split(' ').map(numberOrNull)
  const rate = limit == null || perMs == null || burst == null ? null : { limit, perMs, burst }
  return { ...NO_LIMITS, maxInFlight: maxInFlight ?? null, rate, maxPerKey: maxPerKey ?? null }
}

const numberOrNull = (text: string): number | null => (text === '' ? null : Number(text))

function gateOf(text: string | null): RateLimit | null {
  if (text === null) return null
  const [limit = 0, perMs = 0] = text.split(' ').map(Number)
  return { limit, perMs, burst: limit }
}

/** In the order of the reply of `lane_usage`. */
const REASONS: readonly ThrottleReason[] = [
  'IN_FLIGHT_EXCEEDED',
  'RATE_EXCEEDED',
  'KEY_LIMIT_EXCEEDED',
  'ENQUEUE_RATE_EXCEEDED',
]

async function usageOf(session: RedisSession, lane: string): Promise<LaneUsage> {
  const reply = listOf(await session.run('lane_usage', lane, [FULL_KEYS_MAX]))
  const [inFlight, parked, tokens, enqueueTokens, full, ...counts] = reply
  return {
    lane,
    inFlight: numberOf(inFlight),
    tokens: optionalNumber(tokens),
    enqueueTokens: optionalNumber(enqueueTokens),
    fullKeys: listOf(full).map(textOf),
    parked: numberOf(parked),
    throttles: counts
      .flatMap((count, index) => throttleOf(REASONS[index], count))
      .sort((a, b) => (a.reason < b.reason ? -1 : 1)),
  }
}

function throttleOf(reason: ThrottleReason | undefined, reply: RedisReply): readonly ThrottleCount[] {
  const text = optionalText(reply)
  if (text === null || reason === undefined) return []
  const [count = 0, firstAt = 0, lastAt = 0] = text.split(' ').map(Number)
  return [{ reason, count, firstAt, lastAt }]
}
