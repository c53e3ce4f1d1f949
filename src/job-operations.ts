/** What a client does with single jobs: enqueue, read, explain, cancel, replay. Every input is checked before a store is asked. */

import type { BackendActor } from './actors/backend-actor.ts'
import { decodeValue, encodeValue } from './backends/codec.ts'
import { laneOf } from './backends/kept.ts'
import type { EnqueueResult, StoredJob } from './backends/protocol/index.ts'
import type { Clock } from './clock.ts'
import {
  DEFAULTS,
  LIMITS,
  parseFlag,
  parseInteger,
  parseJobType,
  parseName,
  parseRunAt,
  refuseUnknown,
  show,
} from './config.ts'
import type { EnqueueOptions, JobContract } from './contract.ts'
import { checkInput, type DefinitionContext, type EnqueueTarget, toDefinition, toTarget } from './enqueue.ts'
import { accepted, requireAccepted } from './enqueue-refusal.ts'
import { type EnqueueTxRequest, enqueueTx } from './enqueue-tx.ts'
import { HoldfastError, invalidArgument } from './errors.ts'
import { type Explanation, explainJob } from './explain.ts'
import { contextOf } from './explain-context.ts'
import {
  type AttemptRecord,
  isTerminal,
  JOB_STATES,
  type JobDefinition,
  type JobDetail,
  type JobId,
  type JobRecord,
  type JobState,
  parseJobState,
} from './job.ts'
import { createHandle, type JobHandle, parseResultTimeout, type ResultOptions } from './job-handle.ts'
import { type LogLine, type LogOptions, queryOf, toLogLine } from './job-logs.ts'
import type { EnqueueRequest, JobPage, ListOptions, ReplayOptions } from './job-requests.ts'
import type { ResultWaiters } from './result-waiters.ts'
import { type Retention, retentionIn } from './retention.ts'

export interface JobOperationsContext {
  readonly backend: BackendActor
  readonly results: ResultWaiters
  readonly clock: Clock
  readonly retention: Retention
  readonly definition: DefinitionContext
  /** Fires the signal of a job that runs in this process. */
  readonly cancelRunning: (id: JobId) => void
}

const LIST_OPTIONS = new Set(['lane', 'state', 'type', 'limit', 'cursor'])
const CANCEL_OPTIONS = new Set(['force'])
const REPLAY_OPTIONS = new Set(['queue', 'runAt', 'input'])
const JOB_ID = /^[A-Za-z0-9_.-]{1,128}\/[0-9A-Z]{26}$/

export class JobOperations {
  readonly #context: JobOperationsContext

  constructor(context: JobOperationsContext) {
    this.#context = context
  }

  async enqueue(job: JobContract | string, input: unknown, options: EnqueueOptions = {}): Promise<JobHandle> {
    const target = toTarget(job)
    if (target.input !== null) await checkInput(target, input)
    const definition = toDefinition(target, input, options, this.#context.definition)
    const { results } = await this.#context.backend.ask('job.enqueue', { jobs: [definition], resend: false })
    return this.#handle(results[0])
  }

  /** Rejects; inside a synchronous transaction it throws. */
  enqueueTx(transaction: unknown, request: EnqueueTxRequest): Promise<JobHandle> {
    return enqueueTx(this.#context, transaction, request).then((result) => {
      const { id, outcome, state } = accepted(result)
      return createHandle(
        { id, deduplicated: outcome === 'deduplicated', state, isCommitted: false },
        this.#context.results,
      )
    })
  }

