/** Pages of jobs, newest first, of one lane or merged from all. Each lane has its own order, so the cursor names a place in each. */
import { invalidArgument } from '../../errors.ts'
import type { JobState } from '../../job.ts'
import type { Reply, Request, StoredJob } from '../protocol/index.ts'
import { type JobView, readJobs } from './read.ts'
import { listOf, numberOf, textOf } from './reply.ts'
import type { RedisSession } from './session.ts'

/** Where jobs of a state may be found, as letters for `job_list.lua`. */
const SOURCES: Readonly<Record<JobState, string>> = {
  waiting: '',
  scheduled: 'a',
  queued: 'fa',
  running: 'l',
  retry_wait: 'a',
  completed: 'c',
  cancelled: 'k',
  dlq: 'd',
}
const EVERYWHERE = 'falckd'

const sourcesOf = (states: readonly JobState[] | null): string =>
  states === null ? EVERYWHERE : [...new Set(states.flatMap((state) => [...SOURCES[state]]))].join('')

interface Candidate {
  readonly id: string
  readonly sequence: number
}

interface LanePage {
  readonly views: readonly JobView[]
  /** Everything of the lane before this sequence is still unread; null: nothing is. */
  readonly before: number | null
}

/** Pages of one lane newest first. A filter by type may look at many jobs, so a page may have fewer than asked and still go on. */
async function readLanePage(
  session: RedisSession,
  lane: string,
  { query, before }: { readonly query: Request<'job.list'>; readonly before: number },
): Promise<LanePage> {
  const reply = listOf(await session.run('job_list', lane, [before, query.limit + 1, sourcesOf(query.states)]))
  const [ids = [], sequences] = reply.map(listOf)
  const found = ids.map((id, index): Candidate => ({ id: `${lane}/${textOf(id)}`, sequence: numberOf(sequences?.[index]) }))
  const inOrder = found.sort((a, b) => b.sequence - a.sequence).slice(0, query.limit + 1)
  const views = await readJobs(
    session,
    inOrder.map(({ id }) => id),
    false,
  )
  const last = inOrder.at(-1)
  return {
    views: views.flatMap((view) => (view !== null && isWanted(view.job, query) ? view : [])),
    before: last === undefined || inOrder.length <= query.limit ? null : last.sequence,
  }
}

const isWanted = ({ state, type }: StoredJob, query: Request<'job.list'>): boolean =>
  (query.states === null || query.states.includes(state)) && (query.type === null || query.type === type)

const byAge = (a: JobView, b: JobView): number =>
  b.job.createdAt - a.job.createdAt || (a.job.lane === b.job.lane ? b.sequence - a.sequence : a.job.id < b.job.id ? 1 : -1)

/** Looks at one lane at most, so that a page ends in time when hardly anything fits the filter. */
const LOOKS_MAX = 20

/** Merges the newest of all lanes. The cursor says for each lane where it goes on. */
export async function listJobs(
  session: RedisSession,
  query: Request<'job.list'>,
  lanes: readonly string[],
): Promise<Reply<'job.list'>> {
  const positions = readCursor(query.cursor)
  const pages = await Promise.all(
    lanes.map(async (lane) => ({ lane, ...(await fillPage(session, lane, { query, before: positions[lane] ?? null })) })),
  )
  const merged = pages.flatMap(({ views }) => views).sort(byAge)
  const page = merged.slice(0, query.limit)
  const shown = new Set(page)
  const next: Record<string, number> = {}
  for (const { lane, views, before } of pages) {
    const left = views.find((view) => !shown.has(view))
    if (left !== undefined) next[lane] = left.sequence + 1
    else if (before !== null) next[lane] = before
    else next[lane] = 0
  }
  const isOver = Object.values(next).every((before) => before === 0)
  return { jobs: page.map(({ job }) => ({ ...job, payload: '', output: null })), cursor: isOver ? null : encodeCursor(next) }
}

async function fillPage(
  session: RedisSession,
  lane: string,
  { query, before }: { readonly query: Request<'job.list'>; readonly before: number | null },
): Promise<LanePage> {
  if (before === 0) return { views: [], before: null }
  let from: number | null = before ?? Number.MAX_SAFE_INTEGER
  const views: JobView[] = []
  for (let looks = 0; from !== null && views.length <= query.limit && looks < LOOKS_MAX; looks += 1) {
    const part: LanePage = await readLanePage(session, lane, { query, before: from })
    views.push(...part.views)
    from = part.before
  }
  return { views, before: from }
}

const encodeCursor = (next: Readonly<Record<string, number>>): string =>
  Buffer.from(JSON.stringify(next)).toString('base64url')

function readCursor(cursor: string | null): Readonly<Record<string, number>> {
  if (cursor === null) return {}
  try {
    const positions: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    if (typeof positions === 'object' && positions !== null) return positions as Record<string, number>
  } catch {
    // Falls through: whatever it is, no page of this store ended with it.
  }
  throw invalidArgument('cursor', 'expected the cursor of the page before')
}
