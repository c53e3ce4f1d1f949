/**
 * The policy of the whole system, pure: what becomes of a job after a failure or an expired lease, and when it runs again.
 * Stores only guard and apply what is decided here, so Lua and SQL cannot drift apart.
 */

import { type Failure, failureClass, type JobState, type RetryPolicy } from '../job.ts'
import type { Random } from '../random.ts'
import type { Settlement } from './protocol/index.ts'

/** What the rules need to know of the attempt that ended. */
export interface Budget {
  /** The attempt that just ended, from 1. */
  readonly attempt: number
  readonly maxAttempts: number
  /** Crashes in a row before this attempt. */
  readonly crashes: number
  readonly maxCrashes: number
}

export type FailureDecision =
  | { readonly next: 'retry'; readonly delayMs: number; readonly crashes: number }
  | { readonly next: 'dead'; readonly code: string; readonly crashes: number }
  | { readonly next: 'cancel'; readonly crashes: number }

/**
 * Delay before the run after failure number `failures` (from 1), jitter applied after the cap and cut to [0, cap].
 * https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ explains why jitter is on by default.
 */
export function retryDelayMs(policy: RetryPolicy, failures: number, random: Random): number {
  if (policy.kind === 'immediate' || policy.kind === 'none') return 0
  const exact =
    policy.kind === 'fixed' ? policy.baseMs : Math.min(policy.capMs, policy.baseMs * 2 ** Math.min(failures - 1, 1023))
  if (policy.jitter === 0) return exact
  const jittered = exact * (1 + policy.jitter * (2 * random.next() - 1))
  return Math.round(Math.min(Math.max(0, jittered), policy.capMs))
}

/** What follows a failed attempt. */
export function decideFailure(failure: Failure, budget: Budget, policy: RetryPolicy, random: Random): FailureDecision {
  const kind = failure.permanent === true ? 'permanent' : failureClass(failure.code)
  if (kind === 'cancelled') return { next: 'cancel', crashes: 0 }
  if (kind === 'permanent' || kind === 'deadline') return { next: 'dead', code: failure.code.toUpperCase(), crashes: 0 }
  const crashes = kind === 'panic' ? budget.crashes + 1 : 0
  if (crashes > 0 && crashes >= budget.maxCrashes) return { next: 'dead', code: 'PANIC', crashes }
  if (budget.attempt >= budget.maxAttempts) return { next: 'dead', code: 'MAX_ATTEMPTS_EXCEEDED', crashes }
  return { next: 'retry', delayMs: failure.retryAfterMs ?? retryDelayMs(policy, budget.attempt, random), crashes }
}

export type ExpiryDecision =
  | { readonly next: 'requeue'; readonly crashes: number }
  | { readonly next: 'dead'; readonly code: string; readonly crashes: number }
  | { readonly next: 'cancel'; readonly crashes: number }

/** What follows a lease that ran out: the attempt is spent, and counts as a crash. */
export function decideExpiry(budget: Budget, cancelRequested: boolean): ExpiryDecision {
  const crashes = budget.crashes + 1
  if (cancelRequested) return { next: 'cancel', crashes }
  if (budget.attempt >= budget.maxAttempts) return { next: 'dead', code: 'MAX_ATTEMPTS_EXCEEDED', crashes }
  if (crashes >= budget.maxCrashes) return { next: 'dead', code: 'CRASH_LOOP', crashes }
  return { next: 'requeue', crashes }
}

/** The failure recorded for an attempt whose lease ran out. */
export function expiryFailure(workerId: string): Failure {
  return { code: 'LEASE_EXPIRED', message: `the lease of ${workerId} ran out before the attempt ended` }
}

/** The epoch of the next grant: never below the store's microseconds, always above the one before. */
export function nextEpoch(previous: number, storeNowMs: number): number {
  return nextEpochUs(previous, Math.floor(storeNowMs * 1000))
}

/** The same for a store that tells microseconds itself. */
export function nextEpochUs(previous: number, storeNowUs: number): number {
  return Math.max(previous + 1, storeNowUs)
}

/** The token of one grant. `ordinal` tells apart the jobs that one claim is given. */
export function leaseToken(epoch: number, workerId: string, nonce: string, ordinal: number): string {
  return `${epoch}:${workerId}:${nonce}.${ordinal}`
}

/** States in which a job may be found after its own settlement of that kind was applied: then it is known as repeated. */
export const STATES_AFTER: Readonly<Record<Settlement['kind'], readonly JobState[]>> = {
  complete: ['completed'],
  retry: ['retry_wait', 'queued', 'cancelled'],
  dead: ['dlq'],
  cancel: ['cancelled'],
  release: ['queued', 'cancelled'],
  requeue: ['queued'],
}
