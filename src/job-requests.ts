/** What callers ask of jobs, and the page of a list: shapes only. */
import type { Instant } from './config.ts'
import type { EnqueueOptions, JobContract } from './contract.ts'
import type { JobRecord, JobState } from './job.ts'

/** One entry of `enqueueMany`. What its input is, its contract says. */
export interface EnqueueRequest<Input = unknown> {
  readonly job: JobContract<Input, never, unknown, never> | JobContract<Input, unknown, unknown, unknown> | string
  readonly input: NoInfer<Input>
  readonly options?: EnqueueOptions
}

/** Entries of `enqueueMany`, each with an input that its own contract allows. */
export type EnqueueRequests<Inputs extends readonly unknown[]> = {
  readonly [Index in keyof Inputs]: EnqueueRequest<Inputs[Index]>
}

export interface ListOptions {
  /** Default: all. */
  readonly lane?: string
  /** One state or several; `succeeded` and `canceled` are understood. */
  readonly state?: JobState | readonly JobState[] | 'succeeded' | 'canceled'
  /** Default: all. */
  readonly type?: string
  /** 1 to 500, default 100. */
  readonly limit?: number
  /** From the page before. */
  readonly cursor?: string | null
}

export interface JobPage {
  /** Newest first, without inputs and outputs. */
  readonly jobs: readonly JobRecord[]
  /** Give it back for the next page; null: this was the last. */
  readonly cursor: string | null
}

export interface ReplayOptions {
  /** Default: the lane of the source. */
  readonly queue?: string
  /** Default: now. */
  readonly runAt?: Instant
  /** In place of the source's input. */
  readonly input?: unknown
}
