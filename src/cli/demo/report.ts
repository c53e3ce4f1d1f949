/**
 * Makes the report of a run from the store alone: pages through the jobs of its lane, reads the outputs in small batches and
 * keeps only sums, so that memory does not grow with the number of files.
 */
import type { Holdfast, JobId, JobRecord, JobState } from '../../index.ts'
import { ACCEPTED_TYPES, EXTRA_TYPES, type FileInput, fileJob, type ScanOutput, scanJob } from './contracts.ts'
import type { FileDigest } from './digest-file.ts'

const PAGE_JOBS = 500
/** Outputs asked for at once. */
const READS = 64
const LARGEST_FILES = 5
const EXTENSIONS_SHOWN = 12
const EXTENSION_CHARS_MAX = 12

export interface Sums {
  readonly files: number
  readonly bytes: number
  readonly lines: number
  readonly words: number
  readonly gzipBytes: number
  readonly brotliBytes: number
}

export interface LargeFile {
  readonly path: string
  readonly bytes: number
  readonly sha256: string
}

export interface ExtraJob {
  readonly id: JobId
  readonly state: JobState
  readonly attempts: number
  readonly dlqCode: string | null
  /** From its creation to its last start; null: it never ran. */
  readonly waitedMs: number | null
}

/** What the report job gives back. */
export interface RunReport {
  /** Regular files that the scan found. */
  readonly files: number
  /** Files digested. */
  readonly completed: number
  /** Jobs that took more than one attempt. */
  readonly retried: number
  /** Jobs in the dead letters: the poison, the late, and files that could not be read. */
  readonly dlq: number
  /** Attempts that ended because a thread or a process died. */
  readonly crashes: number
  /** Processes that worked on the run, by their worker ids. */
  readonly workers: number
  /** Jobs that the store had accepted, and of these how many were found in a state; the difference is lost. */
  readonly accepted: number
  readonly found: number
  /** From the first start of a file to the last end, stops of all processes included. */
  readonly spanMs: number
  readonly totals: Sums
  /** By bytes, the rest summed up under `other`. */
  readonly extensions: readonly (Sums & { readonly extension: string })[]
  readonly largest: readonly LargeFile[]
  readonly extras: Readonly<Record<string, ExtraJob>>
}

const NOTHING: Sums = { files: 0, bytes: 0, lines: 0, words: 0, gzipBytes: 0, brotliBytes: 0 }

const add = (sums: Sums, more: Sums): Sums => ({
  files: sums.files + more.files,
  bytes: sums.bytes + more.bytes,
  lines: sums.lines + more.lines,
  words: sums.words + more.words,
  gzipBytes: sums.gzipBytes + more.gzipBytes,
  brotliBytes: sums.brotliBytes + more.brotliBytes,
})

/** The sums of a run while they are being made. */
class Tally {
  completed = 0
  retried = 0
  dlq = 0
  found = 0
  crashes = 0
  readonly workers = new Set<string>()
  startedAt = Number.POSITIVE_INFINITY
  finishedAt = 0
  totals = NOTHING
  scan: ScanOutput | null = null
  largest: LargeFile[] = []
  readonly extensions = new Map<string, Sums>()
  readonly extras: Record<string, ExtraJob> = {}

  record(job: JobRecord): void {
    if (!ACCEPTED_TYPES.includes(job.type)) return
    this.found += 1
    if (job.attempts > 1) this.retried += 1
    if (job.workerId !== null) this.workers.add(job.workerId)
    if (job.state === 'dlq') this.dlq += 1
    if (job.type === fileJob.type) {
      if (job.startedAt !== null) this.startedAt = Math.min(this.startedAt, job.startedAt)
      this.finishedAt = Math.max(this.finishedAt, job.finishedAt ?? 0)
    } else if ((EXTRA_TYPES as readonly string[]).includes(job.type)) this.extras[nameOf(job.type)] = toExtra(job)
  }

  file({ path }: FileInput, digest: FileDigest): void {
    const { sha256, ...counts } = digest
    const sums: Sums = { files: 1, ...counts }
    const extension = extensionOf(path)
    this.completed += 1
    this.totals = add(this.totals, sums)
    this.extensions.set(extension, add(this.extensions.get(extension) ?? NOTHING, sums))
    this.largest = [...this.largest, { path, bytes: digest.bytes, sha256 }]
      .sort((a, b) => b.bytes - a.bytes)
      .slice(0, LARGEST_FILES)
  }

  report(): RunReport {
    const { completed, retried, dlq, crashes, workers, found, totals, largest, extras, scan } = this
    return {
      files: scan?.files ?? completed,
      completed,
      retried,
      dlq,
      crashes,
      workers: workers.size,
      accepted: scan?.accepted ?? 0,
      found,
      spanMs: Math.max(0, this.finishedAt - Math.min(this.startedAt, this.finishedAt)),
      totals,
      extensions: topExtensions(this.extensions),
      largest,
      extras,
    }
  }
}

const nameOf = (type: string): string => type.slice(type.indexOf('.') + 1)

const toExtra = ({ id, state, attempts, dlqCode, startedAt, createdAt }: JobRecord): ExtraJob => ({
  id,
  state,
  attempts,
  dlqCode,
  waitedMs: startedAt === null ? null : startedAt - createdAt,
})

function extensionOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const at = name.lastIndexOf('.')
  const extension = at > 0 ? name.slice(at).toLowerCase() : ''
  return extension === '' || extension.length > EXTENSION_CHARS_MAX ? '(none)' : extension
}

function topExtensions(all: ReadonlyMap<string, Sums>): RunReport['extensions'] {
  const sorted = [...all].map(([extension, sums]) => ({ extension, ...sums })).sort((a, b) => b.bytes - a.bytes)
  if (sorted.length <= EXTENSIONS_SHOWN) return sorted
  const rest = sorted.slice(EXTENSIONS_SHOWN).reduce<Sums>(add, NOTHING)
  return [...sorted.slice(0, EXTENSIONS_SHOWN), { ...rest, extension: 'other' }]
}

/** Reads the whole lane once. `signal` stops it between pages. */
export async function makeReport(store: Holdfast, lane: string, signal: AbortSignal): Promise<RunReport> {
  const tally = new Tally()
  let cursor: string | null = null
  do {
    signal.throwIfAborted()
    const page: Awaited<ReturnType<Holdfast['list']>> = await store.list({ lane, limit: PAGE_JOBS, cursor })
    for (const job of page.jobs) tally.record(job)
    for (let from = 0; from < page.jobs.length; from += READS) {
      await Promise.all(page.jobs.slice(from, from + READS).map((job) => readJob(store, job, tally)))
    }
    cursor = page.cursor
  } while (cursor !== null)
  return tally.report()
}

async function readJob(store: Holdfast, job: JobRecord, tally: Tally): Promise<void> {
  if (job.attempts > 1) {
    const history = await store.attempts(job.id)
    tally.crashes += history.filter(({ outcome }) => outcome === 'crashed').length
  }
  if (job.state !== 'completed') return
  if (job.type !== fileJob.type && job.type !== scanJob.type) return
  const detail = await store.get(job.id)
  if (detail === null || !detail.hasOutput) return
  // The types of this run wrote these values, so their shapes are known.
  if (job.type === fileJob.type) tally.file(detail.input as FileInput, detail.output as FileDigest)
  else tally.scan = detail.output as ScanOutput
}
