/**
 * The main-thread end of the thread that renews leases of a Redis or PostgreSQL store on a connection of its own. It is started
 * with the first worker and replaced when it dies; meanwhile, and where it cannot run, the main loop renews alone.
 * It keeps no process alive. Owned by the backend.
 */
import { Worker } from 'node:worker_threads'
import { type Clock, sharedMonotonic, type TimerHandle, type Timers } from '../clock.ts'
import type { Random } from '../random.ts'
import type { Warn } from '../telemetry.ts'
import { type WorkerRole, workerFile } from '../worker-file.ts'
import type { LeaseKeeping } from './backend.ts'
import { LeaseBoards } from './lease-boards.ts'
import type { LeaseTerms } from './lease-policy.ts'
import type { FromKeeper, KeeperData, LeasePlace, ToKeeper } from './lease-thread-messages.ts'

const BACK_OFF_BASE_MS = 100
const BACK_OFF_MAX_MS = 10_000
/** Threads in a row that died before they were ready: it will not get better. */
const FUTILE_MAX = 5
/** How long closing waits for its connection to end in order. */
const CLOSE_WAIT_MS = 500

export interface LeaseThreadOptions {
  readonly place: LeasePlace
  readonly clock: Pick<Clock, 'monotonic'>
  readonly timers: Timers
  readonly random: Random
  readonly warn: Warn
}

export class LeaseThread {
  private readonly options: LeaseThreadOptions
  private readonly boards: LeaseBoards
  private worker: Worker | null = null
  private isReady = false
  private isGivenUp = false
  private isClosed = false
  private failures = 0
  private timer: TimerHandle = null

  constructor(options: LeaseThreadOptions) {
    this.options = options
    this.boards = new LeaseBoards({
      post: (message) => this.post(message),
      isReady: () => this.isReady,
    })
  }

  keep(terms: LeaseTerms): LeaseKeeping {
    const keeping = this.boards.open(terms)
    this.start()
    return keeping
  }

  /** Lets it close its connection, and ends it. */
  async close(): Promise<void> {
    this.isClosed = true
    this.options.timers.clear(this.timer)
    const { worker } = this
    if (worker === null) return
    const exited = new Promise<void>((resolve) => {
      worker.once('exit', () => resolve())
    })
    this.post({ kind: 'close' })
    const timer = this.options.timers.set(() => void worker.terminate(), CLOSE_WAIT_MS)
    await exited
    this.options.timers.clear(timer)
  }

  private post(message: ToKeeper): void {
    this.worker?.postMessage(message)
  }

  private start(): void {
    if (this.worker !== null || this.isGivenUp || this.isClosed || this.timer !== null) return
    const { place, clock } = this.options
    const workerData: KeeperData = {
      place,
      originMs: sharedMonotonic() - clock.monotonic(),
      boards: this.boards.list(),
    }
    const worker = new Worker(workerFile(), { argv: ['lease-keeper' satisfies WorkerRole], workerData })
    worker.unref()
    this.worker = worker
    let why: unknown = null
    worker.on('error', (error) => {
      why ??= error
    })
    worker.on('message', (message: FromKeeper) => {
      if (message.kind === 'ready') this.becomeReady()
      else this.giveUp(message.message)
    })
    worker.once('exit', () => this.ended(why))
  }

  private becomeReady(): void {
    this.isReady = true
    this.failures = 0
  }

  private giveUp(problem: string): void {
    if (this.isGivenUp) return
    this.isGivenUp = true
    const fields = { code: 'LEASE_KEEPER', err: problem }
    this.options.warn(fields, 'no thread can renew leases; while the main loop is blocked, nobody does')
  }

  private ended(cause: unknown): void {
    this.worker = null
    this.isReady = false
    if (this.isClosed || this.isGivenUp) return
    const { timers, random, warn } = this.options
    this.failures += 1
    const problem = cause instanceof Error ? cause.message : 'it ended by itself'
    if (this.failures > FUTILE_MAX) {
      this.giveUp(problem)
      return
    }
    warn({ code: 'LEASE_KEEPER', err: problem }, 'the thread that renews leases has ended; another one is started')
    const waitMs = random.next() * Math.min(BACK_OFF_MAX_MS, BACK_OFF_BASE_MS * 2 ** this.failures)
    this.timer = timers.set(
      () => {
        this.timer = null
        if (this.boards.size > 0) this.start()
      },
      waitMs,
      true,
    )
  }
}

/** null, and a warning: the way to the store cannot be told to a thread (a function or a socket is in it). */
export function openLeaseThread(
  place: LeasePlace | null,
  options: Omit<LeaseThreadOptions, 'place'>,
): LeaseThread | null {
  const crossing = place === null ? null : copyOf(place)
  if (crossing !== null) return new LeaseThread({ ...options, place: crossing })
  options.warn(
    { code: 'LEASE_KEEPER' },
    'the given client or pool has options that cannot be handed to a thread: leases are renewed on the main loop alone',
  )
  return null
}

function copyOf(place: LeasePlace): LeasePlace | null {
  try {
    return structuredClone(place)
  } catch {
    return null
  }
}
