/** What befalls the one server of a long run: each fault begins, lasts as long as the test lets it, and heals. */
import { setTimeout } from 'node:timers/promises'
import type { PostgresServer } from '../support/postgres-server.ts'
import type { Fault, FaultProxy } from '../support/proxy.ts'
import type { RedisServer } from '../support/redis-server.ts'

export interface Outage {
  readonly name: string
  /** True: nothing gets through, so that `health()` must say so. */
  readonly isTotal: boolean
  begin(): Promise<void>
  /** Resolves once the server can be reached again. */
  heal(): Promise<void>
}

function networkOutages(proxy: FaultProxy): readonly Outage[] {
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
  ]
}

export function redisOutages(server: RedisServer, proxy: FaultProxy): readonly Outage[] {
  return [
    ...networkOutages(proxy),
    { name: 'restart', isTotal: true, begin: () => server.kill(), heal: () => server.restart() },
    { name: 'freeze', isTotal: true, begin: () => server.pause(), heal: () => server.resume() },
  ]
}

const TERMINATE_ALL = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`
const AGAIN_MS = 300

export function postgresOutages(server: PostgresServer, proxy: FaultProxy): readonly Outage[] {
  const restart = (name: string, begin: () => Promise<void>): Outage => ({
    name,
    isTotal: true,
    begin,
    heal: () => server.restart(),
  })
  return [
    repeated('connections terminated', () => server.query(TERMINATE_ALL)),
    restart('postmaster killed', () => server.kill()),
    repeated('backend killed', () => killBackend(server)),
    { name: 'freeze', isTotal: true, begin: () => server.pause(), heal: () => server.resume() },
    restart('immediate shutdown', () => server.shutDown('immediate')),
    ...networkOutages(proxy),
    restart('fast shutdown', () => stopped(server)),
  ]
}

/** As whoever runs a server stops it: in order, and by force where that takes a minute, as on a disk that others keep busy. */
const stopped = (server: PostgresServer): Promise<void> => server.shutDown('fast').catch(() => server.kill())

/** Again and again until it is healed; between two the server may be well. */
function repeated(name: string, act: () => Promise<unknown>): Outage {
  let isOver = false
  let acting = Promise.resolve()
  const go = async (): Promise<void> => {
    while (!isOver) {
      await act().catch(() => {}) // The server may be coming back from the time before.
      await setTimeout(AGAIN_MS)
    }
  }
  return {
    name,
    isTotal: false,
    begin: async () => {
      isOver = false
      acting = go()
    },
    heal: () => {
      isOver = true
      return acting
    },
  }
}

/** Of a connection of our own; the server then ends all others and recovers. */
async function killBackend(server: PostgresServer): Promise<void> {
  const client = await server.connect()
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const isEnded = new Promise<void>((resolve) => client.once('end', resolve))
  await server.killBackend(rows[0]?.pid ?? 0)
  await isEnded
}
