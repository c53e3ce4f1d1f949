/** What befalls the one server of a long run: each fault begins, lasts as long as the test lets it, and heals. */
import type { Fault, FaultProxy } from '../support/proxy.ts'

export interface Outage {
  readonly name: string
  /** True: nothing gets through, so that `health()` must say so. */
  readonly isTotal: boolean
  begin(): Promise<void>
  /** Resolves once the server can be reached again. */
  heal(): Promise<void>
}

/** What a test does to its own server. */
export interface Server {
  kill(): Promise<void>
  restart(): Promise<void>
  pause(): Promise<void>
  resume(): Promise<void>
}

export function outages(server: Server, proxy: FaultProxy): readonly Outage[] {
  const network = (
    name: string,
    fault: Fault,
    options: { readonly isTotal: boolean; readonly cuts?: true },
  ): Outage => ({
    name,
    isTotal: options.isTotal,
    begin: async () => {
      proxy.set(fault)
      if (options.cuts) proxy.reset()
    },
    heal: async () => proxy.set('pass'),
  })
  return [
    network('cut', { mode: 'refuse' }, { isTotal: true, cuts: true }),
    network('black hole', { mode: 'blackhole' }, { isTotal: true }),
    network('replies lost', { mode: 'dropReplies' }, { isTotal: true }),
    network('stall', { mode: 'stall' }, { isTotal: true }),
    network('delay', { mode: 'delay', ms: 200, jitterMs: 300 }, { isTotal: false }),
    network('half close', { mode: 'halfClose' }, { isTotal: false }),
    network('flapping', { mode: 'flapping', upMs: 400, downMs: 300 }, { isTotal: false }),
    network('replies cut', { mode: 'cutReply' }, { isTotal: false }),
    { name: 'restart', isTotal: true, begin: () => server.kill(), heal: () => server.restart() },
    { name: 'freeze', isTotal: true, begin: () => server.pause(), heal: () => server.resume() },
  ]
}
