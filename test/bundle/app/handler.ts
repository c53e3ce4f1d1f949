/** The handler of `app.ts` that runs elsewhere: a further entry point of the bundle. */
import { isMainThread } from 'node:worker_threads'
import { type JobContext, PermanentError } from 'holdfast'

export default async function plusOne(input: number, ctx: JobContext): Promise<string> {
  if (input < 0) throw new PermanentError('negative')
  await ctx.progress({ percent: 50 })
  return `${input + 1} in a ${isMainThread ? 'process' : 'thread'}`
}
