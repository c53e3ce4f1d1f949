/** What the store's time does to waiting jobs: those that are due become ready, those past their deadline are dead letters. */
import type { JobId } from '../../job.ts'
import { keepDeadIn, laneOf } from '../kept.ts'
import type { KeepDead } from '../protocol/index.ts'
import { ENDING, endRow } from './ending.ts'
import { change, type Plan, read, write } from './plan.ts'

/** More of one lane than any claim moves at once; the next claim goes on. */
export const MOVED_PER_CLAIM_MAX = 10_000

/** Moves what is due into the ready order, up to `limit` of each lane; returns how many. */
export function promoteDue(lanes: readonly string[], limit: number): Plan<number> {
  return change(
    'due_promote',
    lanes.map((lane) => ({ lane, limit })),
  )
}

export interface Burial {
  readonly lanes: readonly string[]
  /** Of each lane. */
  readonly limit: number
  readonly keepDead: KeepDead
}

/** Dead-letters what waited past its deadline. The token stays: a settlement sent again is still recognised. */
export function* buryDeadlined({ lanes, limit, keepDead }: Burial): Plan<readonly JobId[]> {
  const rows = yield* read<{ id: string; state: string; token: string | null }>(
    'deadline_passed',
    lanes.map((lane) => ({ lane, limit })),
  )
  const dlqCode = 'DEADLINE_EXCEEDED'
  const failureIfNone = { code: dlqCode, message: 'the deadline passed before the job could start' }
  const endings = rows.map(({ id, state, token }) =>
    endRow({
      ...ENDING,
      id,
      from: state,
      token,
      to: 'dlq',
      keepMs: keepDeadIn(keepDead, laneOf(id)),
      failureIfNone,
      dlqCode,
    }),
  )
  const { written } = yield* write('job_end', endings)
  return rows.filter((_, index) => written[index] === true).map(({ id }) => id)
}
