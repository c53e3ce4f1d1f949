/** The workers of the memory store by id, and when each was heard of last. */
import type { Reply, Request, WorkerBeat } from '../protocol/index.ts'

interface Heard {
  readonly worker: WorkerBeat
  readonly at: number
}

export class Workers {
  /** Those heard of last come last. */
  private readonly heard = new Map<string, Heard>()

  beat({ workers, gone, forgetAfterMs }: Request<'worker.beat'>, now: number): Reply<'worker.beat'> {
    for (const [id, { at }] of this.heard) if (Math.abs(now - at) > forgetAfterMs) this.heard.delete(id)
    for (const id of gone) this.heard.delete(id)
    for (const worker of workers) {
      this.heard.delete(worker.id)
      this.heard.set(worker.id, { worker, at: now })
    }
    return { noted: workers.length }
  }

  list({ forgetAfterMs, limit }: Request<'worker.list'>, now: number): Reply<'worker.list'> {
    const workers = [...this.heard.values()]
      .map(({ worker, at }) => ({ ...worker, beatAgoMs: Math.max(0, now - at) }))
      .filter(({ beatAgoMs }) => beatAgoMs <= forgetAfterMs)
      .sort((a, b) => a.beatAgoMs - b.beatAgoMs)
    return { workers: workers.slice(0, limit), nowMs: now }
  }
}
