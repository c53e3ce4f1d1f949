/** Short-hand for histories written by hand: each word makes one fact, effect, call or stored job with plain defaults. */
import type { JobState } from '#dist/src/job.js'
import type { DumpedJob, Effect, Fact, FactOf, Produced, Run } from '../simulation/history.ts'

type Less<K extends Fact['kind']> = Partial<Omit<FactOf<K>, 'kind' | 'at' | 'job'>>

export const LEASE_MS = 100

/** `token(5)` is the token of epoch 5; `token(5, 'b')` the same epoch under another nonce. */
export const token = (epoch: number, nonce = 'n'): string => `${epoch}:w:${nonce}.0`

const moment = (at: number, job: string) => ({ at, storeNow: at, job })

export const enqueue = (at: number, job: string, less: Less<'enqueue'> = {}): Fact => ({
  kind: 'enqueue',
  ...moment(at, job),
  outcome: 'created',
  result: job,
  lane: 'l',
  key: null,
  ref: null,
  eligibleAt: at,
  deadlineAt: null,
  ...less,
})

export const grant = (at: number, job: string, less: Less<'grant'> = {}): Fact => ({
  kind: 'grant',
  ...moment(at, job),
  token: token(at),
  worker: 'w',
  attempt: 1,
  maxAttempts: 7,
  expiresAt: at + LEASE_MS,
  resend: false,
  ...less,
})

const settle =
  (how: FactOf<'settle'>['how'], via: 'turn' | 'reap') =>
  (at: number, job: string, epoch: number, less: Less<'settle'> = {}): Fact => ({
    kind: 'settle',
    ...moment(at, job),
    how,
    via,
    token: token(epoch),
    verdict: 'applied',
    delayMs: 0,
    ...less,
  })

export const complete = settle('complete', 'turn')
export const retry = settle('retry', 'turn')
export const release = settle('release', 'turn')
export const dead = settle('dead', 'turn')
export const reap = settle('requeue', 'reap')

export const renew = (at: number, job: string, epoch: number, less: Less<'renew'> = {}): Fact => ({
  kind: 'renew',
  ...moment(at, job),
  token: token(epoch),
  outcome: 'renewed',
  expiresAt: at + LEASE_MS,
  ...less,
})

export const progress = (at: number, job: string, epoch: number, less: Less<'progress'> = {}): Fact => ({
  kind: 'progress',
  ...moment(at, job),
  token: token(epoch),
  verdict: 'applied',
  ...less,
})

export const cancel = (at: number, job: string, less: Less<'cancel'> = {}): Fact => ({
  kind: 'cancel',
  ...moment(at, job),
  force: false,
  outcome: 'cancelled',
  ...less,
})

export const promote = (at: number, job: string): Fact => ({ kind: 'promote', ...moment(at, job), outcome: 'promoted' })
export const jump = (at: number, storeNow: number): Fact => ({ kind: 'jump', at, storeNow, job: '' })
export const policy = (at: number, paused: boolean): Fact => ({
  kind: 'policy',
  ...moment(at, ''),
  lane: 'l',
  paused,
})
export const bury = (at: number, job: string): Fact => ({ kind: 'bury', ...moment(at, job) })

export const start = (at: number, job: string, epoch: number, attempt = 1): Effect => ({
  kind: 'start',
  at,
  job,
  attempt,
  epoch,
})
export const ended = (at: number, job: string, epoch: number, result: 'returned' | 'threw' = 'returned'): Effect => ({
  kind: 'end',
  at,
  job,
  attempt: 1,
  epoch,
  result,
})

export const told = (ref: string, id: string | null, less: Partial<Produced> = {}): Produced => ({
  ref,
  id,
  lane: 'l',
  key: null,
  status: 'ok',
  ...less,
})

export const stored = (id: string, state: JobState, less: Partial<DumpedJob> = {}): DumpedJob => ({
  id,
  state,
  lane: 'l',
  key: null,
  attempts: 1,
  finishedAt: null,
  ...less,
})

export const run = (less: Partial<Run>): Run => ({ facts: [], effects: [], produced: [], dump: [], ...less })
