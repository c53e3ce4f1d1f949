/**
 * One handler process as the main process sees it: a child that leads a group of its own, so that a key pressed in a terminal does not
 * reach it and killing it takes along what its handler has started.
 * States: `starting` and `idle` (no run), `busy` (one run, which it has taken or not yet), `gone` (it has exited, what was left of its group
 * has been killed, and all that it sent has been read). What it sends is not trusted. Owned by `process-host.ts`.
 */
import { type ChildProcess, fork } from 'node:child_process'
import type { Readable } from 'node:stream'
import type { LoadReply, ProcessMessage, RunReply } from '../../workers/handler-protocol.ts'
import { DEFAULTS } from '../config.ts'
import { toFailure } from '../failure.ts'
import type { Isolation } from '../isolation.ts'
import type { Failure } from '../job.ts'
import { type WorkerRole, workerFile } from '../worker-file.ts'
import { isThreadMessage, serveMessage } from './module-calls.ts'
import type { HostOptions } from './module-host.ts'
import { OutputTap } from './output-tap.ts'
import { handlerEnvironment } from './thread-environment.ts'
import { type PoolRun, runMessage } from './thread-run.ts'

/** Windows has no groups of processes, and would open a window. */
const HAS_GROUPS = process.platform !== 'win32'
/**
 * In each turn of the loop a channel is read until it is empty, or 64 KiB at the least, and the kernel keeps some 200 KiB. So after these
 * all has been read that was sent before them.
 */
const READ_TURNS = 16

export interface ProcessListener {
  onReply(child: HandlerProcess, run: PoolRun, reply: RunReply): void
  /** It cannot be reached any more and should end by itself. */
  onCut(child: HandlerProcess): void
  /** `run` is what it was at. */
  onGone(child: HandlerProcess, run: PoolRun | null, error: Failure): void
  /** It is gone; it worked before, and nothing of `run` has begun in it. */
  onUntaken(child: HandlerProcess, run: PoolRun): void
}

type ProcessOptions = Pick<HostOptions, 'isolation' | 'hrefs' | 'timers'>

function nodeOptions({ maxHeapMb, maxYoungHeapMb, stackMb }: Isolation): string[] {
  return [
    ...(maxHeapMb === null ? [] : [`--max-old-space-size=${maxHeapMb}`]),
    // A young generation is three semi-spaces.
    ...(maxYoungHeapMb === null ? [] : [`--max-semi-space-size=${Math.max(1, Math.floor(maxYoungHeapMb / 3))}`]),
    ...(stackMb === null ? [] : [`--stack-size=${stackMb * 1024}`]),
  ]
}

export class HandlerProcess {
  jobs = 0
  /** Settles when nothing more comes from it. */
  readonly gone: Promise<void>
  readonly #child: ChildProcess
  readonly #options: ProcessOptions
  readonly #listener: ProcessListener
  readonly #output: OutputTap
  #run: PoolRun | null = null
  /** It has loaded a module or taken a job: what it is told from then on it hears at once. */
  #isUp = false
  #hasTaken = false
  #takeTimer: unknown
  #isEnding = false
  #dying: Failure | null = null
  #onLoaded: (problem: LoadReply) => void = () => undefined

