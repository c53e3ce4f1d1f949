/**
 * `holdfast work MODULE`: runs the handlers of a user's module until it is told to stop, or with `--until-empty` until nothing
 * can run. The first SIGINT or SIGTERM stops gracefully, the second ends the process at once. When too many handlers cannot be
 * stopped it ends with code 1: whoever supervises the process starts a fresh one.
 */
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Duration, type Holdfast, HoldfastError, type Worker, type WorkerOptions } from '../../index.ts'
import { defined, durationFlag, listFlag, numberFlag } from '../arguments.ts'
import { type Command, type CommandContext, type ExitCode, withStore } from '../command.ts'
import { catchSignals, endForCertain } from '../signals.ts'

/** The context is the user's own; the command line hands it through unread. */
type AnyWorkerOptions = WorkerOptions<unknown>

export const workCommand: Command = {
  name: 'work',
  usage: 'work MODULE [--lanes A,B] [--concurrency N] [--lease 30s] [--stop-deadline 20s] [--until-empty]',
  summary: "run the handlers that a module's default export holds",
  options: {
    lanes: { type: 'string' },
    concurrency: { type: 'string' },
    lease: { type: 'string' },
    'stop-deadline': { type: 'string' },
    'until-empty': { type: 'boolean' },
  },
  words: [1, 1],
  async run(context) {
    const { flags } = context
    const options: AnyWorkerOptions = {
      ...(await loadModule(context.words[0] ?? '')),
      ...defined({
        lanes: listFlag(flags, 'lanes'),
        concurrency: numberFlag(flags, 'concurrency'),
        lease: durationFlag(flags, 'lease'),
      }),
    }
    const work = flags['until-empty'] === true ? workUntilEmpty : workUntilStopped
    return withStore(context, (store) => work(context, store, options), { mayCreate: true })
  },
}

const invalid = (path: string, problem: string, cause?: unknown): HoldfastError =>
  new HoldfastError('HANDLER_MODULE_INVALID', `${path}: ${problem}`, { details: { path }, cause })

async function loadModule(path: string): Promise<AnyWorkerOptions> {
  const file = resolve(path)
  if (!existsSync(file)) throw invalid(path, 'the module does not exist')
  if (!statSync(file).isFile()) throw invalid(path, 'expected a file')
  let loaded: { readonly default?: unknown }
  try {
    loaded = (await import(pathToFileURL(file).href)) as { readonly default?: unknown }
  } catch (cause) {
    throw invalid(path, `the module does not load: ${cause instanceof Error ? cause.message : String(cause)}`, cause)
  }
  const exported = loaded.default
  if (Array.isArray(exported)) return { handlers: exported as AnyWorkerOptions['handlers'] }
  if (typeof exported === 'object' && exported !== null && 'handlers' in exported) return exported as AnyWorkerOptions
  throw invalid(path, 'expected `export default` of an array of handlers, or of { handlers, ...worker options }')
}

async function workUntilEmpty(context: CommandContext, store: Holdfast, options: AnyWorkerOptions): Promise<ExitCode> {
  const signals = catchSignals()
  try {
    const taken = await Promise.race([store.runUntilEmpty(options), signals.first.then(() => null)])
    context.output.result({ taken, stopped: taken === null }, () => {
      context.output.line(
        taken === null ? 'stopped' : `${taken} ${taken === 1 ? 'run' : 'runs'}; nothing is left that can run now`,
      )
    })
    return 0
  } finally {
    signals.release()
  }
}

/** Handlers that may end, the grace of those that do not, and the last words to the store fit into the 30 s that orchestrators give. */
const STOP_DEADLINE: Duration = '20s'

/** Resolves when the worker claims nothing any more because its handlers cannot be stopped. */
function whenStuck(worker: Worker, store: Holdfast): Promise<'stuck'> {
  return new Promise((resolve) => {
    const look = async (): Promise<void> => {
      const { claiming, store: contact } = await store.health()
      if (!claiming.ok && contact.ok) resolve('stuck')
    }
    worker.on('slotLost', () => void look())
  })
}

async function workUntilStopped(
  context: CommandContext,
  store: Holdfast,
  options: AnyWorkerOptions,
): Promise<ExitCode> {
  const signals = catchSignals()
  const deadline = durationFlag(context.flags, 'stop-deadline') ?? STOP_DEADLINE
  try {
    const worker = await store.worker(options)
    const counts = { completed: 0, failed: 0, dead: 0 }
    const count = (name: keyof typeof counts) => (): void => {
      counts[name] += 1
      context.bar.update({ done: counts.completed, total: null, note: `completed, ${counts.failed} failed attempts` })
    }
    worker.on('completed', count('completed')).on('failed', count('failed')).on('dead', count('dead'))
    context.bar.update({ done: 0, total: null, note: `jobs done; lanes ${worker.lanes.join(', ')}` })
    const why = await Promise.race([signals.first, whenStuck(worker, store)])
    context.bar.clear()
    await worker.stop({ deadline })
    if (worker.lostSlots > 0) endForCertain()
    context.output.result({ workerId: worker.id, ...counts }, () => {
      context.output.line(
        `stopped: ${counts.completed} completed, ${counts.failed} failed attempts, ${counts.dead} dead-lettered`,
      )
    })
    return why === 'stuck' ? 1 : 0
  } finally {
    context.bar.clear()
    signals.release()
  }
}
