/** What the mutable columns of a job hold, as texts and read back: its run, its end, its terms and its attempts. */
import { HoldfastError } from '../../errors.ts'
import type { AttemptOutcome, AttemptRecord, Failure, RetryPolicy } from '../../job.ts'
import type { Settlement } from '../protocol/index.ts'

/** R running, X running and asked to cancel, Q queued, W waiting for a retry or queued after it, C completed, K cancelled, D dead. */
export type RunState = 'R' | 'X' | 'Q' | 'W' | 'C' | 'K' | 'D'

export interface Run {
  readonly state: RunState
  /** The whole token, or what is left of one that must not be recognised any more, or empty. */
  readonly token: string
  readonly leaseEpoch: number | null
  readonly workerId: string | null
  readonly attempts: number
  readonly crashes: number
  readonly startedAt: number | null
  readonly updatedAt: number
  readonly runAt: number
  /** Of a terminal job, which was updated when it ended; else null. */
  readonly ending: Ending | null
}

export interface Ending {
  readonly cancelRequested: boolean
  /** The handler gave nothing back, and that is kept. */
  readonly isOutputNothing: boolean
  /** Only of completed jobs. */
  readonly durationMs: number | null
  readonly dlqCode: string | null
}

function damaged(what: string): HoldfastError {
  return new HoldfastError('STORE_CORRUPT', `the Redis store holds a damaged ${what} of a job`, {
    details: { outcome: 'refused' },
  })
}

const RUN = /^([RXQWCKD])([^|]*)\|(\d+)\|(\d+)\|\d+\|(\d*),(\d+),(-?\d+)(?:\|([xu]*)([^|]*)\|([\s\S]*))?$/

/** Throws STORE_CORRUPT. */
export function parseRun(text: string): Run {
  const match = RUN.exec(text)
  if (match === null) throw damaged('run')
  const [, state, token = '', attempts, crashes, started = '', updated, runAt, marks, duration = '', code = ''] = match
  const [epoch = '', worker] = token.split(':', 2)
  return {
    state: state as RunState,
    token,
    leaseEpoch: epoch === '' ? null : Number(epoch),
    workerId: worker ?? null,
    attempts: Number(attempts),
    crashes: Number(crashes),
    startedAt: started === '' ? null : Number(started),
    updatedAt: Number(updated),
    runAt: Number(runAt),
    ending:
      marks === undefined
        ? null
        : {
            cancelRequested: marks.includes('x'),
            isOutputNothing: marks.includes('u'),
            durationMs: duration === '' ? null : Number(duration),
            dlqCode: code === '' ? null : code,
          },
  }
}

/** What a first failure froze: the policy and the budget that follows from it. */
export interface Terms {
  readonly retry: RetryPolicy
  readonly maxAttempts: number
}

export function termsText({ retry, maxAttempts }: Terms): string {
  return JSON.stringify({ retry, maxAttempts })
}

export const parseTerms = (text: string): Terms => parseJson<Terms>(text, 'terms')
export const parseFailure = (text: string): Failure => parseJson<Failure>(text, 'failure')

function parseJson<T>(text: string, what: string): T {
  try {
    return JSON.parse(text) as T
  } catch {
    throw damaged(what)
  }
}

/** How the attempt that a settlement ends is recorded; empty where it is not. */
export function outcomeOf(settlement: Settlement): AttemptOutcome | '' {
  switch (settlement.kind) {
    case 'release':
      return settlement.started ? 'released' : ''
    case 'retry':
      return settlement.failure.code === 'PANIC' ? 'crashed' : 'failed'
    case 'requeue':
      return 'crashed'
    case 'dead':
      return settlement.failure.code === 'PANIC' || settlement.failure.code === 'LEASE_EXPIRED' ? 'crashed' : 'failed'
    case 'cancel':
      return 'cancelled'
    case 'complete':
      return ''
    default:
      return settlement satisfies never
  }
}

/** One line an attempt: `attempt|token|started|finished|outcome|duration|failure`. */
export function parseAttempts(text: string): AttemptRecord[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [attempt, token = '', started, finished, outcome, duration = '', ...failure] = line.split('|')
      const [epoch, workerId = ''] = token.split(':', 2)
      const json = failure.join('|')
      return {
        attempt: Number(attempt),
        outcome: outcome as AttemptOutcome,
        workerId,
        leaseEpoch: Number(epoch),
        startedAt: Number(started),
        finishedAt: Number(finished),
        durationMs: duration === '' ? null : Number(duration),
        failure: json === '' ? null : parseFailure(json),
      }
    })
}
