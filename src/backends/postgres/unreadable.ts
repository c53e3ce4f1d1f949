/**
 * A value that is written as JSON and is none, which only damage outside can make: PostgreSQL refuses it in a JSON column and with it
 * all that came along. It is kept as bytes then, so that its neighbours are accepted and its own reader finds the damage.
 */
import type { Payload } from '../../job.ts'
import type { Request } from '../protocol/index.ts'
import { sqlStateOf } from './errors.ts'

/** invalid_text_representation */
export const isUnreadable = (error: unknown): boolean => sqlStateOf(error) === '22P02'

/** The same jobs with what is no JSON as bytes; null: all of it is JSON, so that is not what was wrong. */
export function asBytes({ jobs, ...rest }: Request<'job.enqueue'>): Request<'job.enqueue'> | null {
  const kept = jobs.map((job) => (isJson(job.payload) ? job : { ...job, payload: Buffer.from(String(job.payload)) }))
  return kept.every((job, index) => job === jobs[index]) ? null : { ...rest, jobs: kept }
}

function isJson(payload: Payload): boolean {
  if (typeof payload !== 'string' || payload === '') return true
  try {
    JSON.parse(payload)
    return true
  } catch {
    return false
  }
}
