/**
 * The Redis store as the model compares it: on a server whose clock stands still, and with what it may do otherwise. The time of the last
 * change of a job that became due by itself is that of its last write; jobs of different lanes that were made in one millisecond
 * are listed in any order; and a claim that is full, or to which a lane has nothing to give, leaves that lane as it is.
 */
import { randomBytes } from 'node:crypto'
import type { BackendOptions } from '#dist/src/backends/backend.js'
import type { MessageType, Reply, Request, StoredJob } from '#dist/src/backends/protocol/index.js'
import { RedisBackend } from '#dist/src/backends/redis/backend.js'
import { parseRedisUrl } from '#dist/src/backends/redis/url.js'
import { type Answers, likewise, type Subject } from '../model/store-pair.ts'
import type { ServerClock } from '../support/clock/server-clock.ts'
import { storeOptions } from '../support/store-options.ts'

export const START_MS = 1_800_000_000_000

export function openBackend(
  url: string,
  namespace: string,
  options: Partial<BackendOptions> = {},
): Promise<RedisBackend> {
  return RedisBackend.open({ ...storeOptions(namespace, options), location: parseRedisUrl(url) })
}

export interface RedisSubject extends Subject {
  readonly namespace: string
  close(): Promise<void>
}

/** A fresh namespace on the server, at the same time as ever. */
export async function openSubject(url: string, clock: ServerClock): Promise<RedisSubject> {
  clock.freeze(START_MS)
  const namespace = `model-${randomBytes(6).toString('hex')}`
  const backend = await openBackend(url, namespace)
  return {
    namespace,
    clock,
    call: (type, request) => backend.call(type, request),
    excuse,
    isBehind,
    close: () => backend.close(),
  }
}

const replyOf = <T extends MessageType>(_type: T, reply: Reply<MessageType>): Reply<T> => reply as Reply<T>

function excuse({ type, request, actual, expected }: Answers): Reply<MessageType> {
  if (type === 'job.get') return excuseJobs(replyOf(type, actual), replyOf(type, expected))
  if (type === 'job.list') {
    const [reply, wanted] = [replyOf(type, actual), replyOf(type, expected)]
    if (isNewestFirst(wanted.jobs) && !isNewestFirst(reply.jobs)) return actual
    return excuseJobs({ ...reply, jobs: likewise(reply.jobs, wanted.jobs) }, wanted)
  }
  return type === 'job.turn'
    ? excuseTurn(request as Request<'job.turn'>, replyOf(type, actual), replyOf(type, expected))
    : actual
}

function excuseJobs<R extends { readonly jobs: readonly (StoredJob | null)[] }>(actual: R, expected: R): R {
  const jobs = actual.jobs.map((job, index) => {
    const wanted = expected.jobs[index]
    const isDue = job?.state === 'queued' && wanted?.state === 'queued' && job.runAt >= job.updatedAt
    return isDue && wanted.updatedAt >= job.runAt ? { ...job, updatedAt: wanted.updatedAt } : job
  })
  return { ...actual, jobs }
}

/** Not where the clock went back in between. */
const isNewestFirst = (jobs: readonly StoredJob[]): boolean =>
  jobs.every(({ createdAt }, index) => (jobs[index - 1]?.createdAt ?? createdAt) >= createdAt)

type Turn = Reply<'job.turn'>

/** Whether a claim of several lanes may have passed one by. */
function mayPassBy({ claims }: Request<'job.turn'>): boolean {
  return claims.some(({ lanes }) => lanes.length > 1)
}

function isBehind({ type, request }: Answers): boolean {
  return type === 'job.turn' && mayPassBy(request as Request<'job.turn'>)
}

function excuseTurn(request: Request<'job.turn'>, actual: Turn, expected: Turn): Turn {
  if (!mayPassBy(request)) return actual
  const buried = (turn: Turn): readonly string[] => turn.grants.flatMap(({ deadlined }) => deadlined)
  const [mine, theirs] = [buried(actual), buried(expected)]
  if (new Set(mine).size !== mine.length || !mine.every((id) => theirs.includes(id))) return actual
  const grants = actual.grants.map((grant, index) => {
    const wanted = expected.grants[index]
    const claim = request.claims[index]
    if (wanted === undefined || claim === undefined) return grant
    const isFull = grant.jobs.length >= claim.limit || (request.resend && grant.jobs.length > 0)
    const isOpen = isFull && (grant.more || !wanted.more)
    // What would have been buried in a lane that was passed by is still waiting for its time.
    const isSooner = mine.length < theirs.length && (grant.dueInMs ?? Infinity) <= (wanted.dueInMs ?? Infinity)
    const isSeen = (grant.limited ?? []).every((lane) => wanted.limited?.includes(lane))
    return {
      ...grant,
      ...(isSeen && wanted.limited !== undefined && { limited: wanted.limited }),
      deadlined: wanted.deadlined,
      dueInMs: isOpen || isSooner ? wanted.dueInMs : grant.dueInMs,
      more: isOpen ? wanted.more : grant.more,
    }
  })
  return { ...actual, grants }
}
