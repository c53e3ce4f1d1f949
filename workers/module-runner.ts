/**
 * Loads handler modules and runs one attempt at a time, in a thread as in a process. Whatever a handler does short of ending its
 * thread or process comes back as data, never as an exception. Owned by `handler-worker.ts` and `handler-process.ts`.
 */
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { sharedMonotonic } from '../src/clock.ts'
import { parseDuration } from '../src/config.ts'
import type { JobContext } from '../src/contract.ts'
import { HoldfastError } from '../src/errors.ts'
import { toFailure } from '../src/failure.ts'
import type { Failure } from '../src/job.ts'
import { sendable } from './clonable.ts'
import { createContext } from './handler-context.ts'
import type { LoadMessage, LoadReply, RunMessage, RunReply } from './handler-protocol.ts'
import type { MainLink, TaskScope } from './main-link.ts'

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

/** Nothing begins once its attempt is over, nor after its deadline, of which the main thread may be too busy to tell. */
function requireTime(scope: TaskScope, startBefore: number | null): void {
  if (scope.reason !== null) throw scope.reason
  if (startBefore !== null && sharedMonotonic() >= startBefore) {
    throw new HoldfastError('DEADLINE_EXCEEDED', 'the deadline of the job passed before its handler began')
  }
}

/** An output that cannot be sent is the fault of the handler, and no reason to end its thread. */
function readOutput(output: unknown): readonly [output: unknown] | readonly [output: undefined, failure: Failure] {
  try {
    return [sendable(output, 'output')]
  } catch (error) {
    return [undefined, { code: 'BAD_OUTPUT', message: toFailure(error).message }]
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
      requireTime(scope, message[17])
      const module = this.#loaded[message[1]] ?? (await this.#loadFor(scope, message))
      const context = createContext(scope, this.#link, { message, context: module.context })
      if (message[15]) this.#link.started(scope)
      const outcome = readOutput(await module.handler(message[2], context))
      this.#link.conclude(scope)
      return [scope.sent, ...outcome]
    } catch (error) {
      const failure = toFailure(error, readDelay)
      this.#link.conclude(scope)
      return [scope.sent, undefined, failure]
    } finally {
      this.#link.end(scope)
    }
  }

  /** What came in meanwhile is heard before the handler may begin: a `setup()` can block its thread for long. */
  async #loadFor(scope: TaskScope, message: RunMessage): Promise<LoadedModule> {
    scope.onAbort = () => this.#link.unbegun(scope)
    const module = await this.#load(message[1])
    // The loop looks for messages between the one and the other.
    await setImmediate()
    await setImmediate()
    requireTime(scope, message[17])
    scope.onAbort = () => undefined
    return module
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
