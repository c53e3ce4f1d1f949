/** The handle of a job: its id, and the wait for its result. */
import { type Duration, parseDuration, refuseUnknown } from './config.ts'
import type { JobId, JobState } from './job.ts'
import type { ResultWaiters } from './result-waiters.ts'

const RESULT_TIMEOUT_MS = 60_000
const RESULT_OPTIONS = new Set(['timeout'])

/** How long to wait for a result. */
export interface ResultOptions {
  /** Default 60 s. */
  readonly timeout?: Duration
}

export interface JobHandle<Output = unknown> {
  readonly id: JobId
  /** True when a job with the same idempotency key was there already; `id` is its id. */
  readonly deduplicated: boolean
  /** Of the job when the store took or found it; `get` tells what it is now. */
  readonly state: JobState
  /**
   * Waits for the job to end and gives its output. `timeout` defaults to 60 s. Rejects with JOB_DEAD or JOB_CANCELLED when it
   * ended so, with its failure in `details.failure`; RESULT_TIMEOUT with its state in `details.state`; RESULT_NOT_KEPT when there is
   * none to give; JOB_NOT_FOUND. Any number may wait in any process: those of one client share their reads. After `enqueueTx` it
   * waits for the commit as well, so it is of no use inside the transaction; one that was rolled back is a RESULT_TIMEOUT.
   */
  result(options?: ResultOptions): Promise<Output>
}

/** What a handle is of. `isCommitted` is false when the job can be read only once its transaction has ended. */
export interface Enqueued {
  readonly id: JobId
  readonly deduplicated: boolean
  readonly state: JobState
  readonly isCommitted: boolean
}

class Handle<Output> implements JobHandle<Output> {
  readonly id: JobId
  readonly deduplicated: boolean
  readonly state: JobState
  readonly #isCommitted: boolean
  readonly #results: ResultWaiters

  constructor({ id, deduplicated, state, isCommitted }: Enqueued, results: ResultWaiters) {
    this.id = id
    this.deduplicated = deduplicated
    this.state = state
    this.#isCommitted = isCommitted
    this.#results = results
  }

  async result(options: ResultOptions = {}): Promise<Output> {
    const timeoutMs = parseResultTimeout(options)
    const wait = { id: this.id, timeoutMs, mayAppear: !this.#isCommitted, wasSeen: this.#isCommitted }
    return (await this.#results.wait(wait)) as Output
  }
}

export function createHandle<Output>(enqueued: Enqueued, results: ResultWaiters): JobHandle<Output> {
  return new Handle(enqueued, results)
}

/** Throws INVALID_ARGUMENT or INVALID_DURATION. */
export function parseResultTimeout(options: ResultOptions): number {
  refuseUnknown(options, RESULT_OPTIONS, 'options')
  return options.timeout === undefined ? RESULT_TIMEOUT_MS : parseDuration(options.timeout, 'timeout')
}
