/**
 * The job types of the demo and what they carry. All jobs of one run wait in one lane, whose name is made of the folder and
 * the number of the run, so that every process finds the same run and its counts are those of the lane.
 */
import { defineJob, retry } from '../../index.ts'
import type { FileDigest } from './digest-file.ts'
import type { RunReport } from './report.ts'

/** A digest is harmless to repeat, so no number of killed processes may dead-letter it. */
const PATIENCE = 5_000
const patient = { retry: retry.exponential({ attempts: PATIENCE, base: '100ms', cap: '2s' }), maxCrashes: PATIENCE }

export interface ScanInput {
  readonly folder: string
  /** `tracked`: what git tracks, else all but `dist`; `walk`: every file but those of `.git` and `node_modules`. */
  readonly mode: 'tracked' | 'walk'
  /** Absolute paths that are the demo's own: its store. */
  readonly skip: readonly string[]
}

export interface ScanOutput {
  readonly files: number
  /** Distinct ids that the store gave back, the extra jobs included. */
  readonly accepted: number
}

export interface FileInput {
  readonly folder: string
  /** Relative to the folder. */
  readonly path: string
  /** The path as bytes when it is not UTF-8, so that `path` is only for people; else null. */
  readonly raw: Uint8Array | null
}

export const scanJob = defineJob<ScanInput, ScanOutput>('demo.scan', patient)
export const fileJob = defineJob<FileInput, FileDigest>('demo.file', patient)
export const reportJob = defineJob<null, RunReport>('demo.report', patient)

/** Fails twice, then succeeds. The budget is wide because killed processes take attempts too. */
export const flakyJob = defineJob<{ readonly failures: number }, string>('demo.flaky', {
  retry: retry.fixed(50, '300ms'),
  maxCrashes: 50,
})
/** Ends its thread each time; three times in a row are enough. */
export const poisonJob = defineJob<null>('demo.poison', { retry: retry.fixed(50, '100ms'), maxCrashes: 3 })
/** Comes too late: its deadline has passed when it is stored. */
export const lateJob = defineJob<null>('demo.late')
export const delayedJob = defineJob<null, string>('demo.delayed', patient)

export const DELAY_MS = 2_000
export const EXTRA_TYPES = [flakyJob.type, poisonJob.type, lateJob.type, delayedJob.type] as const
/** Types whose jobs the scan enqueues; the scan and the report are the machinery of the run itself. */
export const ACCEPTED_TYPES: readonly string[] = [fileJob.type, ...EXTRA_TYPES]
