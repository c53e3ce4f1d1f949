/** How many ready jobs come before one: only the head of its lane is read, so the price is bounded however many wait. */
import type { JobId } from '../../job.ts'
import type { Reply, Request } from '../protocol/index.ts'
import { readJobs } from './read.ts'
import { listOf, numberOf, optionalNumber, textOf } from './reply.ts'
import { localId, type RedisSession } from './session.ts'

/** Digits of the time and of the sequence in front of an id. */
const PREFIX_CHARS = 27
const GAPS_MAX = 10_000

interface Waiting {
  /** Lower comes first. */
  readonly rank: number
  /** Time, sequence and id: sorts as they do. */
  readonly entry: string
}

export async function ahead(session: RedisSession, { ids, limit }: Request<'job.ahead'>): Promise<Reply<'job.ahead'>> {
  const views = await readJobs(session, ids, false)
  const isReady = (index: number): boolean =>
    views[index]?.job.state === 'queued' && views[index].job.concurrencyKey === null
  return { ahead: await Promise.all(ids.map((id, index) => (isReady(index) ? aheadOf(session, id, limit) : null))) }
}

async function aheadOf(session: RedisSession, id: JobId, limit: number): Promise<number | null> {
  const name = localId(id)
  if (name === null) return null
  const head = await headOf(session, name.lane, limit)
  const place = head.findIndex(({ entry }) => entry.slice(PREFIX_CHARS) === name.local)
  return place === -1 ? limit : Math.min(place, limit)
}

/** The ready jobs in order, those without a priority and all others merged; at least the first `limit`. */
async function headOf(session: RedisSession, lane: string, limit: number): Promise<readonly Waiting[]> {
  const keys = session.keys(lane)
  const [meta, fifo, ready] = [keys.key('meta'), keys.key('fifo'), keys.key('ready')]
  // Places of jobs that were cancelled.
  const gaps = optionalNumber(await session.servers.command('HGET', meta, [meta, 'removed'])) ?? 0
  const [plain, ranked] = await Promise.all([
    session.servers.command('LRANGE', fifo, [fifo, 0, limit + Math.min(gaps, GAPS_MAX)]),
    session.servers.command('ZRANGE', ready, [ready, 0, limit, 'WITHSCORES']),
  ])
  const waiting = listOf(plain)
    .map((reply): Waiting => ({ rank: 0, entry: textOf(reply) }))
    .filter(({ entry }) => entry.length > PREFIX_CHARS)
  const scored = listOf(ranked)
  for (let at = 0; at + 1 < scored.length; at += 2)
    waiting.push({ rank: numberOf(scored[at + 1]), entry: textOf(scored[at]) })
  return waiting.sort((a, b) => a.rank - b.rank || (a.entry < b.entry ? -1 : 1))
}