  /** All or none of the entries is checked wrong; batches larger than the store's limit are written in several steps. */
  async enqueueMany(requests: readonly EnqueueRequest[]): Promise<JobHandle[]> {
    if (!Array.isArray(requests)) throw invalidArgument('requests', 'expected an array')
    if (requests.length > LIMITS.enqueueBatch * 100)
      throw invalidArgument('requests', `at most ${LIMITS.enqueueBatch * 100} entries at once`)
    const targets = requests.map((request, index) =>
      inEntry(index, () => toTarget(request?.job as JobContract | string)),
    )
    await validateAll(targets, requests)
    const definitions = requests.map((request, index) =>
      inEntry(index, () =>
        toDefinition(targets[index] as EnqueueTarget, request.input, request.options ?? {}, this.#context.definition),
      ),
    )
    const size = this.#context.backend.backend.limits.enqueueJobs
    const all: EnqueueResult[] = []
    for (let from = 0; from < definitions.length; from += size) {
      const jobs = definitions.slice(from, from + size)
      const { results } = await this.#context.backend.ask('job.enqueue', { jobs, resend: false })
      all.push(...results)
      requireAccepted(all)
    }
    return definitions.map((_, index) => this.#handle(all[index]))
  }

  #handle(result: EnqueueResult | undefined): JobHandle {
    if (result === undefined) throw new HoldfastError('INTERNAL', 'the store left an enqueue unanswered')
    const { id, outcome, state } = accepted(result)
    return createHandle(
      { id, deduplicated: outcome === 'deduplicated', state, isCommitted: true },
      this.#context.results,
    )
  }

  async result(id: JobId, options: ResultOptions = {}): Promise<unknown> {
    const timeoutMs = parseResultTimeout(options)
    if (!JOB_ID.test(parseId(id))) throw notFound(id)
    return this.#context.results.wait({ id, timeoutMs, mayAppear: false, wasSeen: false })
  }

  async get(id: JobId): Promise<JobDetail | null> {
    const job = await this.#stored(id)
    return job === null ? null : toDetail(job)
  }

  async #stored(id: unknown): Promise<StoredJob | null> {
    if (!JOB_ID.test(parseId(id))) return null
    return (await this.#context.backend.ask('job.get', { ids: [id as JobId] })).jobs[0] ?? null
  }

  async #existing(id: unknown): Promise<StoredJob> {
    const job = await this.#stored(id)
    if (job === null) throw notFound(String(id))
    return job
  }

  async list(options: ListOptions = {}): Promise<JobPage> {
    refuseUnknown(options, LIST_OPTIONS, 'options')
    const { jobs, cursor } = await this.#context.backend.ask('job.list', {
      lane: options.lane === undefined ? null : parseName(options.lane, 'lane'),
      states: options.state === undefined ? null : parseStates(options.state),
      type: options.type === undefined ? null : parseJobType(options.type),
      limit:
        options.limit === undefined ? DEFAULTS.listLimit : parseInteger(options.limit, 'limit', 1, LIMITS.listLimit),
      cursor: options.cursor === undefined || options.cursor === null ? null : parseCursor(options.cursor),
    })
    return { jobs: jobs.map(toRecord), cursor }
  }

  /** In order, the oldest that is kept first. Empty for an unknown id. */
  async logs(id: JobId, options: LogOptions = {}): Promise<readonly LogLine[]> {
    const query = queryOf(id, options)
    if (!JOB_ID.test(parseId(id))) return []
    const { logs } = await this.#context.backend.ask('job.logs', { queries: [query] })
    return (logs[0] ?? []).map(toLogLine)
  }

  /** In order; the running one last. Empty for an unknown id. */
  async attempts(id: JobId): Promise<readonly AttemptRecord[]> {
    if ((await this.#stored(id)) === null) return []
    return (await this.#context.backend.ask('job.history', { ids: [id] })).attempts[0] ?? []
  }

  async explain(id: JobId): Promise<Explanation | null> {
    const job = await this.#stored(id)
    if (job === null) return null
    const { backend } = this.#context
    const [history, context] = await Promise.all([backend.ask('job.history', { ids: [id] }), contextOf(job, backend)])
    return explainJob(toRecord(job), history.attempts[0] ?? [], context)
  }

  /**
   * Cancels a job that waits; asks the owner of a running one to stop, or with `force` takes it from its owner at once. What the
   * handler has done already is not undone. Rejects with JOB_NOT_FOUND.
   */
  async cancel(
    id: JobId,
    options: { readonly force?: boolean } = {},
  ): Promise<'cancelled' | 'requested' | 'already_terminal'> {
    refuseUnknown(options, CANCEL_OPTIONS, 'options')
    const force = parseFlag(options.force, 'force')
    await this.#existing(id)
    const { backend, retention, cancelRunning, results } = this.#context
    const { outcomes } = await backend.ask('job.cancel', {
      ids: [id],
      force,
      keepMs: retentionIn(retention, laneOf(id)).cancelledMs,
    })
    const outcome = outcomes[0] ?? 'not_found'
    if (outcome === 'not_found') throw notFound(id)
    if (outcome === 'requested' || (outcome === 'cancelled' && force)) cancelRunning(id)
    if (outcome === 'cancelled') results.notify(id)
    return outcome
  }

  /** Makes a new job from an ended one, with `replayOf` set, no idempotency key and a fresh budget; the source is left as it is. */
  async replay(id: JobId, options: ReplayOptions = {}): Promise<JobHandle> {
    refuseUnknown(options, REPLAY_OPTIONS, 'options')
    const source = await this.#existing(id)
    if (!isTerminal(source.state)) {
      throw new HoldfastError('INVALID_STATE', `the job is ${source.state}; only an ended job can be replayed`, {
        details: { jobId: id, state: source.state },
      })
    }
    const definition = this.#replayed(source, options)
    const { results } = await this.#context.backend.ask('job.enqueue', { jobs: [definition], resend: false })
    return this.#handle(results[0])
  }

  #replayed(source: StoredJob, options: ReplayOptions): JobDefinition {
    const { definition, clock } = this.#context
    const lane = options.queue === undefined ? source.lane : parseName(options.queue, 'queue')
    const isPast = source.deadlineAt !== null && source.deadlineAt <= clock.now()
    return {
      id: `${lane}/${definition.ulid()}`,
      type: source.type,
      lane,
      payload: 'input' in options ? encodeValue(options.input, 'input', definition.payloadBytesMax) : source.payload,
      priority: source.priority,
      runAt: options.runAt === undefined ? null : parseRunAt(options.runAt, 'runAt', clock.now()),
      delayMs: 0,
      // A deadline that has passed would end the new job before it could start.
      deadlineAt: isPast ? null : source.deadlineAt,
      timeoutMs: source.timeoutMs,
      maxAttempts: source.maxAttempts,
      maxAttemptsFixed: source.maxAttemptsFixed,
      retry: source.maxAttemptsFixed ? source.retry : null,
      maxCrashes: source.maxCrashes,
      idempotencyKey: null,
      concurrencyKey: source.concurrencyKey,
      metadata: source.metadata,
      traceId: source.traceId,
      keepResultMs: source.keepResultMs,
      replayOf: source.id,
    }
  }

  /** Makes a scheduled or retrying job ready now. Rejects with JOB_NOT_FOUND or INVALID_STATE. */
  async retryNow(id: JobId): Promise<void> {
    const job = await this.#existing(id)
    const { outcomes } = await this.#context.backend.ask('job.promote', { ids: [id] })
    if (outcomes[0] === 'promoted') return
    if (outcomes[0] === 'not_found') throw notFound(id)
    const hint = isTerminal(job.state) ? '; replay makes a new job from an ended one' : ''
    const problem = `the job is ${job.state}; only a scheduled or retrying job can be made ready${hint}`
    throw new HoldfastError('INVALID_STATE', problem, { details: { jobId: id, state: job.state } })
  }
}

function inEntry<T>(index: number, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    throw new HoldfastError(error.code, `requests[${index}]: ${error.message}`, {
      details: { ...error.details, index },
      cause: error,
    })
  }
}

