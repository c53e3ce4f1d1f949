/**
 * The handle of an enqueued job and the wait for its result: woken at once when a worker of this client ends the job, and
 * by a poll with growing pauses otherwise.
 */
import type { BackendActor } from './actors/backend-actor.ts'
import { decodeValue } from './backends/codec.ts'
import type { StoredJob } from './backends/protocol/index.ts'
import type { Clock, Timers } from './clock.ts'
import { type Duration, parseDuration, refuseUnknown } from './config.ts'
import { HoldfastError } from './errors.ts'
import { isTerminal, type JobId, type JobState } from './job.ts'

const POLL_FIRST_MS = 20
const POLL_MAX_MS = 1_000
const RESULT_TIMEOUT_MS = 60_000
const RESULT_OPTIONS = new Set(['timeout'])

/** Who waits for which job to end. */
export class EndListeners {
  private readonly waiting = new Map<JobId, Set<() => void>>()

  notify(id: JobId): void {
    for (const wake of this.waiting.get(id) ?? []) wake()
  }

  add(id: JobId, wake: () => void): void {
    const set = this.waiting.get(id) ?? new Set()
    set.add(wake)
    this.waiting.set(id, set)
  }

  remove(id: JobId, wake: () => void): void {
    const set = this.waiting.get(id)
    set?.delete(wake)
    if (set?.size === 0) this.waiting.delete(id)
  }
}

export interface ResultContext {
  readonly backend: BackendActor
  readonly clock: Clock
  readonly timers: Timers
  readonly ended: EndListeners
}

export interface JobHandle<Output = unknown> {
  readonly id: JobId
  /** True when a job with the same idempotency key was there already; `id` is its id. */
  readonly deduplicated: boolean
  /** Of the job when the store took or found it; `get` tells what it is now. */
  readonly state: JobState
  /**
   * Waits for the job to end and gives its output. `timeout` defaults to 60 s. Rejects with JOB_DEAD or JOB_CANCELLED when it
   * ended so, RESULT_TIMEOUT, RESULT_NOT_KEPT when there is none to give, JOB_NOT_FOUND. After `enqueueTx` it waits for the
   * commit as well, so it is of no use inside the transaction; one that was rolled back is a RESULT_TIMEOUT.
   */
  result(options?: { readonly timeout?: Duration }): Promise<Output>
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
  readonly #context: ResultContext

  constructor({ id, deduplicated, state, isCommitted }: Enqueued, context: ResultContext) {
    this.id = id
    this.deduplicated = deduplicated
    this.state = state
    this.#isCommitted = isCommitted
    this.#context = context
  }

  async result(options: { readonly timeout?: Duration } = {}): Promise<Output> {
    refuseUnknown(options, RESULT_OPTIONS, 'options')
    const timeoutMs = options.timeout === undefined ? RESULT_TIMEOUT_MS : parseDuration(options.timeout, 'timeout')
    const wait = { id: this.id, timeoutMs, mayAppear: !this.#isCommitted }
    return (await awaitResult(wait, this.#context)) as Output
  }
}

export function createHandle<Output>(enqueued: Enqueued, context: ResultContext): JobHandle<Output> {
  return new Handle(enqueued, context)
}

interface Wait {
  readonly id: JobId
  readonly timeoutMs: number
  /** The job may be in a transaction that has not ended. */
  readonly mayAppear: boolean
}

async function awaitResult({ id, timeoutMs, mayAppear }: Wait, context: ResultContext): Promise<unknown> {
  const { backend, clock, timers, ended } = context
  const startedAt = clock.monotonic()
  let wasSeen = false
  for (let pauseMs = POLL_FIRST_MS; ; pauseMs = Math.min(POLL_MAX_MS, pauseMs * 1.5)) {
    let wake = (): void => {}
    const woken = new Promise<void>((resolve) => {
      wake = resolve
    })
    const hear = (): void => {
      wasSeen = true // Whatever ends here was there, even if it is not kept.
      wake()
    }
    ended.add(id, hear)
    try {
      const [job = null] = (await backend.ask('job.get', { ids: [id] })).jobs
      if (job !== null && isTerminal(job.state)) return resultOf(job)
      if (job === null && wasSeen) throw notKept(id)
      if (job === null && !mayAppear)
        throw new HoldfastError('JOB_NOT_FOUND', `no job has the id ${id}`, { details: { jobId: id } })
      wasSeen ||= job !== null
      const leftMs = timeoutMs - (clock.monotonic() - startedAt)
      if (leftMs <= 0) throw timedOut(id, timeoutMs, job)
      const timer = timers.set(wake, Math.min(pauseMs, leftMs))
      await woken
      timers.clear(timer)
    } finally {
      ended.remove(id, hear)
    }
  }
}

function timedOut(id: JobId, timeoutMs: number, job: StoredJob | null): HoldfastError {
  const problem =
    job === null
      ? `the transaction of the job was not committed within ${timeoutMs} ms`
      : `the job is ${job.state}; it did not end within ${timeoutMs} ms`
  return new HoldfastError('RESULT_TIMEOUT', problem, { details: { jobId: id, state: job?.state ?? null } })
}

const notKept = (id: JobId): HoldfastError =>
  new HoldfastError(
    'RESULT_NOT_KEPT',
    'the job completed, but its result was not kept; see keepResult and keepCompleted',
    { details: { jobId: id } },
  )

function resultOf(job: StoredJob): unknown {
  switch (job.state) {
    case 'completed':
      if (job.output === null) throw notKept(job.id)
      return decodeValue(job.output)
    case 'cancelled':
      throw new HoldfastError('JOB_CANCELLED', 'the job was cancelled', { details: { jobId: job.id } })
    default: {
      const { dlqCode, lastFailure } = job
      throw new HoldfastError(
        'JOB_DEAD',
        `the job is in the dead letters with ${dlqCode ?? 'no code'}: ${lastFailure?.message ?? ''}`,
        {
          details: { jobId: job.id, dlqCode, failure: lastFailure },
        },
      )
    }
  }
}
