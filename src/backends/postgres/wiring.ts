/** What everything that talks to one store shares: time, chance, deadlines, and a way to warn. */
import type { Clock, Timers } from '../../clock.ts'
import type { Random } from '../../random.ts'
import type { Warn } from '../../telemetry.ts'

export interface Limits {
  /** Longest wait for a connection, made anew or given back by others. */
  readonly connectMs: number
  /** `statement_timeout`, `lock_timeout` and `idle_in_transaction_session_timeout` of connections of our own, and of every transaction. */
  readonly statementMs: number
  readonly lockMs: number
  readonly idleMs: number
  /** Longest wait for an answer; longer than `statementMs`, so that the server gives up first and says that nothing was done. */
  readonly answerMs: number
  /** No statement is repeated after a conflict later than this after its first try. */
  readonly repeatMs: number
}

/** Together less than a call of the engine may take. */
export const LIMITS: Limits = {
  connectMs: 3000,
  statementMs: 4000,
  lockMs: 2000,
  idleMs: 5000,
  answerMs: 5000,
  repeatMs: 4500,
}

/**
 * Connections of a caller's pool or behind a pooler have none of our settings. Without them the transaction of a process that stands still
 * would hold its locks for as long as that lasts, and a limited lane with them.
 */
export const beginning = ({ statementMs, lockMs, idleMs }: Limits): string =>
  [
    'BEGIN ISOLATION LEVEL READ COMMITTED',
    `SET LOCAL statement_timeout = ${statementMs}`,
    `SET LOCAL lock_timeout = ${lockMs}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`,
  ].join('; ')

export interface Wiring {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly warn: Warn
  readonly limits: Limits
}

/** Full jitter: anything up to a bound that doubles with each failure. */
export function backOffMs(failures: number, random: Random, { baseMs, maxMs }: BackOff): number {
  return random.next() * Math.min(maxMs, baseMs * 2 ** Math.min(failures, 10))
}

export interface BackOff {
  readonly baseMs: number
  readonly maxMs: number
}
