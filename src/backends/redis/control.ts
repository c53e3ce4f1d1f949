/** What operators and upkeep do: cancel, make due, counts, retention, health. */
import { HoldfastError } from '../../errors.ts'
import type { JobId } from '../../job.ts'
import { countsIn, keepDeadIn } from '../kept.ts'
import type { CancelOutcome, PromoteOutcome, Reply, Request, StateCounts } from '../protocol/index.ts'
import { KEYSPACE_VERSION } from './keyspace.ts'
import type { LaneRegistry } from './lane-registry.ts'
import { listOf, meaningOf, numberOf, textOf } from './reply.ts'
import { missingRights } from './rights.ts'
import { BATCH, chunksOf, groupByLane, type RedisSession } from './session.ts'
import { DEADLINE_PASSED } from './turn.ts'

const CANCELLED: Readonly<Record<string, CancelOutcome | 'damaged'>> = {
  c: 'cancelled',
  r: 'requested',
  t: 'already_terminal',
  n: 'not_found',
  x: 'damaged',
}
const PROMOTED: Readonly<Record<string, PromoteOutcome | 'damaged'>> = {
  p: 'promoted',
  i: 'invalid_state',
  n: 'not_found',
  x: 'damaged',
}
const BY_FORCE = JSON.stringify({ code: 'CANCELLED', message: 'cancelled by force while it ran' })

function sound<T extends string>(outcome: T | 'damaged', id: JobId): T {
  if (outcome !== 'damaged') return outcome as T
  throw new HoldfastError('STORE_CORRUPT', `the record of ${id} is damaged`, { details: { outcome: 'refused', id } })
}

/** `onReady`: where a running job was taken by force, a limit may let another begin. */
export async function cancel(
  session: RedisSession,
  { ids, force, keepMs }: Request<'job.cancel'>,
  onReady: (lane: string) => void,
): Promise<Reply<'job.cancel'>> {
  const outcomes: CancelOutcome[] = ids.map(() => 'not_found')
  for (const { lane, items } of groupByLane(ids, (id) => id)) {
    for (const chunk of chunksOf(items, BATCH.moves, () => 0)) {
      const args = [force ? 1 : 0, keepMs ?? '', BY_FORCE, ...chunk.map(({ local }) => local)]
      const letters = textOf(await session.run('job_cancel', lane, args))
      if (force && letters.includes('c')) onReady(lane)
      chunk.forEach(({ item, index }, place) => {
        outcomes[index] = sound(meaningOf(CANCELLED, letters[place]), item)
      })
    }
  }
  return { outcomes }
}

/** `onReady` is told of lanes that have something to run now. */
export async function promote(
  session: RedisSession,
  { ids }: Request<'job.promote'>,
  onReady: (lane: string) => void,
): Promise<Reply<'job.promote'>> {
  const outcomes: PromoteOutcome[] = ids.map(() => 'not_found')
  for (const { lane, items } of groupByLane(ids, (id) => id)) {
    for (const chunk of chunksOf(items, BATCH.moves, () => 0)) {
      const letters = textOf(
        await session.run(
          'job_promote',
          lane,
          chunk.map(({ local }) => local),
        ),
      )
      if (letters.includes('p')) onReady(lane)
      chunk.forEach(({ item, index }, place) => {
        outcomes[index] = sound(meaningOf(PROMOTED, letters[place]), item)
      })
    }
  }
  return { outcomes }
}

export interface ControlContext {
  readonly session: RedisSession
  readonly registry: LaneRegistry
  readonly onReady: (lane: string) => void
}

/** One bounded step over all lanes. */
export async function maintain(
  { session, registry, onReady }: ControlContext,
  request: Request<'store.maintain'>,
): Promise<Reply<'store.maintain'>> {
  const { limit, keepCounts } = request
  const total = { pruned: 0, outputsDropped: 0, promoted: 0, deadlined: 0, more: false }
  for (const lane of await registry.list()) {
    const left = limit - total.pruned - total.outputsDropped
    if (left <= 0) {
      total.more = true
      break
    }
    const reply = listOf(await session.run('lane_maintain', lane, [Math.min(left, BATCH.settlements)]))
    const [pruned = 0, dropped = 0, promoted = 0, isMore = 0, hasDeadlines = 0] = reply.map(numberOf)
    total.pruned += pruned
    total.outputsDropped += dropped
    total.promoted += promoted
    total.more ||= isMore === 1 || promoted >= PROMOTED_MAX
    if (promoted > 0) onReady(lane)
    const room = Math.min(left - pruned - dropped, BATCH.settlements)
    const trimmed = await trim(session, lane, { counts: countsIn(keepCounts, lane), limit: room })
    total.pruned += trimmed
    total.more ||= trimmed > 0 && trimmed >= room
    if (hasDeadlines === 1) {
      const dead = listOf(
        await session.run('lane_bury', lane, [BATCH.buried, keepDeadIn(request, lane) ?? '', DEADLINE_PASSED]),
      )
      total.deadlined += dead.length
      total.more ||= dead.length >= BATCH.buried
    }
  }
  if (!total.more) await registry.dropUnused(await serverTimeMs(session))
  return total
}

interface Trim {
  readonly counts: StateCounts | null
  readonly limit: number
}

async function trim(session: RedisSession, lane: string, { counts, limit }: Trim): Promise<number> {
  if (counts === null || limit <= 0) return 0
  const { completed, cancelled, dlq } = counts
  if (completed === null && cancelled === null && dlq === null) return 0
  return numberOf(await session.run('lane_trim', lane, [completed ?? '', cancelled ?? '', dlq ?? '', limit]))
}

/** As in `lane_maintain.lua`, for each of both sets. */
const PROMOTED_MAX = 500

async function serverTimeMs(session: RedisSession): Promise<number> {
  const [seconds, microseconds] = listOf(await session.servers.command('TIME', '', []))
  return numberOf(seconds) * 1_000 + Math.floor(numberOf(microseconds) / 1_000)
}

export async function health(
  session: RedisSession,
  { rights = false }: Request<'store.health'>,
): Promise<Reply<'store.health'>> {
  const nowMs = await serverTimeMs(session)
  const { version, isCluster, maxmemoryPolicy, isAofEnabled, appendFsync, waitReplicas } = session.servers.facts()
  return {
    nowMs,
    details: {
      version,
      cluster: isCluster,
      maxmemoryPolicy,
      aof: isAofEnabled,
      appendFsync,
      waitReplicas,
      hints: session.servers.isWaiting,
      keyspace: KEYSPACE_VERSION,
      ...(rights ? { missingRights: await missingRights(session) } : {}),
    },
  }
}
