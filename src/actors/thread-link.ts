/**
 * The main thread's ends of the ports of all handler threads: hands aborts out and lets services answer what comes in.
 * What comes in is not trusted: a message of an unknown shape, of a run that is not in flight, or from another port than
 * the run's first one is dropped. Owned by `thread-host.ts`.
 */
import { MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { MainMessage } from '../../workers/handler-protocol.ts'
import { isThreadMessage, serveMessage } from './module-calls.ts'
import type { PoolRun } from './thread-run.ts'

/** A thread that dies while it floods its port is not read to the end. */
const LAST_WORDS_MAX = 1_000

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
      if (run.abortReason !== null && run.thread.port === null) this.#postAbort(port, run)
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
    if (run.thread.received === sent) return
    for (const port of this.#portsOf(run)) {
      for (let count = 0; run.thread.received !== sent && (sent !== null || count < LAST_WORDS_MAX); count += 1) {
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
    return run.thread.port === null ? this.#ports : [run.thread.port]
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
    run.thread.port ??= port
    if (run.thread.port !== port) return
    run.thread.received += 1
    serveMessage(run, message, (answer) => this.#post(port, answer))
  }
}
