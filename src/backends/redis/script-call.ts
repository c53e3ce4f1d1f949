/**
 * Runs one script on one link: by its digest, once more by its source where the server does not know it (nothing ran then),
 * and after a write waits for the replicas that were asked for.
 */

import { HoldfastError } from '../../errors.ts'
import type { LuaScript } from '../../lua/script.ts'
import { replyWordOf } from './errors.ts'
import type { Link } from './link.ts'
import type { RedisArgument, RedisReply } from './servers.ts'

export interface ScriptCall {
  readonly script: LuaScript
  readonly keys: readonly string[]
  readonly args: readonly RedisArgument[]
  readonly waitReplicas: number
  readonly timeoutMs: number
  /** The slot is moving here: the node takes the command only after ASKING. */
  readonly isAsking?: boolean
}

export function runScript(link: Link, call: ScriptCall): Promise<RedisReply> {
  const { script, keys, args } = call
  const line: RedisArgument[] = [script.sha1, keys.length, ...keys, ...args]
  return execute(link, 'EVALSHA', line, call).catch((error: unknown) => {
    if (replyWordOf(error) !== 'NOSCRIPT') throw error
    line[0] = script.source
    return execute(link, 'EVAL', line, call)
  })
}

/** All of it is written in one go, so that nothing of another call comes between. */
function execute(
  link: Link,
  name: string,
  args: readonly RedisArgument[],
  { script, isAsking, timeoutMs, waitReplicas }: ScriptCall,
): Promise<RedisReply> {
  if (isAsking) link.send('ASKING', [], timeoutMs).catch(() => {})
  const reply = link.send(name, args, timeoutMs)
  if (waitReplicas === 0 || !script.isWriting) return reply
  return Promise.all([reply, link.confirm(waitReplicas)]).then(([result, count]) => {
    if (count < waitReplicas) throw tooFewReplicas(link.server, count, waitReplicas)
    return result
  })
}

function tooFewReplicas(server: string, count: number, waitReplicas: number): HoldfastError {
  return new HoldfastError(
    'STORE_UNAVAILABLE',
    `Redis at ${server}: ${count} of ${waitReplicas} replicas confirmed the write in time; check the replicas, or lower waitReplicas`,
    { details: { outcome: 'unknown', server, reply: 'WAIT', count } },
  )
}
