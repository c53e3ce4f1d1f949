/** Where values and errors of users come in: what a handler threw as data, and what a schema makes of a value. */
import { parseDuration } from '../config.ts'
import type { JobContract } from '../contract.ts'
import { toFailure } from '../failure.ts'
import type { Failure } from '../job.ts'

const readDelay = (value: unknown): number | undefined => {
  try {
    return parseDuration(value, 'delay')
  } catch {
    return undefined
  }
}

export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'

export type Schema = NonNullable<JobContract['input']>

/** What a handler threw, as data. */
export const failureOf = (thrown: unknown): Failure => toFailure(thrown, readDelay)

/** What a schema makes of a value; rejects when the schema throws, or gives an answer that is none. */
export async function check(
  schema: Schema,
  value: unknown,
): Promise<{ readonly value: unknown } | { readonly problem: string }> {
  const result: unknown = await schema['~standard'].validate(value)
  if (typeof result !== 'object' || result === null) throw new TypeError('the schema gave no result')
  const issues: unknown = Reflect.get(result, 'issues')
  if (issues === undefined) return { value: Reflect.get(result, 'value') }
  return { problem: toFailure(Array.isArray(issues) ? issues[0] : issues).message }
}
