/** Which of the commands that the store sends its user may not send: asked of the server, so that the answer names them all at once. */
import { registryKey } from './key.ts'
import { listOf, textOf } from './reply.ts'
import type { RedisSession } from './session.ts'

/** As in `docs/keyspace.md`, where a test holds both to what the code sends, but for PUBLISH and SUBSCRIBE: without these results are polled for. */
export const NEEDED_COMMANDS: readonly string[] =
  'blpop del eval evalsha exists get hdel hexists hget hincrby hlen hmget hset hsetnx info lindex llen lrange lset ltrim pexpire rpush set time zadd zcard zrange zrangebylex zrangebyscore zrem zremrangebyrank zrevrangebyscore zscore'.split(
    ' ',
  )

/** A lane that nobody has; with it the pattern of all keys of lanes is tried. */
const NO_LANE = 'holdfast.doctor'

/** Such as `+blpop, +zadd`; empty: nothing is missing. */
export async function missingRights(session: RedisSession): Promise<string> {
  const script = session.scripts.rights_check
  const keys = [registryKey(session.namespace), session.keys(NO_LANE).key('meta')]
  const replies = await Promise.all(keys.map((key) => session.servers.run(script, [key], NEEDED_COMMANDS)))
  const missing = new Set(replies.flatMap((reply) => listOf(reply).map(textOf)))
  return [...missing].map((name) => `+${name}`).join(', ')
}
