/** What the doctor looks at in the work itself: who does it, what waits for nobody, leases that ran out, dead letters. */
import { type Holdfast, type LaneStats, VERSION, type WorkerInfo } from '../../index.ts'
import { showNumber, showSpan } from '../text.ts'
import { type Attempt, type Check, note, ok, wrong } from './check.ts'

const EXPIRED_LONG_MS = 60_000
const WAITED_LONG_MS = 60_000
const CLOCK_BACK_MS = 60_000
const PAGES_MAX = 20
/** Enough to see past the trial jobs of several doctors. */
const NEWEST_MAX = 10
const NAMES_MAX = 5
/** Of the trial job, which comes and goes while the rest is looked at. */
export const TRIAL_LANE = 'holdfast.doctor'

/** All at once, so that a store that answers nothing is told of after one deadline. `now` is the store's. */
export function checkWork(store: Holdfast, now: number, attempt: Attempt): readonly Promise<Check>[] {
  const workers = store.workers()
  return [
    attempt('workers', async () => checkWorkers(await workers)),
    attempt('versions', async () => checkVersions(await workers)),
    attempt('lanes', async () => checkLanes(await store.lanes(), await workers)),
    attempt('leases', () => checkLeases(store, now)),
    attempt('newest job', () => checkNewest(store, now)),
    attempt('dead letters', () => checkDeadLetters(store)),
  ]
}

function checkWorkers(workers: readonly WorkerInfo[]): Check {
  const silent = workers.filter(({ isAlive }) => !isAlive)
  const found = `${showNumber(workers.length - silent.length)} live`
  if (silent.length === 0) return ok('workers', found)
  const text = `${found}, ${showNumber(silent.length)} not heard of: ${names(silent.map(({ id }) => id))}`
  return note('workers', text, 'they died, hang, or cannot reach the store: look at their processes and hosts')
}

function checkVersions(workers: readonly WorkerInfo[]): Check {
  const others = new Set(
    workers.filter(({ isAlive, version }) => isAlive && version !== VERSION).map((each) => each.version),
  )
  if (others.size === 0) return ok('versions', `holdfast ${VERSION}`)
  const text = `holdfast ${VERSION} here, live workers with ${names([...others].sort())}`
  return note('versions', text, 'in a rolling upgrade that passes; else bring all processes to one version')
}

/** A lane that is paused waits because somebody wants it to. */
function checkLanes(all: readonly LaneStats[], workers: readonly WorkerInfo[]): Check {
  const lanes = all.filter(({ lane }) => lane !== TRIAL_LANE)
  const live = workers.filter(({ isAlive, isStopping }) => isAlive && !isStopping)
  const isServed = (lane: string): boolean => live.some((each) => each.lanes.includes(lane) || each.moreLanes > 0)
  const waiting = lanes.filter(({ paused, counts }) => !paused && counts.queued > 0)
  const lonely = waiting.filter(({ lane }) => !isServed(lane))
  const paused = lanes.filter((lane) => lane.paused && lane.counts.queued > 0)
  if (lonely.length > 0) {
    const text = `no live worker for ${names(lonely.map(({ lane, counts }) => `${lane} (${showNumber(counts.queued)} ready)`))}`
    const oldestMs = Math.max(...lonely.map(({ oldestReadyMs }) => oldestReadyMs ?? 0))
    const make = oldestMs > WAITED_LONG_MS ? wrong : note
    return make('lanes', `${text}, the oldest since ${showSpan(oldestMs)}`, 'start workers for these lanes')
  }
  if (paused.length === 0) return ok('lanes', `${showNumber(lanes.length)}, none with ready jobs and no worker`)
  const text = `paused with ready jobs: ${names(paused.map(({ lane, counts }) => `${lane} (${showNumber(counts.queued)})`))}`
  return note('lanes', text, 'holdfast resume LANE when what they were paused for is over')
}

async function checkLeases(store: Holdfast, now: number): Promise<Check> {
  let running = 0
  let expired = 0
  let longestMs = 0
  let cursor: string | null = null
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const found: Awaited<ReturnType<Holdfast['list']>> = await store.list({ state: 'running', limit: 500, cursor })
    running += found.jobs.length
    for (const { leaseExpiresAt } of found.jobs) {
      const overMs = now - (leaseExpiresAt ?? Number.POSITIVE_INFINITY)
      if (overMs <= 0) continue
      expired += 1
      longestMs = Math.max(longestMs, overMs)
    }
    cursor = found.cursor
    if (cursor === null) break
  }
  const found = `${showNumber(running)} running, ${showNumber(expired)} with an expired lease`
  if (expired === 0) return ok('leases', found)
  const advice = 'their workers died and no other took them back: start a worker, or run holdfast maintain'
  const text = `${found}, the oldest since ${showSpan(longestMs)}`
  return longestMs > EXPIRED_LONG_MS ? wrong('leases', text, advice) : note('leases', text, advice)
}

async function checkNewest(store: Holdfast, now: number): Promise<Check> {
  const { jobs } = await store.list({ limit: NEWEST_MAX })
  const newest = jobs.find(({ lane }) => lane !== TRIAL_LANE)
  if (newest === undefined) return ok('newest job', 'none')
  const aheadMs = newest.createdAt - now
  const found = new Date(newest.createdAt).toISOString()
  if (aheadMs <= CLOCK_BACK_MS) return ok('newest job', found)
  const advice = 'the clock of the store was set back; compare it with others'
  return wrong('newest job', `${found}, ${showSpan(aheadMs)} ahead of the store's clock`, advice)
}

async function checkDeadLetters(store: Holdfast): Promise<Check> {
  const { counts } = await store.stats()
  if (counts.dlq === 0) return ok('dead letters', 'none')
  const advice = 'look at them with holdfast dlq, mend the cause, then holdfast replay ID'
  return note('dead letters', showNumber(counts.dlq), advice)
}

function names(all: readonly string[]): string {
  const listed = all.slice(0, NAMES_MAX).join(', ')
  return all.length > NAMES_MAX ? `${listed} and ${all.length - NAMES_MAX} more` : listed
}
