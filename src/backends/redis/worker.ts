/** Who works on the namespace: one record a worker under the namespace's own tag, and the time of its last beat. */
import type { Reply, Request, SeenWorker } from '../protocol/index.ts'
import { readWorker, writeWorker } from '../worker-record.ts'
import { beatsKey, workersKey } from './key.ts'
import { listOf, numberOf, textOf } from './reply.ts'
import { chunksOf, type RedisSession } from './session.ts'

const BEATS_A_CALL = 50

const keysOf = ({ namespace }: RedisSession): readonly string[] => [workersKey(namespace), beatsKey(namespace)]

/** One command for the workers of a process. */
export async function beat(
  session: RedisSession,
  { workers, gone, forgetAfterMs }: Request<'worker.beat'>,
): Promise<Reply<'worker.beat'>> {
  const { servers, scripts } = session
  if (gone.length > 0) await servers.run(scripts.worker_gone, keysOf(session), gone)
  for (const part of chunksOf(workers, BEATS_A_CALL, () => 0)) {
    const records = part.flatMap((worker) => [worker.id, writeWorker(worker)])
    await servers.run(scripts.worker_beat, keysOf(session), [forgetAfterMs, ...records])
  }
  return { noted: workers.length }
}

export async function listWorkers(
  session: RedisSession,
  { forgetAfterMs, limit }: Request<'worker.list'>,
): Promise<Reply<'worker.list'>> {
  const { servers, scripts } = session
  const [now, ...found] = listOf(await servers.run(scripts.worker_list, keysOf(session), [forgetAfterMs, limit]))
  const nowMs = numberOf(now)
  const workers: SeenWorker[] = []
  for (let at = 0; at + 2 < found.length; at += 3) {
    workers.push(...readWorker(textOf(found[at]), textOf(found[at + 2]), nowMs - numberOf(found[at + 1])))
  }
  return { workers, nowMs }
}
