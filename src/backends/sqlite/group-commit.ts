/**
 * Runs the messages that wait in one transaction and answers them after its commit. A message that fails never fails its
 * neighbours: then all is rolled back and each is run by itself. Called by the thread of the store, and by tests.
 */
import type { HoldfastError } from '../../errors.ts'
import type { MessageType, Reply, Request } from '../protocol/index.ts'
import { isRead } from '../sql/handlers.ts'
import { storeError } from './errors.ts'

import type { SqliteStore } from './store.ts'

export type Call = {
  [T in MessageType]: { readonly type: T; readonly request: Request<T>; readonly nowMs: number | null }
}[MessageType]

export type Answer = { readonly reply: Reply<MessageType> } | { readonly error: HoldfastError }

export function runGroup(store: SqliteStore, calls: readonly Call[]): readonly Answer[] {
  const [first] = calls
  if (first === undefined) return []
  if (calls.length === 1) return [runSingly(store, first)]
  const isReading = calls.every(({ type, request }) => isRead(type, request))
  if (isReading) return calls.map((call) => runSingly(store, call))
  try {
    return store.connection.write(() =>
      calls.map(({ type, request, nowMs }) => ({ reply: store.handle(type, request, nowMs) })),
    )
  } catch (thrown) {
    const error = storeError(thrown, store.connection.path, 'run')
    // Without the lock nothing can run, and what may have been committed must not run again.
    const isForAll = error.code === 'STORE_BUSY' || error.details.outcome === 'unknown'
    return calls.map((call) => (isForAll ? { error } : runSingly(store, call)))
  }
}

function runSingly(store: SqliteStore, { type, request, nowMs }: Call): Answer {
  try {
    return { reply: store.call(type, request, nowMs) }
  } catch (error) {
    return { error: storeError(error, store.connection.path, 'run') }
  }
}
