/**
 * Loads handler modules and runs one attempt at a time, in a thread as in a process. Whatever a handler does short of ending its
 * thread or process comes back as data, never as an exception. Owned by `handler-worker.ts` and `handler-process.ts`.
 */
import { fileURLToPath } from 'node:url'
import { parseDuration } from '../src/config.ts'
import type { JobContext } from '../src/contract.ts'
import { HoldfastError } from '../src/errors.ts'
import { toFailure } from '../src/failure.ts'
import { cloneProblem } from './clonable.ts'
import { createContext } from './handler-context.ts'
import type { LoadMessage, LoadReply, RunMessage, RunReply } from './handler-protocol.ts'
import type { MainLink } from './main-link.ts'

interface LoadedModule {
  readonly handler: (input: unknown, context: JobContext<unknown>) => unknown
  readonly context: unknown
}

const asObject = (value: unknown): object | null =>
  (typeof value === 'object' && value !== null) || typeof value === 'function' ? value : null

/** A CommonJS module arrives as `default`, and one compiled from ES syntax keeps its own `default` inside. */
function member(namespace: object, key: string): unknown {
  const own: unknown = Reflect.get(namespace, key)
  if (typeof own === 'function') return own
  const inner = asObject(Reflect.get(namespace, 'default'))
  return inner === null ? own : Reflect.get(inner, key)
}

function invalid(href: string, problem: string, cause?: unknown): HoldfastError {
  const path = fileURLToPath(href)
  return new HoldfastError('HANDLER_MODULE_INVALID', `handler module ${path}: ${problem}`, { cause, details: { path } })
}

const messageOf = (error: unknown): string => {
  const failure = toFailure(error)
  return failure.name === undefined ? failure.message : `${failure.name}: ${failure.message}`
}

async function importModule(href: string): Promise<object> {
  try {
    return (await import(href)) as object
  } catch (error) {
    const isMissing = toFailure(error).code === 'ERR_MODULE_NOT_FOUND' && Reflect.get(Object(error), 'url') === href
    throw invalid(href, isMissing ? 'the file does not exist' : `it does not load: ${messageOf(error)}`, error)
  }
}

const readDelay = (value: unknown): number | undefined => {
  try {
    return parseDuration(value, 'delay')
  } catch {
    return undefined
  }
}

/** The modules of one thread or process. */
export class ModuleRunner {
  readonly #modules: readonly string[]
  readonly #link: MainLink
  readonly #loaded: LoadedModule[] = []

  constructor(modules: readonly string[], link: MainLink) {
    this.#modules = modules
    this.#link = link
  }

  async tryLoad(position: LoadMessage): Promise<LoadReply> {
    try {
      if (this.#loaded[position] === undefined) await this.#load(position)
      return null
    } catch (error) {
      return toFailure(error).message
    }
  }

  async run(message: RunMessage): Promise<RunReply> {
    const scope = this.#link.begin(message[0], message[3])
    try {
      const module = this.#loaded[message[1]] ?? (await this.#load(message[1]))
      const context = createContext(scope, this.#link, { message, context: module.context })
      if (message[15]) this.#link.started(scope)
      const output = await module.handler(message[2], context)
      const problem = cloneProblem(output, 'output')
      this.#link.conclude(scope)
      return problem === null ? [scope.sent, output] : [scope.sent, undefined, { code: 'BAD_OUTPUT', message: problem }]
    } catch (error) {
      const failure = toFailure(error, readDelay)
      this.#link.conclude(scope)
      return [scope.sent, undefined, failure]
    } finally {
      this.#link.end(scope)
    }
  }

  /** A failed `setup()` is tried again by the next attempt; the module itself is imported once. */
  async #load(position: number): Promise<LoadedModule> {
    const href = this.#modules[position]
    if (href === undefined) throw new HoldfastError('INTERNAL', `no handler module has the position ${position}`)
    const namespace = await importModule(href)
    const handler = member(namespace, 'default')
    if (typeof handler !== 'function')
      throw invalid(href, 'expected `export default` of a function (input, ctx) => output')
    const setup = member(namespace, 'setup')
    let context: unknown
    try {
      context = typeof setup === 'function' ? await setup() : undefined
    } catch (error) {
      throw invalid(href, `its setup() failed: ${messageOf(error)}`, error)
    }
    const module: LoadedModule = { handler: handler as LoadedModule['handler'], context }
    this.#loaded[position] = module
    return module
  }
}
