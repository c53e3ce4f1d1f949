// The floor of one awaited enqueue on Redis: a script that does nothing, called by ioredis with the bytes of a job, one at a time.
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { inputOf, perSecond } from '../scenario/shared.mjs'

export const name = 'bare call of an empty script'
export const version = JSON.parse(
  readFileSync(new URL('../../node_modules/ioredis/package.json', import.meta.url), 'utf8'),
).version
export const settings =
  'ioredis, EVALSHA of a script that returns one letter, the payload as its argument, one call in flight'

export async function run(options) {
  const redis = new Redis(options.url)
  const digest = await redis.script('LOAD', `return 'q'`)
  const call = (index) => redis.evalsha(digest, 0, JSON.stringify(inputOf(options.payloadBytes, index)))
  for (let index = 0; index < 1_000; index += 1) await call(index)
  const startedAt = performance.now()
  for (let index = 0; index < options.jobs; index += 1) await call(index)
  const elapsed = performance.now() - startedAt
  await redis.quit()
  return perSecond(options.jobs, elapsed)
}
