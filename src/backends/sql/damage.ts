/** A job whose row cannot be read becomes a dead letter, so that it cannot hold up its lane for ever. */
import type { JobId } from '../../job.ts'
import { ENDING, endRow } from './ending.ts'
import { type Plan, write } from './plan.ts'

export interface Damaged {
  readonly id: JobId
  readonly from: string
  readonly token: string | null
  readonly problem: string
}

export function* buryDamaged({ problem, ...row }: Damaged): Plan<void> {
  const dlqCode = 'STORE_CORRUPT'
  const failure = { code: dlqCode, message: problem }
  yield* write('job_end', [endRow({ ...ENDING, ...row, to: 'dlq', keepMs: null, failure, dlqCode })])
}
