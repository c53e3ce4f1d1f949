/**
 * `holdfast demo [folder]`: digests every file of a folder as one durable job each, beside a flaky, a poisonous, a late and a
 * delayed one. Killed at any point and started again it goes on where it was; several processes share one run.
 */
import { realpathSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Holdfast, isHoldfastError, type Stats } from '../../index.ts'
import { UsageError } from '../arguments.ts'
import { type Command, type CommandContext, type ExitCode, openStore, storeUrl } from '../command.ts'
import { reportJob, type ScanInput } from '../demo/contracts.ts'
import { type DemoContext, demoHandlers } from '../demo/handlers.ts'
import { showResult, toResult } from '../demo/result.ts'
import { findOrStartRun, KEEP_DAYS, type Run } from '../demo/run.ts'
import { NOTHING_KEPT } from '../doctor/store.ts'
import { type CaughtSignals, catchSignals } from '../signals.ts'

const DEFAULT_URL = 'sqlite:./holdfast-demo.db'
/** Short, so that a run whose process was killed goes on two seconds after the next start. */
const LEASE = '2s'
const REAP = '500ms'
const POLL = '250ms'
const LOOK_MS = 150
/** Twice the cores, since a slot waits for its commit a good part of its time; 4 on 2 cores was best of 2, 4 and 8. */
const SLOTS = Math.min(8, Math.max(4, 2 * availableParallelism()))
const STOP_DEADLINE = '2s'
const REPORT_TIMEOUT = '10m'
const PACKAGE_ROOT = fileURLToPath(new URL('../../../..', import.meta.url))

export const demoCommand: Command = {
  name: 'demo',
  usage: 'demo [FOLDER]',
  summary: 'digest the files of a folder as durable jobs; kill it and start it again',
  options: {},
  words: [0, 1],
  async run(context) {
    // Failing jobs are part of the show; the log of the engine would tear the progress bar.
    process.env.HOLDFAST_LOG ??= 'silent'
    const url = storeUrl(context, DEFAULT_URL)
    const input = toScanInput(context.words[0], url)
    const store = await openStore(context, url, { keepCompleted: `${KEEP_DAYS}d` })
    if (store.capabilities.durability === 'none' && /^redis/.test(url)) context.warn(NOTHING_KEPT)
    const signals = catchSignals()
    try {
      return await runDemo({ context, store, input, url, signals })
    } finally {
      context.bar.clear()
      await store.close()
      signals.release()
    }
  },
}

function toScanInput(word: string | undefined, url: string): ScanInput {
  const skip = storeFiles(url)
  if (word === undefined) return { folder: realpathSync(PACKAGE_ROOT), mode: 'tracked', skip }
  try {
    const folder = realpathSync(resolve(word))
    if (statSync(folder).isDirectory()) return { folder, mode: 'walk', skip }
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    throw new UsageError(`${word}: ${code === 'ENOENT' ? 'no such folder' : `the folder cannot be read (${code})`}`)
  }
  throw new UsageError(`${word}: expected a folder`)
}

/** The files of the store itself, which change while they would be read. */
function storeFiles(url: string): readonly string[] {
  const path = /^sqlite:(?:\/\/)?([^?]*)/i.exec(url)?.[1] ?? ''
  if (path === '' || path === ':memory:') return []
  const file = resolve(path)
  let real = file
  try {
    real = resolve(realpathSync(dirname(file)), file.slice(dirname(file).length + 1))
  } catch {
    // The folder is missing, which opening the store will say.
  }
  return ['', '-wal', '-shm', '-journal'].map((suffix) => real + suffix)
}

interface Demo {
  readonly context: CommandContext
  readonly store: Holdfast
  readonly input: ScanInput
  readonly url: string
  readonly signals: CaughtSignals
}

async function runDemo(demo: Demo): Promise<ExitCode> {
  const { context, store, input, url } = demo
  const startedAt = performance.now()
  const run = await findOrStartRun(store, input)
  const before = await store.stats(run.lane)
  const worker = await store.worker<DemoContext>({
    handlers: demoHandlers,
    lanes: [run.lane],
    concurrency: SLOTS,
    context: { store },
    lease: LEASE,
    reap: REAP,
    poll: POLL,
  })
  const last = await untilDone(demo, run)
  if (last === null) {
    context.bar.clear()
    await worker.stop({ deadline: STOP_DEADLINE })
    return sayHowToGoOn(demo, await store.stats(run.lane))
  }
  const report = await reportOf(store, run)
  await worker.stop({ deadline: STOP_DEADLINE })
  context.bar.clear()
  const session = {
    run,
    url,
    folder: input.folder,
    elapsedMs: performance.now() - startedAt,
    doneBefore: endedOf(before),
  }
  const result = toResult({ session, report, stats: await store.stats(run.lane) })
  const stories = await Promise.all(
    ['flaky', 'poison'].map(async (name) => {
      const id = report.extras[name]?.id
      return id === undefined ? null : store.explain(id)
    }),
  )
  context.output.result(result, () => showResult(context.output, result, stories))
  return result.lost === 0 ? 0 : 1
}

const endedOf = ({ counts }: Stats): number => counts.completed + counts.cancelled + counts.dlq

/** Waits until nothing of the run is live; null: a signal came first. */
async function untilDone({ context, store, signals }: Demo, run: Run): Promise<Stats | null> {
  for (;;) {
    const stats = await store.stats(run.lane)
    const ended = endedOf(stats)
    const { running, retry_wait: retrying, scheduled, dlq } = stats.counts
    const note = `${running} running, ${retrying} retrying, ${scheduled} scheduled, ${dlq} dead`
    context.bar.update({ done: ended, total: stats.total, note })
    if (ended === stats.total && stats.total > 0) return stats
    await Promise.race([pause(LOOK_MS), signals.first])
    if (signals.isStopping) return null
  }
}

/** The report is a job too: whichever process gets to it makes it, and its end is the end of the run for all of them. */
async function reportOf(store: Holdfast, run: Run) {
  const scan = await store.get(run.scanId)
  if (scan !== null && scan.state !== 'completed') {
    throw new Error(`the folder could not be scanned: ${scan.lastFailure?.message ?? scan.state}`)
  }
  const handle = await store.enqueue(reportJob, null, { queue: run.lane, idempotencyKey: 'report' })
  try {
    return await handle.result({ timeout: REPORT_TIMEOUT })
  } catch (error) {
    if (isHoldfastError(error))
      throw new Error(`the report of the run could not be made: ${error.message}`, { cause: error })
    throw error
  }
}

function sayHowToGoOn({ context, url }: Demo, stats: Stats): ExitCode {
  const folder = context.words[0]
  const flags = url === DEFAULT_URL ? '' : ' with the same store'
  const again = `holdfast demo${folder === undefined ? '' : ` ${folder}`}`
  const state = { stopped: true, ended: endedOf(stats), jobs: stats.total }
  context.output.result(state, () => {
    context.output.line(`Stopped: ${state.ended} of ${state.jobs} jobs have ended; nothing is lost.`)
    context.output.line(`Start ${again}${flags} again to go on.`)
  })
  return 1
}
