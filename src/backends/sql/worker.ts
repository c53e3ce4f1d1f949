/** Who works on the store: one row a worker, written anew with each of its beats. */
import type { Reply, Request } from '../protocol/index.ts'
import { readWorker, writeWorker } from '../worker-record.ts'
import { byId, change, type Plan, read } from './plan.ts'

export function* beat({ workers, gone, forgetAfterMs }: Request<'worker.beat'>): Plan<Reply<'worker.beat'>> {
  yield* change('worker_gone', byId(gone))
  yield* change(
    'worker_beat',
    workers.map((worker) => ({ id: worker.id, info: writeWorker(worker), forget_ms: forgetAfterMs })),
  )
  return { noted: workers.length }
}

interface WorkerRow {
  /** The row before the first has no worker: it tells the store's time. */
  readonly id: string | null
  readonly info: string | null
  readonly beat_at: number
  readonly now: number
}

export function* workers({ forgetAfterMs, limit }: Request<'worker.list'>): Plan<Reply<'worker.list'>> {
  const rows = yield* read<WorkerRow>('worker_list', [{ forget_ms: forgetAfterMs, limit }])
  return {
    workers: rows.flatMap(({ id, info, beat_at, now }) =>
      id === null || info === null ? [] : readWorker(id, info, now - beat_at),
    ),
    nowMs: rows[0]?.now ?? 0,
  }
}
