/** Handler threads: the shape that job actors use. The threads themselves come with the next change. */
import type { Timers } from '../clock.ts'
import type { ThreadHandler } from '../contract.ts'
import { type ErrorCode, HoldfastError } from '../errors.ts'
import type { Failure } from '../job.ts'

export type ThreadOutcome =
  | { readonly kind: 'succeeded'; readonly output: unknown }
  | { readonly kind: 'failed' | 'crashed'; readonly failure: Failure }

export interface ThreadRun {
  readonly outcome: Promise<ThreadOutcome>
  abort(reason: { readonly code: ErrorCode; readonly message: string }): void
  kill(): void
}

export interface ThreadServices {
  progress(value: unknown): Promise<void>
  enqueue(type: string, input: unknown, options: unknown): Promise<{ id: string; deduplicated: boolean }>
  log(level: string, fields: object, message: string | undefined): void
}

export class PoolActor {
  readonly modules: readonly ThreadHandler[]

  constructor(options: {
    readonly threads: number
    readonly timers: Timers
    readonly modules: readonly ThreadHandler[]
  }) {
    this.modules = options.modules
  }

  start(): Promise<void> {
    return Promise.reject(new HoldfastError('UNSUPPORTED', 'handler threads are not in this build'))
  }

  run(_task: object, _services: ThreadServices): ThreadRun {
    throw new HoldfastError('UNSUPPORTED', 'handler threads are not in this build')
  }

  stop(): Promise<void> {
    return Promise.resolve()
  }
}
