/**
 * One job inside the memory store, and its views. A row's state changes only through `move`, which refuses what the
 * machine does not allow: here the machine itself guards, elsewhere Lua and SQL must agree with it.
 */
import { type JobEventType, nextState } from '../../actors/job-machine.ts'
import { HoldfastError } from '../../errors.ts'
import type { AttemptRecord, Failure, JobDefinition, JobState, LeaseToken, Payload, RetryPolicy } from '../../job.ts'
import type { ClaimedJob, StoredJob } from '../protocol/index.ts'

/** Mutable; `token` outlives the lease so that a repeated settlement is recognised, and is wiped when others take the job. */
export class JobRow {
  readonly definition: JobDefinition
  readonly sequence: number
  readonly createdAt: number
  state: JobState
  updatedAt: number
  runAt: number
  attempts = 0
  maxAttempts: number
  crashes = 0
  retry: RetryPolicy | null
  token: LeaseToken | null = null
  leaseEpoch = 0
  leaseExpiresAt = 0
  workerId: string | null = null
  startedAt: number | null = null
  finishedAt: number | null = null
  durationMs: number | null = null
  cancelRequested = false
  lastFailure: Failure | null = null
  dlqCode: string | null = null
  output: Payload | null = null
  outputUntil: number | null = null
  keepUntil: number | null = null
  progress: Payload | null = null
  history: AttemptRecord[] | null = null
  /** Raised when the row enters an order again, so that entries left behind in a heap are known as stale. */
  ticket = 0

  constructor(definition: JobDefinition, sequence: number, now: number) {
    this.definition = definition
    this.sequence = sequence
    this.createdAt = now
    this.updatedAt = now
    this.runAt = definition.runAt ?? now + definition.delayMs
    this.maxAttempts = definition.maxAttempts
    this.retry = definition.retry
    const event = this.runAt > now ? 'schedule' : 'queue'
    this.state = nextState('new', event) ?? 'queued'
  }

  move(event: JobEventType, now: number): void {
    const next = nextState(this.state, event)
    if (next === null) {
      throw new HoldfastError('INTERNAL', `illegal move ${event} from ${this.state}`, {
        details: { id: this.definition.id },
      })
    }
    this.state = next
    this.updatedAt = now
    this.ticket += 1
  }

  /** True while `token` is the valid lease: expiry alone does not end it, the next owner does. */
  isHeldBy(token: LeaseToken): boolean {
    return this.state === 'running' && this.token === token
  }

  record(outcome: AttemptRecord['outcome'], now: number, durationMs: number | null, failure: Failure | null): void {
    this.history ??= []
    this.history.push({
      attempt: this.attempts,
      outcome,
      workerId: this.workerId ?? '',
      leaseEpoch: this.leaseEpoch,
      startedAt: this.startedAt ?? now,
      finishedAt: now,
      durationMs,
      failure,
    })
  }

  /** The attempts in order; the one that runs, or that completed the job, is read off the row itself. */
  attemptsRecorded(): readonly AttemptRecord[] {
    const past = this.history ?? []
    if (this.state !== 'running' && this.state !== 'completed') return past
    const last: AttemptRecord = {
      attempt: this.attempts,
      outcome: this.state === 'running' ? 'running' : 'succeeded',
      workerId: this.workerId ?? '',
      leaseEpoch: this.leaseEpoch,
      startedAt: this.startedAt ?? this.updatedAt,
      finishedAt: this.finishedAt,
      durationMs: this.durationMs,
      failure: null,
    }
    return [...past, last]
  }

  claimed(now: number): ClaimedJob {
    const { definition } = this
    return {
      id: definition.id,
      type: definition.type,
      lane: definition.lane,
      payload: definition.payload,
      token: this.token ?? '',
      attempt: this.attempts,
      maxAttempts: this.maxAttempts,
      maxAttemptsFixed: definition.maxAttemptsFixed,
      crashes: this.crashes,
      maxCrashes: definition.maxCrashes,
      retry: this.retry,
      timeoutMs: definition.timeoutMs,
      deadlineAt: definition.deadlineAt,
      deadlineInMs: definition.deadlineAt === null ? null : definition.deadlineAt - now,
      metadata: definition.metadata,
      traceId: definition.traceId,
      keepResultMs: definition.keepResultMs,
    }
  }

  stored(withValues: boolean): StoredJob {
    const { definition } = this
    const isRunning = this.state === 'running'
    return {
      id: definition.id,
      type: definition.type,
      lane: definition.lane,
      state: this.state,
      priority: definition.priority,
      createdAt: this.createdAt,
      updatedAt: this.updatedAt,
      runAt: this.runAt,
      deadlineAt: definition.deadlineAt,
      timeoutMs: definition.timeoutMs,
      attempts: this.attempts,
      maxAttempts: this.maxAttempts,
      maxAttemptsFixed: definition.maxAttemptsFixed,
      crashes: this.crashes,
      maxCrashes: definition.maxCrashes,
      retry: this.retry,
      idempotencyKey: definition.idempotencyKey,
      metadata: definition.metadata,
      traceId: definition.traceId,
      replayOf: definition.replayOf,
      workerId: this.workerId,
      leaseEpoch: this.leaseEpoch === 0 ? null : this.leaseEpoch,
      leaseExpiresAt: isRunning ? this.leaseExpiresAt : null,
      startedAt: this.startedAt,
      finishedAt: this.finishedAt,
      cancelRequested: this.cancelRequested,
      lastFailure: this.lastFailure,
      dlqCode: this.dlqCode,
      keepResultMs: definition.keepResultMs,
      payload: withValues ? definition.payload : '',
      output: withValues ? this.output : null,
      progress: this.progress,
    }
  }
}
