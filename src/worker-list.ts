/** The workers that a store knows, as users and `explain` see them. Who counts as alive is decided here, by the store's clock. */
import type { BackendActor } from './actors/backend-actor.ts'
import type { SeenWorker } from './backends/protocol/index.ts'
import { DEFAULTS } from './config.ts'

/** A worker that the store has heard of within the last minutes. */
export interface WorkerInfo {
  readonly id: string
  readonly lanes: readonly string[]
  /** The job types that it has handlers for. */
  readonly types: readonly string[]
  /** Types and lanes that it has beside and does not list: a worker lists 200 of each. */
  readonly moreTypes: number
  readonly moreLanes: number
  readonly concurrency: number
  /** Handlers that ran when it was heard of last. */
  readonly running: number
  /** It claims nothing more and lets end what runs. */
  readonly isStopping: boolean
  /** Heard of within 15 s. One that is not has died, hangs, or cannot reach the store; its jobs are taken back when their leases end. */
  readonly isAlive: boolean
  /** Milliseconds since it was heard of last, by the store's clock. A live one is heard of every 5 s. */
  readonly lastBeatMs: number
  /** Epoch milliseconds on the store's clock. */
  readonly startedAt: number
  readonly host: string
  readonly pid: number
  readonly nodeVersion: string
  /** Of this package. */
  readonly version: string
}

/** Those heard of within the last 5 minutes, the latest beat first. */
export async function listWorkers(backend: BackendActor): Promise<readonly WorkerInfo[]> {
  const { workers, nowMs } = await backend.ask('worker.list', {
    forgetAfterMs: DEFAULTS.workerForgetMs,
    limit: DEFAULTS.workerListMax,
  })
  return workers.map((worker) => infoOf(worker, nowMs))
}

function infoOf({ beatAgoMs, upMs, ...worker }: SeenWorker, nowMs: number): WorkerInfo {
  return {
    ...worker,
    isAlive: beatAgoMs <= DEFAULTS.workerLiveMs,
    lastBeatMs: beatAgoMs,
    startedAt: Math.round(nowMs - beatAgoMs - upMs),
  }
}
