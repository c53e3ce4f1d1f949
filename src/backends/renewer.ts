/** One way to renew leases and nothing else: what a thread of its own needs of a store. */
import type { Clock, Timers } from '../clock.ts'
import type { Random } from '../random.ts'
import type { Reply, Request } from './protocol/index.ts'

export interface Renewer {
  renew(request: Request<'lease.renew'>): Promise<Reply<'lease.renew'>>
  close(): Promise<void>
}

export interface RenewerOptions {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
}

/** How long one look for the server may take before the thread gives up and another one is started. */
export const RENEWER_OPEN_MS = 60_000
