/** What running jobs say of themselves, and reading their logs. The lines of a job are one text of a hash, trimmed as it grows. */
import { HoldfastError } from '../../errors.ts'
import type { JobState } from '../../job.ts'
import type { LogQuery, Note, Reply, Request, StoredLine, Verdict } from '../protocol/index.ts'
import { listOf, meaningOf, optionalText, textOf } from './reply.ts'
import type { RedisArgument } from './servers.ts'
import { BATCH, chunksOf, groupByLane, type RedisSession } from './session.ts'

const NOTED: Readonly<Record<string, Verdict>> = { a: 'applied', l: 'leaseLost', g: 'gone' }

/**
 * What a note adds to a call. Its lines are put behind those that are there, so these count too: as many as the attempt has logged, as
 * long as those at hand, and something for earlier attempts, of which nothing is known here.
 */
export function noteBytes({ progress, lines, keepLines }: Note): number {
  const reported = progress?.length ?? 0
  const last = lines.at(-1)
  if (last === undefined) return reported
  const own = lines.reduce((sum, { text }) => sum + text.length, 0)
  const stored = Math.min(keepLines, last.number) * Math.max(LINE_BYTES_MIN, own / lines.length)
  return reported + own + stored + keepLines * EARLIER_BYTES_A_LINE
}

const LINE_BYTES_MIN = 150
const EARLIER_BYTES_A_LINE = 40

/** The arguments of one note, as `note.lua` takes them. */
export function noteArguments(
  { progress, lines, keepLines }: Note,
  { local, token }: { readonly local: string; readonly token: string },
): readonly RedisArgument[] {
  const epoch = token.slice(0, token.indexOf(':'))
  return [
    local,
    token,
    progress === null ? '' : valueArgument(progress),
    keepLines,
    lines.length,
    ...lines.map(({ number, text }) => `${epoch} ${number} ${text}`),
  ]
}

/** A value with the letter of its kind in front. */
function valueArgument(value: string | Uint8Array): string | Uint8Array {
  if (typeof value === 'string') return value === '' ? 'u' : `j${value}`
  return Buffer.concat([Buffer.from('b'), value])
}

export async function note(session: RedisSession, { notes }: Request<'job.note'>): Promise<Reply<'job.note'>> {
  const verdicts: Verdict[] = notes.map(() => 'gone')
  const calls = groupByLane(notes, ({ id }) => id).flatMap(({ lane, items }) =>
    chunksOf(items, BATCH.notes, ({ item }) => noteBytes(item)).map(async (chunk) => {
      const args = chunk.flatMap(({ item, local }) => noteArguments(item, { local, token: item.token }))
      const letters = textOf(await session.run('job_note', lane, [chunk.length, ...args]))
      chunk.forEach(({ index }, place) => {
        verdicts[index] = meaningOf(NOTED, letters[place])
      })
    }),
  )
  await Promise.all(calls)
  return { verdicts }
}

const LINE = /^(\d+) (\d+) ([\s\S]*)$/

export async function logs(session: RedisSession, { queries }: Request<'job.logs'>): Promise<Reply<'job.logs'>> {
  const found: (readonly StoredLine[])[] = queries.map(() => [])
  const calls = groupByLane(queries, ({ id }) => id).flatMap(({ lane, items }) =>
    chunksOf(items, BATCH.values, () => 0).map(async (chunk) => {
      const ids = chunk.map(({ local }) => local)
      const texts = listOf(await session.run('job_logs', lane, ids))
      chunk.forEach(({ item, index }, place) => {
        found[index] = linesOf(optionalText(texts[place]), item)
      })
    }),
  )
  await Promise.all(calls)
  return { logs: found }
}

function linesOf(text: string | null, { id, after, limit }: LogQuery): readonly StoredLine[] {
  if (text === null) return []
  const lines = text
    .split('\n')
    .slice(1, -1)
    .map((line) => lineOf(line, id))
  if (after === null) return lines.slice(0, limit)
  const isBehind = ({ leaseEpoch, number }: StoredLine): boolean =>
    leaseEpoch > after.leaseEpoch || (leaseEpoch === after.leaseEpoch && number > after.number)
  return lines.filter(isBehind).slice(0, limit)
}

function lineOf(line: string, id: string): StoredLine {
  const match = LINE.exec(line)
  if (match === null)
    throw new HoldfastError('STORE_CORRUPT', 'the Redis store holds a damaged log of a job', {
      details: { outcome: 'refused', id },
    })
  const [, epoch, number, text = ''] = match
  return { leaseEpoch: Number(epoch), number: Number(number), text }
}

const STATES: Readonly<Record<string, JobState | null>> = {
  n: null,
  r: 'running',
  q: 'queued',
  s: 'scheduled',
  w: 'retry_wait',
  c: 'completed',
  k: 'cancelled',
  d: 'dlq',
}

export async function states(session: RedisSession, { ids }: Request<'job.states'>): Promise<Reply<'job.states'>> {
  const found: (JobState | null)[] = ids.map(() => null)
  const calls = groupByLane(ids, (id) => id).flatMap(({ lane, items }) =>
    chunksOf(items, BATCH.leases, () => 0).map(async (chunk) => {
      const args = chunk.map(({ local }) => local)
      const letters = textOf(await session.run('job_states', lane, args))
      chunk.forEach(({ index }, place) => {
        found[index] = meaningOf(STATES, letters[place])
      })
    }),
  )
  await Promise.all(calls)
  return { states: found }
}
