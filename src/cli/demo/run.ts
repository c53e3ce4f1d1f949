/**
 * A run of the demo: found when one of the same folder has not ended, else made. All of it is in the store: the scan job that
 * starts it, its lane, and the report job whose end is its end. Two processes that start at once make the same run, since
 * they give the scan the same lane and idempotency key.
 */
import { createHash } from 'node:crypto'
import type { Holdfast, JobId, JobRecord } from '../../index.ts'
import { reportJob, type ScanInput, scanJob } from './contracts.ts'

/** Ended jobs are kept this long, so a run left alone for longer cannot be counted any more and is not resumed. */
export const KEEP_DAYS = 30
const RESUME_MS_MAX = 7 * 86_400_000

export interface Run {
  readonly number: number
  readonly lane: string
  readonly scanId: JobId
  /** True when the run was there already. */
  readonly isResumed: boolean
}

export async function findOrStartRun(store: Holdfast, input: ScanInput): Promise<Run> {
  const latest = await findLatest(store, input)
  if (latest !== null && !(await isOver(store, latest.scan))) {
    return { number: latest.number, lane: latest.scan.lane, scanId: latest.scan.id, isResumed: true }
  }
  const number = (latest?.number ?? 0) + 1
  const lane = laneOf(input, number)
  const handle = await store.enqueue(scanJob, input, {
    queue: lane,
    idempotencyKey: 'scan',
    metadata: { ...placeOf(input), run: number },
    // The folder is looked at first: without it there is nothing to show.
    priority: 10,
  })
  return { number, lane, scanId: handle.id, isResumed: handle.deduplicated }
}

const placeOf = ({ folder, mode }: ScanInput) => ({ folder, mode })

function laneOf({ folder, mode }: ScanInput, number: number): string {
  const place = createHash('sha256').update(`${mode}:${folder}`).digest('hex').slice(0, 10)
  return `demo-${place}-${number}`
}

async function findLatest(
  store: Holdfast,
  input: ScanInput,
): Promise<{ readonly scan: JobRecord; readonly number: number } | null> {
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<Holdfast['list']>> = await store.list({ type: scanJob.type, limit: 500, cursor })
    for (const scan of page.jobs) {
      const { metadata } = scan
      const number = metadata?.run
      if (metadata?.folder === input.folder && metadata.mode === input.mode && typeof number === 'number') {
        return { scan, number }
      }
    }
    cursor = page.cursor
  } while (cursor !== null)
  return null
}

/** A run is over when its report was made, when its scan failed for good, or when it was left alone for too long. */
async function isOver(store: Holdfast, scan: JobRecord): Promise<boolean> {
  if (scan.state === 'dlq' || scan.state === 'cancelled' || Date.now() - scan.createdAt > RESUME_MS_MAX) return true
  const { jobs } = await store.list({ lane: scan.lane, type: reportJob.type, state: ['completed', 'cancelled', 'dlq'] })
  return jobs.length > 0
}
