/**
 * The messages of the protocol as plans, the same for both dialects but for claiming and health, which each brings itself.
 */
import type { MessageType, Reply, Request } from '../protocol/index.ts'
import { cancel, maintain, promote } from './control.ts'
import { enqueue } from './enqueue.ts'
import { reap, renew } from './lease.ts'
import { logs, note } from './note.ts'
import type { Plan } from './plan.ts'
import { policy } from './policy.ts'
import { ahead, get, history, list, states, stats } from './read.ts'
import { beat, workers } from './worker.ts'

export type PlannedType = Exclude<MessageType, 'store.health'>
export type Planned = { readonly [T in PlannedType]: (request: Request<T>) => Plan<Reply<T>> }

/** What a dialect does in its own way. */
export interface Dialect {
  turn(request: Request<'job.turn'>): Plan<Reply<'job.turn'>>
  /** Until the transaction ends nobody claims; whoever claims then sees what it did. null: every message runs by itself as it is. */
  readonly fence: (() => Plan<unknown>) | null
}

export function plansOf({ turn, fence }: Dialect): Planned {
  return {
    'job.enqueue': (request) => enqueue(request),
    'job.turn': turn,
    'lease.renew': renew,
    'lease.reap': reap,
    'job.note': note,
    'job.logs': logs,
    'job.states': states,
    'job.cancel': cancel,
    'job.promote': promote,
    'job.get': get,
    'job.ahead': ahead,
    'job.list': list,
    'job.history': history,
    'queue.stats': stats,
    'queue.policy': (request) => policy(request, fence),
    'store.maintain': maintain,
    'worker.beat': beat,
    'worker.list': workers,
  }
}

const READS: ReadonlySet<MessageType> = new Set<MessageType>([
  'job.logs',
  'job.states',
  'job.get',
  'job.ahead',
  'job.list',
  'job.history',
  'queue.stats',
  'store.health',
  'worker.list',
])

/** True when the message writes nothing, so it need not wait for writers. */
export function isRead<T extends MessageType>(type: T, request: Request<T>): boolean {
  if (READS.has(type)) return true
  // An idle system looks for expired leases and lane policies all the time.
  if ('decisions' in request) return request.decisions.length === 0
  return 'changes' in request && request.changes.length === 0
}