async function validateAll(targets: readonly EnqueueTarget[], requests: readonly EnqueueRequest[]): Promise<void> {
  for (const [index, target] of targets.entries()) {
    if (target.input === null) continue
    try {
      await checkInput(target, requests[index]?.input)
    } catch (error) {
      inEntry(index, () => {
        throw error
      })
    }
  }
}

function parseId(id: unknown): string {
  if (typeof id === 'string') return id
  throw invalidArgument('id', `expected a job id; got ${show(id)}`)
}

const notFound = (id: string): HoldfastError =>
  new HoldfastError('JOB_NOT_FOUND', `no job has the id ${show(id)}`, { details: { jobId: id } })

function parseStates(value: unknown): readonly JobState[] {
  return (Array.isArray(value) ? value : [value]).map((each: unknown) => {
    const state = typeof each === 'string' ? parseJobState(each) : null
    if (state === null)
      throw new HoldfastError('INVALID_STATE', `state: expected one of ${JOB_STATES.join(', ')}; got ${show(each)}`, {
        details: { field: 'state' },
      })
    return state
  })
}

/** Opaque; the store that made it knows more. */
function parseCursor(value: unknown): string {
  if (typeof value === 'string' && /^[A-Za-z0-9_-]{1,65536}$/.test(value)) return value
  throw invalidArgument('cursor', 'expected the cursor of the page before')
}

function toRecord(job: StoredJob): JobRecord {
  const { payload: _payload, output: _output, maxAttemptsFixed: _fixed, keepResultMs: _keep, progress, ...record } = job
  return { ...record, progress: progress === null ? null : decodeValue(progress) }
}

function toDetail(job: StoredJob): JobDetail {
  const hasOutput = job.output !== null
  const output = job.output === null ? undefined : decodeValue(job.output)
  return { ...toRecord(job), input: decodeValue(job.payload), output, hasOutput }
}
