/**
 * Where each thread and process of Holdfast begins; its first argument says as what (`worker-file.ts`). Nothing imports it. A bundled
 * application needs it as a further entry point, `holdfast/worker`.
 */
import type { WorkerRole } from './worker-file.ts'

const BEGIN: Readonly<Record<WorkerRole, () => Promise<object>>> = {
  'handler-worker': () => import('../workers/handler-worker.ts'),
  'handler-process': () => import('../workers/handler-process.ts'),
  'lease-keeper': () => import('../workers/lease-keeper.ts'),
  'parent-watch': () => import('../workers/parent-watch.ts'),
  'sqlite-store': () => import('../workers/sqlite-store.ts'),
}

// Taken away, so that handler code finds the arguments that it would find without us.
const [role = ''] = process.argv.splice(2, 1)
const begin = new Map<string, () => Promise<object>>(Object.entries(BEGIN)).get(role)
if (begin === undefined) throw new Error('this file is started by Holdfast, as a thread or a process')

/** What piscina calls for each task of a handler thread; it waits for it. In the others: nothing. */
export const onTask: Promise<unknown> = begin().then((module) => Reflect.get(module, 'onTask'))
