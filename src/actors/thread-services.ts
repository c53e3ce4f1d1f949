/** What a handler's `ctx` asks for from inside a thread, answered by the same context that an inline handler gets. */
import type { ThreadEnqueue } from '../../workers/handler-protocol.ts'
import type { JobContract } from '../contract.ts'
import { type AttemptOwner, HandlerContext } from './handler-context.ts'
import type { ThreadServices } from './thread-run.ts'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const

export function threadServices(owner: AttemptOwner): ThreadServices {
  const context = new HandlerContext(owner)
  return {
    progress: (value) => context.progress(value),
    enqueue: (type, input, request) => {
      const { contract, options } = request as ThreadEnqueue
      // The input has passed the contract's schema in the thread; schemas themselves do not cross.
      const job: JobContract | string = contract === null ? type : { type, ...contract, input: null, output: null }
      return context.enqueue(job, input, options ?? {})
    },
    log: (level, fields, message) => {
      const known = LOG_LEVELS.find((each) => each === level) ?? 'info'
      context.log[known](fields, message)
    },
  }
}
