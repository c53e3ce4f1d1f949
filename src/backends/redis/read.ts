/** Reads: jobs with all their columns, their attempts, pages of a list, counts. Reads never write. */
import type { AttemptRecord, JobState, Payload } from '../../job.ts'
import type { LaneStats, Reply, StoredJob } from '../protocol/index.ts'
import { unpackDefinition } from './definition.ts'
import { parseAttempts, parseFailure, parseRun, parseTerms, type Run } from './record.ts'
import { bufferOf, listOf, numberOf, optionalNumber, optionalText, textOf } from './reply.ts'
import type { RedisReply } from './servers.ts'
import { BATCH, chunksOf, groupByLane, type RedisSession } from './session.ts'

/** A job and its attempts, from one look at its columns. */
export interface JobView {
  readonly job: StoredJob
  readonly sequence: number
  readonly attempts: readonly AttemptRecord[]
}

const TERMINAL: Readonly<Record<string, JobState>> = { C: 'completed', K: 'cancelled', D: 'dlq' }

function stateOf(run: Run | null, place: string): JobState {
  if (run !== null) {
    if (run.state === 'R' || run.state === 'X') return 'running'
    const terminal = TERMINAL[run.state]
    if (terminal !== undefined) return terminal
  }
  return place === 's' ? 'scheduled' : place === 'w' ? 'retry_wait' : 'queued'
}

/** A value behind the letter of its kind; null: none. */
function storedValue(reply: RedisReply | undefined): Payload | null {
  if (reply === null || reply === undefined) return null
  const bytes = bufferOf(reply)
  if (bytes.length === 0 || bytes[0] === 'u'.charCodeAt(0)) return ''
  return bytes[0] === 'b'.charCodeAt(0) ? Uint8Array.from(bytes.subarray(1)) : bytes.toString('utf8', 1)
}

/** The columns as `job_read.lua` lists them. */
interface Columns {
  readonly run: Run | null
  readonly state: JobState
  readonly placedAt: number | null
  readonly leaseExpiresAt: number | null
}

function viewOf(id: string, lane: string, reply: readonly RedisReply[]): JobView {
  const [definition, run, place, placedAt, lease, failure, terms, output, progress, history] = reply
  const runText = optionalText(run)
  const parsed = runText === null ? null : parseRun(runText)
  const columns: Columns = {
    run: parsed,
    state: stateOf(parsed, textOf(place)),
    placedAt: optionalNumber(placedAt),
    leaseExpiresAt: optionalNumber(lease),
  }
  const failureText = optionalText(failure)
  const termsText = optionalText(terms)
  const stored = unpackDefinition(bufferOf(definition))
  const settled = termsText === null ? null : parseTerms(termsText)
  const { options } = stored
  const job: StoredJob = {
    id,
    type: stored.type,
    lane,
    state: columns.state,
    priority: stored.priority,
    createdAt: stored.createdAt,
    updatedAt: parsed?.updatedAt ?? stored.createdAt,
    runAt: parsed?.runAt ?? columns.placedAt ?? stored.runAt,
    deadlineAt: stored.deadlineAt,
    timeoutMs: options.timeoutMs ?? null,
    attempts: parsed?.attempts ?? 0,
    maxAttempts: settled?.maxAttempts ?? stored.maxAttempts,
    maxAttemptsFixed: options.maxAttemptsFixed ?? false,
    crashes: parsed?.crashes ?? 0,
    maxCrashes: stored.maxCrashes,
    retry: settled?.retry ?? options.retry ?? null,
    idempotencyKey: options.idempotencyKey ?? null,
    concurrencyKey: options.concurrencyKey ?? null,
    metadata: options.metadata ?? null,
    traceId: options.traceId ?? null,
    replayOf: options.replayOf ?? null,
    workerId: parsed?.workerId ?? null,
    leaseEpoch: parsed?.leaseEpoch ?? null,
    leaseExpiresAt: columns.state === 'running' ? columns.leaseExpiresAt : null,
    startedAt: parsed?.startedAt ?? null,
    finishedAt: parsed?.ending ? parsed.updatedAt : null,
    cancelRequested: parsed?.state === 'X' || parsed?.ending?.cancelRequested === true,
    lastFailure: failureText === null ? null : parseFailure(failureText),
    dlqCode: parsed?.ending?.dlqCode ?? null,
    keepResultMs: options.keepResultMs ?? null,
    payload: stored.payload,
    output: parsed?.ending?.isOutputNothing === true ? '' : storedValue(output),
    progress: storedValue(progress),
  }
  return { job, sequence: stored.sequence, attempts: attemptsOf(job, columns, optionalText(history)) }
}

/** The attempts in order; the one that runs, or that completed the job, is read off the run. */
function attemptsOf(job: StoredJob, { run }: Columns, history: string | null): readonly AttemptRecord[] {
  const past = history === null ? [] : parseAttempts(history)
  if (run === null || (job.state !== 'running' && job.state !== 'completed')) return past
  const last: AttemptRecord = {
    attempt: job.attempts,
    outcome: job.state === 'running' ? 'running' : 'succeeded',
    workerId: job.workerId ?? '',
    leaseEpoch: job.leaseEpoch ?? 0,
    startedAt: job.startedAt ?? job.updatedAt,
    finishedAt: job.finishedAt,
    durationMs: run.ending?.durationMs ?? null,
    failure: null,
  }
  return [...past, last]
}

/** Jobs in the order asked; null: not there. */
export async function readJobs(
  session: RedisSession,
  ids: readonly string[],
  withValues: boolean,
): Promise<readonly (JobView | null)[]> {
  const views: (JobView | null)[] = ids.map(() => null)
  const calls = groupByLane(ids, (id) => id).flatMap(({ lane, items }) =>
    chunksOf(items, withValues ? BATCH.values : BATCH.reads, () => 0).map(async (chunk) => {
      const reply = listOf(
        await session.run('job_read', lane, [withValues ? 1 : 0, ...chunk.map(({ local }) => local)]),
      )
      chunk.forEach(({ item, index }, place) => {
        const columns = reply[place]
        views[index] = columns === null || columns === undefined ? null : viewOf(item, lane, listOf(columns))
      })
    }),
  )
  await Promise.all(calls)
  return views
}

/** Sizes of the sets of lanes. */
export async function readStats(session: RedisSession, lanes: readonly string[]): Promise<Reply<'queue.stats'>> {
  const stats = await Promise.all(
    lanes.map(async (lane): Promise<LaneStats> => {
      const reply = listOf(await session.run('lane_stats', lane, []))
      const [paused, , queued, scheduled, retryWait, running, completed, cancelled, dlq, oldest, now] = reply
      const oldestAt = optionalNumber(oldest)
      return {
        lane,
        paused: numberOf(paused) === 1,
        counts: {
          waiting: 0,
          scheduled: numberOf(scheduled),
          queued: numberOf(queued),
          running: numberOf(running),
          retry_wait: numberOf(retryWait),
          completed: numberOf(completed),
          cancelled: numberOf(cancelled),
          dlq: numberOf(dlq),
        },
        oldestReadyMs: oldestAt === null ? null : numberOf(now) - oldestAt,
      }
    }),
  )
  return { lanes: stats }
}
