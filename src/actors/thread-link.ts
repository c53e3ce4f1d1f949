/**
 * The main thread's ends of the ports of all handler threads: hands aborts out and lets services answer what comes in.
 * What comes in is not trusted: a message of an unknown shape, of a run that is not in flight, or from another port than
 * the run's first one is dropped. Owned by `pool-actor.ts`.
 */
import { MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { ErrorMessage, MainMessage, ThreadMessage } from '../../workers/handler-protocol.ts'
import { isHoldfastError } from '../errors.ts'
import { toFailure } from '../failure.ts'
import type { PoolRun } from './thread-run.ts'

const LEVELS = new Set<unknown>(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
/** A thread that dies while it floods its port is not read to the end. */
const LAST_WORDS_MAX = 1_000

function isThreadMessage(value: unknown): value is ThreadMessage {
  if (typeof value !== 'object' || value === null || !('type' in value)) return false
  const fields = value as Readonly<Record<string, unknown>>
  if (typeof fields.task !== 'number') return false
  if (fields.type === 'started') return true
  if (fields.type === 'log') {
    const isText = fields.message === undefined || typeof fields.message === 'string'
    return isText && LEVELS.has(fields.level) && typeof fields.fields === 'object' && fields.fields !== null
  }
  if (typeof fields.call !== 'number') return false
  return fields.type === 'progress' || (fields.type === 'enqueue' && typeof fields.jobType === 'string')
}

function toErrorMessage(error: unknown): ErrorMessage {
  if (isHoldfastError(error)) return { code: error.code, message: error.message, details: error.details }
  return { code: 'INTERNAL', message: toFailure(error).message, details: {} }
}

export class ThreadLinks {
  readonly #ports = new Set<MessagePort>()
  readonly #runs: ReadonlyMap<number, PoolRun>
  readonly #onPort: () => void

  constructor(runs: ReadonlyMap<number, PoolRun>, onPort: () => void) {
    this.#runs = runs
    this.#onPort = onPort
  }

  get count(): number {
    return this.#ports.size
  }

  /** Takes what a thread posted to its parent: its port, or something of a handler's that is none of our business. */
  accept(message: unknown): void {
    if (typeof message !== 'object' || message === null || !('type' in message) || !('port' in message)) return
    const { type, port } = message
    if (type !== 'holdfast.port' || !(port instanceof MessagePort)) return
    this.#ports.add(port)
    port.on('message', (incoming: unknown) => this.#receive(port, incoming))
    port.on('close', () => this.#ports.delete(port))
    // Only a task in flight keeps the process alive, and piscina's own port does that.
    port.unref()
    for (const run of this.#runs.values()) {
      if (run.abortReason !== null && run.inbox.port === null) this.#postAbort(port, run)
    }
    this.#onPort()
  }

  /** To the run's own thread when that is known, else to all: only the one that runs it cares. */
  abort(run: PoolRun): void {
    for (const port of this.#portsOf(run)) this.#postAbort(port, run)
  }

  forget(run: PoolRun): void {
    for (const port of this.#ports) this.#post(port, { type: 'forget', task: run.parts.number })
  }

  /**
   * Handles what the thread sent before its outcome: two ports have no order between them, so an outcome may arrive first.
   * `sent` is how many messages there are; null when the thread died and cannot say.
   */
  drain(run: PoolRun, sent: number | null): void {
    if (run.inbox.received === sent) return
    for (const port of this.#portsOf(run)) {
      for (let count = 0; run.inbox.received !== sent && (sent !== null || count < LAST_WORDS_MAX); count += 1) {
        const entry = receiveMessageOnPort(port)
        if (entry === undefined) break
        this.#receive(port, entry.message)
      }
    }
  }

  close(): void {
    for (const port of this.#ports) port.close()
    this.#ports.clear()
  }

  #portsOf(run: PoolRun): Iterable<MessagePort> {
    return run.inbox.port === null ? this.#ports : [run.inbox.port]
  }

  #postAbort(port: MessagePort, run: PoolRun): void {
    if (run.abortReason !== null) this.#post(port, { type: 'abort', task: run.parts.number, reason: run.abortReason })
  }

  #post(port: MessagePort, message: MainMessage): void {
    port.postMessage(message)
  }

  #receive(port: MessagePort, message: unknown): void {
    const run = isThreadMessage(message) ? this.#runs.get(message.task) : undefined
    if (run === undefined || !isThreadMessage(message)) return
    run.inbox.port ??= port
    if (run.inbox.port !== port) return
    run.inbox.received += 1
    if (message.type === 'started') run.parts.task.onStart?.()
    else if (message.type === 'log') this.#log(run, message)
    else this.#answer(port, message.call, this.#serve(run, message))
  }

  #log(run: PoolRun, message: ThreadMessage & { type: 'log' }): void {
    try {
      run.parts.services.log(message.level, message.fields, message.message)
    } catch {
      // A logger that throws must cost a line, not the process: nothing awaits this call.
    }
  }

  async #serve(run: PoolRun, message: Exclude<ThreadMessage, { type: 'log' | 'started' }>): Promise<unknown> {
    if (message.type === 'progress') return run.parts.services.progress(message.value)
    const { id, deduplicated } = await run.parts.services.enqueue(message.jobType, message.input, message.options)
    return { id, deduplicated }
  }

  /** The thread may be gone by then; posting to a closed port does nothing. */
  #answer(port: MessagePort, call: number, work: Promise<unknown>): void {
    work.then(
      (value) => this.#post(port, { type: 'resolve', call, value }),
      (error: unknown) => {
        const message = toErrorMessage(error)
        try {
          this.#post(port, { type: 'reject', call, error: message })
        } catch {
          // Details that do not clone are left behind.
          this.#post(port, { type: 'reject', call, error: { ...message, details: {} } })
        }
      },
    )
  }
}
