/**
 * The thread of a handler process that ends the process when its parent has died, since a handler in an endless loop or a native call
 * hears nothing. Where the process leads a group, what the handler has started goes with it. Started by `handler-process.ts`.
 */
import { workerData } from 'node:worker_threads'

const LOOK_MS = 500

const { parent } = workerData as { readonly parent: number }

function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}

setInterval(() => {
  if (process.ppid !== parent && !kill(-process.pid)) kill(process.pid)
}, LOOK_MS)
