/** What a handler's `ctx` asks for from inside a thread, answered by the same context that an inline handler gets. */
import type { ThreadEnqueue } from '../../workers/handler-protocol.ts'
import type { JobContract } from '../contract.ts'
import { LOG_LEVELS } from '../telemetry.ts'
import { type AttemptOwner, HandlerContext } from './handler-context.ts'
import type { ThreadServices } from './thread-run.ts'

/** Its context is made at the first use: most attempts use none of it. */
export class AttemptServices implements ThreadServices {
  readonly #owner: AttemptOwner
  #context: HandlerContext | null = null

  constructor(owner: AttemptOwner) {
    this.#owner = owner
  }

  get #ctx(): HandlerContext {
    this.#context ??= new HandlerContext(this.#owner)
    return this.#context
  }

  progress(value: unknown): Promise<void> {
    return this.#ctx.progress(value)
  }

  enqueue(type: string, input: unknown, request: unknown): Promise<{ id: string; deduplicated: boolean }> {
    const { contract, options } = request as ThreadEnqueue
    // The input has passed the contract's schema in the thread; schemas themselves do not cross, and the lease is the matter of a worker.
    const own = { type, input: null, output: null, leaseMs: null }
    const job: JobContract | string = contract === null ? type : { ...own, ...contract }
    return this.#ctx.enqueue(job as JobContract, input, options ?? {})
  }

  log(level: string, fields: object, message: string | undefined): void {
    const known = LOG_LEVELS.find((each) => each === level) ?? 'info'
    this.#ctx.log[known](fields, message)
  }
}
