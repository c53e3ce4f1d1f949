/**
 * `holdfast work MODULE`: runs the handlers of a user's module until it is told to stop, or with `--until-empty` until nothing
 * can run. The first SIGINT or SIGTERM stops gracefully, the second ends the process at once. When too many handlers cannot be
 * stopped it says so and ends with a code other than 0: whoever supervises the process starts a fresh one.
 */
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  type Duration,
  type Handler,
  type Holdfast,
  HoldfastError,
  type Worker,
  type WorkerOptions,
} from '../../index.ts'
import { defined, durationFlag, listFlag, numberFlag } from '../arguments.ts'
import { type Command, type CommandContext, type ExitCode, withStore } from '../command.ts'
import { catchSignals, endForCertain } from '../signals.ts'

/** The context is the user's own; the command line hands it through unread. */
type ModuleOptions = WorkerOptions<unknown>

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
    // Read now, so that a wrong one is not found out by the signal.
    const deadline = durationFlag(flags, 'stop-deadline') ?? STOP_DEADLINE
    const options: ModuleOptions = {
      ...(await loadModule(context.words[0] ?? '')),
      ...defined({
        lanes: listFlag(flags, 'lanes'),
        concurrency: numberFlag(flags, 'concurrency'),
        lease: durationFlag(flags, 'lease'),
      }),
    }
    const work = flags['until-empty'] === true ? workUntilEmpty : workUntilStopped
    // Also where it fails: until it says otherwise, a thread may be held.
    let isHeld = Array.isArray(options.handlers) && options.handlers.some(isThread)
    try {
      const ended = await withStore(context, (store) => work({ context, store, options, deadline }), {
        mayCreate: true,
      })
      isHeld = ended.isHeld
      return ended.code
    } finally {
      if (isHeld) endForCertain()
    }
  },
}

interface Work {
  readonly context: CommandContext
  readonly store: Holdfast
  readonly options: ModuleOptions
  readonly deadline: Duration
}

interface Ended {
  readonly code: ExitCode
  /** A thread inside a native call, or one that may be, keeps even `process.exit` waiting. */
  readonly isHeld: boolean
}

/** Handlers that may end, the grace of those that do not, and the last words to the store fit into the 30 s that orchestrators give. */
const STOP_DEADLINE: Duration = '20s'

const invalid = (path: string, problem: string, cause?: unknown): HoldfastError =>
  new HoldfastError('HANDLER_MODULE_INVALID', `${path}: ${problem}`, { details: { path }, cause })

async function loadModule(path: string): Promise<ModuleOptions> {
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
  if (Array.isArray(exported)) return { handlers: exported as ModuleOptions['handlers'] }
  if (typeof exported === 'object' && exported !== null && 'handlers' in exported) return exported as ModuleOptions
  throw invalid(path, 'expected `export default` of an array of handlers, or of { handlers, ...worker options }')
}

async function workUntilEmpty({ context, store, options, deadline }: Work): Promise<Ended> {
  const signals = catchSignals()
  try {
    const running = store.runUntilEmpty(options)
    // Closed while it runs, it rejects; that is no failure then.
    running.catch(() => undefined)
    const taken = await Promise.race([running, signals.first.then(() => null)])
    if (taken === null) await store.close({ deadline })
    context.output.result({ taken, stopped: taken === null }, () => {
      context.output.line(
        taken === null ? 'stopped' : `${taken} ${taken === 1 ? 'run' : 'runs'}; nothing is left that can run now`,
      )
    })
    return { code: 0, isHeld: options.handlers.some(isThread) }
  } finally {
    signals.release()
  }
}

/** What a module exports has not been looked at yet where this is asked first. */
const isThread = (handler: Partial<Handler<never>> | null): boolean =>
  handler?.kind === 'thread' && handler.isolation?.kind !== 'process'

/** Resolves with what is wrong when the worker claims nothing any more because its handlers cannot be stopped. */
function whenStuck(worker: Worker, store: Holdfast): Promise<string> {
  return new Promise((resolve) => {
    const look = async (): Promise<void> => {
      const { claiming, store: contact, problems } = await store.health()
      if (!claiming.ok && contact.ok) resolve(problems.join('; '))
    }
    worker.on('slotLost', () => void look())
  })
}

async function workUntilStopped({ context, store, options, deadline }: Work): Promise<Ended> {
  const signals = catchSignals()
  try {
    const worker = await store.worker(options)
    const counts = { completed: 0, failed: 0, dead: 0 }
    const count = (name: keyof typeof counts) => (): void => {
      counts[name] += 1
      context.bar.update({ done: counts.completed, total: null, note: `completed, ${counts.failed} failed attempts` })
    }
    worker.on('completed', count('completed')).on('failed', count('failed')).on('dead', count('dead'))
    context.bar.update({ done: 0, total: null, note: `jobs done; lanes ${worker.lanes.join(', ')}` })
    const problem = await Promise.race([signals.first.then(() => null), whenStuck(worker, store)])
    context.bar.clear()
    if (problem !== null) context.warn(`the worker stops: ${problem}`)
    await worker.stop({ deadline })
    const { lostSlots } = worker
    if (lostSlots > 0)
      context.warn(`${lostSlots} of its handlers cannot be ended; where one keeps the process, it is killed (code 137)`)
    context.output.result({ workerId: worker.id, ...counts }, () => {
      context.output.line(
        `stopped: ${counts.completed} completed, ${counts.failed} failed attempts, ${counts.dead} dead-lettered`,
      )
    })
    return { code: problem === null ? 0 : 1, isHeld: lostSlots > 0 }
  } finally {
    context.bar.clear()
    signals.release()
  }
}
