/**
 * The backend protocol: one table of messages from which every other type is derived.
 * A backend that forgets a message does not compile (`satisfies BackendHandlers`).
 */
import type { JobProtocol } from './job-messages.ts'
import type { StoreProtocol } from './store-messages.ts'
import type { WorkerProtocol } from './worker-messages.ts'

export interface BackendProtocol extends JobProtocol, StoreProtocol, WorkerProtocol {}

export type MessageType = keyof BackendProtocol
export type Request<T extends MessageType> = BackendProtocol[T]['request']
export type Reply<T extends MessageType> = BackendProtocol[T]['reply']
export type BackendMessage = { [T in MessageType]: { readonly type: T } & Request<T> }[MessageType]
export type BackendHandlers = { [T in MessageType]: (request: Request<T>) => Promise<Reply<T>> }
/** The same table for a store that works synchronously behind a thread. */
export type SyncBackendHandlers = { [T in MessageType]: (request: Request<T>) => Reply<T> }

export type * from './job-messages.ts'
export * from './store-messages.ts'
export type * from './worker-messages.ts'
