/** The demo's own account: a job that the store had accepted and does not have any more is said to be lost. */

import { JOB_STATES, type Stats } from 'holdfast'
import { describe, expect, it } from 'vitest'
import type { RunReport } from '#dist/src/cli/demo/report.js'
import { toResult } from '#dist/src/cli/demo/result.js'

const totals = { files: 6, bytes: 60, lines: 6, words: 6, gzipBytes: 60, brotliBytes: 60 }
const report: RunReport = {
  files: 6,
  completed: 6,
  retried: 2,
  dlq: 2,
  crashes: 3,
  workers: 1,
  accepted: 10,
  found: 10,
  spanMs: 2_000,
  totals,
  extensions: [],
  largest: [],
  extras: {},
}

function statsOf(completed: number, dlq: number): Stats {
  const counts = Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<
    (typeof JOB_STATES)[number],
    number
  >
  return { counts: { ...counts, completed, dlq }, total: completed + dlq, ready: 0, oldestReadyMs: null, lanes: [] }
}

const session = {
  run: { number: 3, lane: 'demo-x-3', scanId: 'demo-x-3/1', isResumed: true },
  url: 'redis://:s3cret@host',
  folder: '/f',
  elapsedMs: 1_000.4,
  doneBefore: 4,
}

describe('the result of a demo', () => {
  it('has lost nothing when scan, reading and counters agree', () => {
    // The store also counts the scan and the report.
    const result = toResult({ session, report, stats: statsOf(10, 2) })
    expect(result).toMatchObject({ lost: 0, failed: 0, run: 3, resumed: true, doneBefore: 4, elapsedMs: 1_000 })
    expect(result.jobsPerSecond).toBe(3)
    expect(result.url).toBe('redis://***@host')
  })

  it('has lost what was accepted and was not read', () => {
    expect(toResult({ session, report: { ...report, found: 9 }, stats: statsOf(10, 2) }).lost).toBe(1)
  })

  it('has lost what was accepted and is not counted', () => {
    expect(toResult({ session, report, stats: statsOf(8, 2) }).lost).toBe(2)
  })

  it('has failed files that were found and not digested', () => {
    expect(toResult({ session, report: { ...report, completed: 5 }, stats: statsOf(9, 3) })).toMatchObject({
      failed: 1,
      lost: 0,
    })
  })
})
