/**
 * The line of a handler thread or process to the main thread: calls that await an answer, logs, and aborts coming in.
 * One line for life; one attempt at a time is current. An abort may arrive before its task does, since
 * the two travel on different ports: it is kept until that task begins or the main thread says to forget it.
 */
import { HoldfastError } from '../src/errors.ts'
import type { AbortReason, ErrorMessage, MainMessage, ThreadMessage } from './handler-protocol.ts'
import { type Line, LogWindow } from './log-window.ts'

/** Unanswered calls of one thread. A handler that never awaits `progress` learns here that it is too fast. */
const CALLS_MAX = 10_000

/** One attempt in this thread: its signal, whether it has ended, and how many messages it sent. */
export class TaskScope {
  readonly task: number
  sent = 0
  isEnded = false
  /** Sends what is still to be said. */
  onEnd: () => void = () => undefined
  /** Told of the abort, before anybody can listen to the signal. */
  onAbort: () => void = () => undefined
  #reason: HoldfastError | null = null
  #controller: AbortController | null = null

  constructor(task: number) {
    this.task = task
  }

  /** Why the attempt is over; null while it is not. */
  get reason(): HoldfastError | null {
    return this.#reason
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.#reason !== null) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  abort(reason: HoldfastError): void {
    if (this.isEnded || this.#reason !== null) return
    this.#reason = reason
    this.onAbort()
    this.#controller?.abort(reason)
  }
}

/** A line to the main thread: the port of a thread, or the channel of a process. */
export interface MainPort {
  postMessage(message: ThreadMessage): void
  on(event: 'message', listener: (message: MainMessage) => void): unknown
  unref(): void
}

interface Call {
  resolve(value: unknown): void
  reject(error: HoldfastError): void
}

export class MainLink {
  readonly #port: MainPort
  readonly #calls = new Map<number, Call>()
  readonly #earlyAborts = new Map<number, AbortReason>()
  /** Null for a process: its channel is read no faster than the main loop can. */
  readonly #window: LogWindow | null
  #current: TaskScope | null = null
  #lastCall = 0

  /** `taken`: where the main thread counts the lines it took; null: their number has no limit. */
  constructor(port: MainPort, taken: Int32Array | null = null) {
    this.#port = port
    this.#window = taken === null ? null : new LogWindow(taken, (line) => this.#sendLine(line))
    port.on('message', (message: MainMessage) => this.#receive(message))
    port.unref()
  }

  begin(task: number, abort: AbortReason | null): TaskScope {
    const scope = new TaskScope(task)
    const reason = abort ?? this.#earlyAborts.get(task)
    if (reason !== undefined) scope.abort(new HoldfastError(reason.code, reason.message))
    this.#current = scope
    return scope
  }

  /** The handler is done: what it still has to say goes before its outcome. */
  conclude(scope: TaskScope): void {
    this.flush()
    scope.onEnd()
  }

  /** Sends the lines that are held. */
  flush(): void {
    this.#window?.flush()
  }

  end(scope: TaskScope): void {
    scope.isEnded = true
    this.#current = null
  }

  call(scope: TaskScope, build: (call: number) => ThreadMessage): Promise<unknown> {
    const promise = new Promise<unknown>((resolve, reject) => {
      if (scope.isEnded) {
        reject(new HoldfastError('LEASE_LOST', 'the attempt that this context belongs to has ended'))
      } else if (this.#calls.size >= CALLS_MAX) {
        reject(new HoldfastError('OVERLOADED', `more than ${CALLS_MAX} calls of this thread wait for an answer`))
      } else {
        this.#lastCall += 1
        this.#send(scope, build(this.#lastCall))
        this.#calls.set(this.#lastCall, { resolve, reject })
      }
    })
    // A handler may leave the promise alone; its rejection must not end the thread.
    promise.catch(() => undefined)
    return promise
  }

  /** Only the current attempt has lines: those of one that has ended are dropped. */
  log(scope: TaskScope, line: Line): void {
    if (scope !== this.#current) return
    if (this.#window === null) this.#sendLine(line)
    else this.#window.write(line)
  }

  started(scope: TaskScope): void {
    this.#send(scope, { type: 'started', task: scope.task })
  }

  unbegun(scope: TaskScope): void {
    this.#send(scope, { type: 'unbegun', task: scope.task })
  }

  #sendLine({ level, fields, message }: Line): void {
    const scope = this.#current
    if (scope !== null) this.#send(scope, { type: 'log', task: scope.task, level, fields, message })
  }

  #send(scope: TaskScope, message: ThreadMessage): void {
    this.#port.postMessage(message)
    scope.sent += 1
  }

  #receive(message: MainMessage): void {
    switch (message.type) {
      case 'abort':
        if (this.#current?.task === message.task) {
          this.#current.abort(new HoldfastError(message.reason.code, message.reason.message))
        } else this.#earlyAborts.set(message.task, message.reason)
        return
      case 'forget':
        this.#earlyAborts.delete(message.task)
        return
      case 'resolve':
        this.#take(message.call)?.resolve(message.value)
        return
      case 'reject':
        this.#take(message.call)?.reject(revive(message.error))
        return
      default:
        message satisfies never
    }
  }

  #take(id: number): Call | undefined {
    const call = this.#calls.get(id)
    this.#calls.delete(id)
    return call
  }
}

function revive(error: ErrorMessage): HoldfastError {
  return new HoldfastError(error.code, error.message, { details: error.details })
}