  constructor(options: ProcessOptions, listener: ProcessListener) {
    const { isolation, hrefs } = options
    this.#options = options
    this.#listener = listener
    const child = fork(workerFile(), ['handler-process' satisfies WorkerRole], {
      execArgv: nodeOptions(isolation),
      env: handlerEnvironment(process.env),
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      detached: HAS_GROUPS,
    })
    this.#child = child
    this.#output = new OutputTap(child.stdout, child.stderr)
    child.on('message', (message: unknown) => this.#receive(message))
    child.once('disconnect', () => listener.onCut(this))
    this.gone = new Promise((resolve) => {
      const gone = (): void => {
        resolve()
        this.#exited()
      }
      child.once('exit', () => {
        this.#endGroup()
        if (!child.connected) {
          gone()
          return
        }
        // What it sent may still be on its way. The channel closes behind it, unless a program that has it too lives on.
        child.once('disconnect', gone)
        this.#whenRead(() => {
          if (child.connected) child.disconnect()
        })
      })
      child.on('error', (error) => {
        this.#dying ??= toFailure(error)
        if (child.pid === undefined) gone()
      })
    })
    this.#post({ type: 'modules', modules: hrefs })
    child.unref()
    for (const stream of [child.stdout, child.stderr]) unref(stream)
    child.channel?.unref()
  }

  get isEnding(): boolean {
    return this.#isEnding
  }

  /** Loads the module of this position; a process that dies meanwhile tells it in `gone` and leaves this open. */
  load(position: number): Promise<LoadReply> {
    return new Promise((resolve) => {
      this.#onLoaded = resolve
      this.#post({ type: 'load', position })
    })
  }

  /** Throws what an input that cannot be sent throws; then the process is as free as it was. */
  start(run: PoolRun): void {
    this.#child.send({ type: 'run', message: runMessage(run) } satisfies ProcessMessage, () => undefined)
    this.jobs += 1
    this.#run = run
    this.#hasTaken = false
    if (this.#isUp) this.#expectTaken(run)
    this.#output.begin()
    this.#child.channel?.ref()
  }

  abort(run: PoolRun): void {
    const reason = run.abortReason
    if (this.#run === run && reason !== null) this.#post({ type: 'abort', task: run.parts.number, reason })
  }

  isAt(run: PoolRun): boolean {
    return this.#run === run
  }

  /** Once it has exited there is nothing to do: what was left of its group is killed, and its number may be another's. */
  kill(): void {
    this.#isEnding = true
    const { pid } = this.#child
    if (pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return
    try {
      process.kill(HAS_GROUPS ? -pid : pid, 'SIGKILL')
    } catch {
      this.#child.kill('SIGKILL')
    }
  }

  /** Lets it end by itself: it exits when the channel closes. */
  end(): void {
    this.#isEnding = true
    if (this.#child.connected) this.#child.disconnect()
  }

  /**
   * What the dead leader has left. No new process is given a number that a process or a group still has, and until Node collected the
   * exit, in this very turn, the dead one had it itself. So the group is its own, or nobody's and an error that says nothing.
   */
  #endGroup(): void {
    const { pid } = this.#child
    if (!HAS_GROUPS || pid === undefined) return
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // Nothing was left.
    }
  }

  /** After a standstill of our own loop the answer lies there unread. */
  #expectTaken(run: PoolRun): void {
    const late = (): void => {
      if (this.#run === run && !this.#hasTaken) this.kill()
    }
    this.#takeTimer = this.#options.timers.set(() => this.#whenRead(late), DEFAULTS.takeDeadlineMs, true)
  }

  #whenRead(then: () => void, turns = READ_TURNS): void {
    if (turns === 0) then()
    else this.#options.timers.defer(() => this.#whenRead(then, turns - 1))
  }

  #post(message: ProcessMessage): void {
    // To one that is gone nothing can be said.
    if (this.#child.connected) this.#child.send(message, () => undefined)
  }

  #receive(message: unknown): void {
    const run = this.#run
    if (isThreadMessage(message)) {
      if (run !== null && run.parts.number === message.task) serveMessage(run, message, (answer) => this.#post(answer))
      return
    }
    if (typeof message !== 'object' || message === null || !('type' in message)) return
    const fields = message as Readonly<Record<string, unknown>>
    if (fields.type === 'loaded') {
      this.#isUp = true
      this.#onLoaded(typeof fields.problem === 'string' ? fields.problem : null)
    } else if (fields.type === 'taken' && run !== null && run.parts.number === fields.task) {
      this.#isUp = true
      this.#hasTaken = true
      this.#options.timers.clear(this.#takeTimer)
    } else if (fields.type === 'dying') this.#dying ??= asFailure(fields.failure)
    else if (fields.type === 'reply' && run !== null && run.parts.number === fields.task && isReply(fields.reply)) {
      this.#run = null
      this.#child.channel?.unref()
      this.#listener.onReply(this, run, fields.reply)
    }
  }

  #exited(): void {
    this.#isEnding = true
    const run = this.#run
    this.#run = null
    this.#options.timers.clear(this.#takeTimer)
    if (run !== null && this.#isUp && !this.#hasTaken) this.#listener.onUntaken(this, run)
    else this.#listener.onGone(this, run, this.reason)
  }

  /** Why it is gone. */
  get reason(): Failure {
    const { exitCode, signalCode } = this.#child
    if (this.#output.tail.includes('heap out of memory')) {
      const { maxHeapMb } = this.#options.isolation
      const limit = maxHeapMb === null ? '' : `; maxHeapMb is ${maxHeapMb}`
      return { code: 'OUT_OF_MEMORY', message: `it ran out of memory (${signalCode ?? exitCode})${limit}` }
    }
    if (this.#dying !== null) return this.#dying
    const message = signalCode === null ? `it exited with code ${exitCode}` : `it was ended by ${signalCode}`
    return { code: 'EXITED', message }
  }
}

function unref(stream: Readable | null): void {
  if (stream !== null && 'unref' in stream && typeof stream.unref === 'function') stream.unref()
}

function asFailure(value: unknown): Failure {
  const isFailure = typeof value === 'object' && value !== null && 'code' in value && 'message' in value
  return isFailure ? (value as Failure) : toFailure(value)
}

function isReply(value: unknown): value is RunReply {
  if (!Array.isArray(value) || typeof value[0] !== 'number') return false
  const failure: unknown = value[2]
  if (failure === undefined) return true
  if (typeof failure !== 'object' || failure === null) return false
  const { code, message } = failure as Readonly<Record<string, unknown>>
  return typeof code === 'string' && typeof message === 'string'
}
