/** What the store's time does to waiting jobs: those that are due become ready, those past their deadline are dead letters. */
import type { JobId } from '../../job.ts'
import { ENDING, endRow } from './ending.ts'
import { change, type Plan, read, write } from './plan.ts'

/** Moves what is due into the ready order; returns how many. */
export function* promoteDue(lane: string, limit: number): Plan<number> {
  return yield* change('due_promote', { lane, limit })
}

export interface Burial {
  readonly lane: string
  readonly limit: number
  readonly keepMs: number | null
}

/** Dead-letters what waited past its deadline. The token stays: a settlement sent again is still recognised. */
export function* buryDeadlined({ lane, limit, keepMs }: Burial): Plan<readonly JobId[]> {
  const rows = yield* read<{ id: string; state: string; token: string | null }>('deadline_passed', [{ lane, limit }])
  const dlqCode = 'DEADLINE_EXCEEDED'
  const failureIfNone = { code: dlqCode, message: 'the deadline passed before the job could start' }
  const endings = rows.map(({ id, state, token }) =>
    endRow({ ...ENDING, id, from: state, token, to: 'dlq', keepMs, failureIfNone, dlqCode }),
  )
  const { written } = yield* write('job_end', endings)
  return rows.filter((_, index) => written[index] === true).map(({ id }) => id)
}
