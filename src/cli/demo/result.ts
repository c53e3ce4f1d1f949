/** What one process of the demo says in the end: the numbers of `--json`, and the same told to people. */
import type { Explanation, Stats } from '../../index.ts'
import { JOB_STATES } from '../../index.ts'
import type { Cell, Output } from '../output.ts'
import { tellStory } from '../story.ts'
import { maskStoreUrl, shorten, showBytes, showNumber, showSpan } from '../text.ts'
import type { RunReport, Sums } from './report.ts'
import type { Run } from './run.ts'

/** The scan and the report themselves, which the lane counts too. */
const MACHINERY_JOBS = 2
const PATH_CHARS = 60

export interface Session {
  readonly run: Run
  readonly url: string
  readonly folder: string
  /** Of this process, on a clock that never goes back. */
  readonly elapsedMs: number
  /** Jobs of the run that had ended when this process came. */
  readonly doneBefore: number
}

/** Everything `holdfast demo --json` prints, documented in docs/cli.md. */
export interface DemoResult {
  readonly url: string
  readonly folder: string
  readonly run: number
  readonly lane: string
  /** True when the run was there already: its process was stopped, or still works on it. */
  readonly resumed: boolean
  readonly doneBefore: number
  readonly files: number
  readonly completed: number
  readonly failed: number
  readonly retried: number
  readonly dlq: number
  readonly crashes: number
  /** How many worker processes shared the run. */
  readonly workers: number
  readonly accepted: number
  /** Accepted jobs that are in no state: always 0, or Holdfast is broken. */
  readonly lost: number
  readonly jobsPerSecond: number
  readonly durationMs: number
  readonly elapsedMs: number
  readonly totals: Sums
  readonly extensions: RunReport['extensions']
  readonly largest: RunReport['largest']
  readonly extras: RunReport['extras']
}

interface ResultParts {
  readonly session: Session
  readonly report: RunReport
  readonly stats: Stats
}

export function toResult({ session, report, stats }: ResultParts): DemoResult {
  const { run, url, folder, elapsedMs, doneBefore } = session
  const { accepted, found, spanMs, files, completed, ...rest } = report
  // Counted twice, by reading every job and by the counters of the store; the worse answer counts.
  const counted = JOB_STATES.reduce((sum, state) => sum + stats.counts[state], 0) - MACHINERY_JOBS
  return {
    url: maskStoreUrl(url),
    folder,
    run: run.number,
    lane: run.lane,
    resumed: run.isResumed,
    doneBefore,
    files,
    completed,
    failed: Math.max(0, files - completed),
    retried: rest.retried,
    dlq: rest.dlq,
    crashes: rest.crashes,
    workers: rest.workers,
    accepted,
    lost: Math.max(0, accepted - Math.min(found, counted)),
    jobsPerSecond: Math.round((completed / Math.max(1, spanMs)) * 10_000) / 10,
    durationMs: spanMs,
    elapsedMs: Math.round(elapsedMs),
    totals: rest.totals,
    extensions: rest.extensions,
    largest: rest.largest,
    extras: rest.extras,
  }
}

export function showResult(output: Output, result: DemoResult, stories: readonly (Explanation | null)[]): void {
  const { run, resumed, doneBefore, folder } = result
  const began = resumed ? `, gone on with after ${showNumber(doneBefore)} of its jobs` : ''
  output.line({ text: `Run ${run} of ${folder}`, style: 'bold' }, began)
  output.line('')
  showSums(output, result)
  output.line('')
  output.table(
    ['LARGEST FILE', 'SIZE', 'SHA-256'],
    result.largest.map(({ path, bytes, sha256 }) => [
      shorten(path, PATH_CHARS),
      showBytes(bytes),
      `${sha256.slice(0, 16)}…`,
    ]),
  )
  output.line('')
  for (const story of stories) {
    if (story === null) continue
    tellStory(output, story)
    output.line('')
  }
  showEnd(output, result)
}

function showSums(output: Output, { extensions, totals }: DemoResult): void {
  const row = (name: string, sums: Sums): readonly Cell[] => [
    name,
    showNumber(sums.files),
    showBytes(sums.bytes),
    showNumber(sums.lines),
    showNumber(sums.words),
    showBytes(sums.gzipBytes),
    showBytes(sums.brotliBytes),
  ]
  output.table(
    ['FILES', 'COUNT', 'SIZE', 'LINES', 'WORDS', 'GZIP', 'BROTLI'],
    [...extensions.map((sums) => row(sums.extension, sums)), row('total', totals)],
  )
}

function showEnd(output: Output, result: DemoResult): void {
  const { completed, files, failed, retried, dlq, crashes, lost } = result
  const unread = failed === 0 ? '' : ` (${showNumber(failed)} could not be read)`
  output.line(
    { text: `${showNumber(completed)} of ${showNumber(files)} files digested`, style: 'green' },
    `${unread} in ${showSpan(result.durationMs)}, ${showNumber(result.jobsPerSecond)} jobs a second`,
  )
  output.line(
    `${showNumber(retried)} retried, ${showNumber(crashes)} crashes, ${showNumber(dlq)} dead letters, ${showNumber(lost)} lost`,
  )
  output.line({
    text: 'Look around: holdfast dlq, holdfast jobs, holdfast explain ID (with the same --url)',
    style: 'dim',
  })
}
