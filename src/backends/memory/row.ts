/**
 * One job inside the memory store. A row's state changes only through `move`, which refuses what the
 * machine does not allow: here the machine itself guards, elsewhere Lua and SQL must agree with it.
 */
import { type JobEventType, nextState } from '../../actors/job-machine.ts'
import { HoldfastError } from '../../errors.ts'
import type { AttemptRecord, Failure, JobDefinition, JobState, LeaseToken, Payload, RetryPolicy } from '../../job.ts'
import type { Member } from '../../roster.ts'
import type { StoredLine } from '../protocol/index.ts'

/**
 * What a row has once it was claimed or ended: kept apart so that a job which only waits costs little.
 * `token` outlives the lease so that a repeated settlement is recognised, and is wiped when others take the job.
 */
class Run {
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
  log: StoredLine[] | null = null
  history: AttemptRecord[] | null = null

  constructor({ maxAttempts, retry }: JobDefinition) {
    this.maxAttempts = maxAttempts
    this.retry = retry
  }
}

/** Mutable; held by the store's map and by the orders of its lane. */
export class JobRow implements Member {
  readonly definition: JobDefinition
  readonly sequence: number
  readonly createdAt: number
  state: JobState
  updatedAt: number
  runAt: number
  /** Raised when the row enters an order again, so that entries left behind in one are known as stale. */
  ticket = 0
  /** The ticket with which it was set aside by a claim that found its key at the limit. */
  parkedTicket = -1
  place = -1
  private ran: Run | null = null

  constructor(definition: JobDefinition, sequence: number, now: number) {
    this.definition = definition
    this.sequence = sequence
    this.createdAt = now
    this.updatedAt = now
    this.runAt = definition.runAt ?? now + definition.delayMs
    const event = this.runAt > now ? 'schedule' : 'queue'
    this.state = nextState('new', event) ?? 'queued'
  }

  get run(): Run {
    this.ran ??= new Run(this.definition)
    return this.ran
  }

  /**
   * Lets go of what the run made. A dead row that the collector has moved to the old generation would otherwise keep it
   * alive, and have it copied, until the next full collection.
   */
  forget(): void {
    this.ran = null
  }

  /** The same for reading: never made by a read. */
  get view(): Readonly<Run> {
    return this.ran ?? new Run(this.definition)
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
    return this.state === 'running' && this.run.token === token
  }

  record(outcome: AttemptRecord['outcome'], now: number, durationMs: number | null, failure: Failure | null): void {
    this.run.history ??= []
    this.run.history.push({
      attempt: this.run.attempts,
      outcome,
      workerId: this.run.workerId ?? '',
      leaseEpoch: this.run.leaseEpoch,
      startedAt: this.run.startedAt ?? now,
      finishedAt: now,
      durationMs,
      failure,
    })
  }
}
