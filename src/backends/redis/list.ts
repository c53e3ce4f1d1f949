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
  const found = ids.map(
    (id, index): Candidate => ({ id: `${lane}/${textOf(id)}`, sequence: numberOf(sequences?.[index]) }),
  )
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

/** Looks at one lane at most, so that a page ends in time when hardly anything fits the filter. */
const LOOKS_MAX = 20

interface LaneReading extends LanePage {
  readonly lane: string
}

/** Merges the newest of all lanes: each keeps its own order, and the lane whose next job is youngest goes first. */
export async function listJobs(
  session: RedisSession,
  query: Request<'job.list'>,
  lanes: readonly string[],
): Promise<Reply<'job.list'>> {
  const positions = readCursor(query.cursor)
  const readings = await Promise.all(
    lanes.map(async (lane): Promise<LaneReading> => {
      const before = positions.get(lane) ?? Number.MAX_SAFE_INTEGER
      return { lane, ...(await fillPage(session, lane, { query, before })) }
    }),
  )
  const taken = new Map(lanes.map((lane) => [lane, 0]))
  const page: JobView[] = []
  while (page.length < query.limit) {
    const next = youngest(readings, taken)
    if (next === null) break
    taken.set(next.job.lane, (taken.get(next.job.lane) ?? 0) + 1)
    page.push(next)
  }
  const places = readings.map(({ lane, views, before }): Place => {
    const left = views[taken.get(lane) ?? 0]
    return [lane, left === undefined ? (before ?? 0) : left.sequence + 1]
  })
  const isOver = places.every(([, before]) => before === 0)
  const jobs = page.map(({ job }) => ({ ...job, payload: '', output: null }))
  return { jobs, cursor: isOver ? null : encodeCursor(places) }
}

function youngest(readings: readonly LaneReading[], taken: ReadonlyMap<string, number>): JobView | null {
  let best: JobView | null = null
  for (const { lane, views } of readings) {
    const view = views[taken.get(lane) ?? 0]
    if (view !== undefined && (best === null || view.job.createdAt > best.job.createdAt)) best = view
  }
  return best
}

async function fillPage(
  session: RedisSession,
  lane: string,
  { query, before }: { readonly query: Request<'job.list'>; readonly before: number },
): Promise<LanePage> {
  if (before === 0) return { views: [], before: null }
  let from: number | null = before
  const views: JobView[] = []
  for (let looks = 0; from !== null && views.length <= query.limit && looks < LOOKS_MAX; looks += 1) {
    const part: LanePage = await readLanePage(session, lane, { query, before: from })
    views.push(...part.views)
    from = part.before
  }
  return { views, before: from }
}

/** A lane and the sequence before which it goes on; 0: it is read to its end. */
type Place = readonly [lane: string, before: number]

const encodeCursor = (places: readonly Place[]): string => Buffer.from(JSON.stringify(places)).toString('base64url')

function readCursor(cursor: string | null): ReadonlyMap<string, number> {
  if (cursor === null) return new Map()
  try {
    const places: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    if (Array.isArray(places) && places.every(isPlace)) return new Map(places)
  } catch {
    // Falls through: whatever it is, no page of this store ended with it.
  }
  throw invalidArgument('cursor', 'expected the cursor of the page before')
}

const isPlace = (value: unknown): value is Place =>
  Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && Number.isSafeInteger(value[1])
