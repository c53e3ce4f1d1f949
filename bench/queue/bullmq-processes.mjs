// BullMQ's sandbox in child processes instead of threads.
import * as bullmq from './bullmq.mjs'

export const name = 'bullmq-processes'
export const { version } = bullmq
export const settings = `${bullmq.settings}; sandboxed processors in child processes`

export async function open(options) {
  const queue = await bullmq.open(options)
  return { ...queue, workInSandbox: (concurrency, file) => queue.workInSandbox(concurrency, file, false) }
}
