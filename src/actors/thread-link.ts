/**
 * The main thread's ends of the ports of all handler threads: hands aborts out and lets services answer what comes in.
 * What comes in is not trusted: a message of an unknown shape, of a run that is not in flight, or from another port than
 * the run's first one is dropped. Log lines are taken in portions: a thread sends more of them when it is told, some time after they
 * came, how many were taken, so that the loop has time for other things between. Owned by `thread-host.ts`.
 */
import { MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { MainMessage } from '../../workers/handler-protocol.ts'
import type { TimerHandle, Timers } from '../clock.ts'
import { isThreadMessage, serveMessage } from './module-calls.ts'
import type { PoolRun } from './thread-run.ts'

/** A thread that dies while it floods its port is not read to the end; more than the lines that one has under way and holds. */
const LAST_WORDS_MAX = 2_000
/** At the window of `workers/log-window.ts` a thread that logs without end takes a sixth of the loop, 10 ms at a time (November 2026). */
const TAKEN_AFTER_MS = 50

/** The lines that came from one thread: where they are counted for it, and those that are not counted yet. */
interface Lines {
  readonly taken: Int32Array | null
  fresh: number
}

export class ThreadLinks {
  readonly #ports = new Map<MessagePort, Lines>()
  readonly #runs: ReadonlyMap<number, PoolRun>
  readonly #timers: Timers
  readonly #onPort: () => void
  #timer: TimerHandle = null

  constructor(runs: ReadonlyMap<number, PoolRun>, timers: Timers, onPort: () => void) {
    this.#runs = runs
    this.#timers = timers
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
    const taken = 'taken' in message && isShared(message.taken) ? message.taken : null
    this.#ports.set(port, { taken, fresh: 0 })
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
    for (const port of this.#ports.keys()) this.#post(port, { type: 'forget', task: run.parts.number })
  }

  /**
   * Handles what the thread sent before its outcome: two ports have no order between them, so an outcome may arrive first.
   * `sent` is how many messages there are; null when the thread died and cannot say.
   */
  drain(run: PoolRun, sent: number | null): void {
    if (run.thread.received !== sent) this.#takeRest(run, sent)
    // The next attempt in that thread has the whole window.
    const lines = run.thread.port === null ? undefined : this.#ports.get(run.thread.port)
    if (lines !== undefined && lines.fresh > 0) tellTaken(lines)
  }

  #takeRest(run: PoolRun, sent: number | null): void {
    for (const port of this.#portsOf(run)) {
      for (let count = 0; run.thread.received !== sent && (sent !== null || count < LAST_WORDS_MAX); count += 1) {
        const entry = receiveMessageOnPort(port)
        if (entry === undefined) break
        this.#receive(port, entry.message)
      }
    }
  }

  close(): void {
    for (const port of this.#ports.keys()) port.close()
    this.#ports.clear()
    this.#timers.clear(this.#timer)
  }

  #portsOf(run: PoolRun): Iterable<MessagePort> {
    return run.thread.port === null ? this.#ports.keys() : [run.thread.port]
  }

  #postAbort(port: MessagePort, run: PoolRun): void {
    if (run.abortReason !== null) this.#post(port, { type: 'abort', task: run.parts.number, reason: run.abortReason })
  }

  #post(port: MessagePort, message: MainMessage): void {
    port.postMessage(message)
  }

  #receive(port: MessagePort, message: unknown): void {
    if (!isThreadMessage(message)) return
    if (message.type === 'log') this.#count(port)
    const run = this.#runs.get(message.task)
    if (run === undefined) return
    run.thread.port ??= port
    if (run.thread.port !== port) return
    run.thread.received += 1
    serveMessage(run, message, (answer) => this.#post(port, answer))
  }

  /** Also what is of no run any more: the thread waits for its count. */
  #count(port: MessagePort): void {
    const lines = this.#ports.get(port)
    if (lines === undefined) return
    lines.fresh += 1
    this.#timer ??= this.#timers.set(() => this.#tellTaken(), TAKEN_AFTER_MS, true)
  }

  #tellTaken(): void {
    this.#timer = null
    for (const lines of this.#ports.values()) tellTaken(lines)
  }
}

function tellTaken(lines: Lines): void {
  if (lines.taken !== null) Atomics.add(lines.taken, 0, lines.fresh)
  lines.fresh = 0
}

const isShared = (value: unknown): value is Int32Array =>
  value instanceof Int32Array && value.buffer instanceof SharedArrayBuffer && value.length > 0
