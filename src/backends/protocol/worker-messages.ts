/**
 * The messages about the workers of a store: each says every few seconds that it is there and what it does. That is information for
 * people and for `explain`; no lease and no claim depends on it, so a beat that is lost costs nothing else.
 */

/** What a worker says of itself. */
export interface WorkerBeat {
  readonly id: string
  readonly lanes: readonly string[]
  /** The job types that it has handlers for, `moreTypes` not listed. */
  readonly types: readonly string[]
  readonly moreTypes: number
  readonly moreLanes: number
  readonly concurrency: number
  /** Handlers that run now. */
  readonly running: number
  /** It claims nothing more and lets end what runs. */
  readonly isStopping: boolean
  readonly host: string
  readonly pid: number
  /** How long ago it started. */
  readonly upMs: number
  readonly nodeVersion: string
  /** Of this package. */
  readonly version: string
}

/** A worker as the store knows it. */
export interface SeenWorker extends WorkerBeat {
  /** Age of its last beat on the store's clock. */
  readonly beatAgoMs: number
}

export interface WorkerProtocol {
  /** Notes workers as heard of now, forgets those that have left, and those not heard of for `forgetAfterMs`. */
  'worker.beat': {
    request: {
      readonly workers: readonly WorkerBeat[]
      readonly gone: readonly string[]
      readonly forgetAfterMs: number
    }
    reply: { readonly noted: number }
  }
  /** Those heard of within `forgetAfterMs`, at most `limit` of them, the latest first. */
  'worker.list': {
    request: { readonly forgetAfterMs: number; readonly limit: number }
    reply: { readonly workers: readonly SeenWorker[]; readonly nowMs: number }
  }
}
