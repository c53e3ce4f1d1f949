/**
 * The thread of a handler process that ends the process when its parent has died, since a handler in an endless loop or a native call
 * hears nothing. Where the process leads a group, what the handler has started goes with it. Started by `handler-process.ts`.
 */
import { workerData } from 'node:worker_threads'
import { endGroup } from './own-group.ts'

const LOOK_MS = 500

const { parent } = workerData as { readonly parent: number }

setInterval(() => {
  if (process.ppid !== parent && !endGroup()) process.kill(process.pid, 'SIGKILL')
}, LOOK_MS)
