/**
 * Answers what a handler's `ctx` asks for from its thread or process. What comes in is not trusted: only what has the shape of
 * a message counts, and whoever receives it has made sure that it is of the run it names. Shared by both hosts of modules.
 */
import type { ErrorMessage, MainMessage, ThreadMessage } from '../../workers/handler-protocol.ts'
import { isHoldfastError } from '../errors.ts'
import { toFailure } from '../failure.ts'
import type { PoolRun } from './thread-run.ts'

const LEVELS = new Set<unknown>(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])

export function isThreadMessage(value: unknown): value is ThreadMessage {
  if (typeof value !== 'object' || value === null || !('type' in value)) return false
  const fields = value as Readonly<Record<string, unknown>>
  if (typeof fields.task !== 'number') return false
  if (fields.type === 'started' || fields.type === 'unbegun') return true
  if (fields.type === 'log') {
    const isText = fields.message === undefined || typeof fields.message === 'string'
    return isText && LEVELS.has(fields.level) && typeof fields.fields === 'object' && fields.fields !== null
  }
  if (typeof fields.call !== 'number') return false
  return fields.type === 'progress' || (fields.type === 'enqueue' && typeof fields.jobType === 'string')
}

function toErrorMessage(error: unknown): ErrorMessage {
  if (isHoldfastError(error)) return { code: error.code, message: error.message, details: error.details }
  return { code: 'INTERNAL', message: toFailure(error).message, details: {} }
}

type Post = (message: MainMessage) => void

/** Serves one message of a run in flight; the answer goes out by `post`, which may be to somebody who is gone. */
export function serveMessage(run: PoolRun, message: ThreadMessage, post: Post): void {
  if (message.type === 'started') run.parts.task.onStart?.()
  else if (message.type === 'unbegun') run.parts.task.onUnbegun?.()
  else if (message.type === 'log') log(run, message)
  else answer(message.call, serve(run, message), post)
}

function log(run: PoolRun, message: ThreadMessage & { type: 'log' }): void {
  try {
    run.parts.services.log(message.level, message.fields, message.message)
  } catch {
    // A logger that throws must cost a line, not the process: nothing awaits this call.
  }
}

async function serve(
  run: PoolRun,
  message: Exclude<ThreadMessage, { type: 'log' | 'started' | 'unbegun' }>,
): Promise<unknown> {
  if (message.type === 'progress') return run.parts.services.progress(message.value)
  const { id, deduplicated } = await run.parts.services.enqueue(message.jobType, message.input, message.options)
  return { id, deduplicated }
}

function answer(call: number, work: Promise<unknown>, post: Post): void {
  work.then(
    (value) => post({ type: 'resolve', call, value }),
    (error: unknown) => {
      const message = toErrorMessage(error)
      try {
        post({ type: 'reject', call, error: message })
      } catch {
        // Details that do not clone are left behind.
        post({ type: 'reject', call, error: { ...message, details: {} } })
      }
    },
  )
}
