/** Puts together what tells and hears of new jobs, as the location of a store says. */
import { Client } from 'pg'
import { channelOf, endsPayloadOf } from './channel.ts'
import { type LinkOptions, wiringOf } from './connect.ts'
import { Ends } from './ends.ts'
import type { PostgresLink } from './link.ts'
import { Listener } from './listener.ts'
import { type PostgresLocation, serverOf, type Target } from './location.ts'
import { NOTIFY, Notifier } from './notifier.ts'
import { clientConfig } from './own-pool.ts'
import { driverTls } from './tls.ts'
import { Wake } from './wake.ts'
import type { Wiring } from './wiring.ts'

export interface OpenWakeOptions extends LinkOptions {
  readonly location: PostgresLocation
}

/** The connection for LISTEN is made when the first worker subscribes. */
export async function openWake(link: PostgresLink, options: OpenWakeOptions): Promise<{ wake: Wake; ends: Ends }> {
  const { location, namespace } = options
  const wiring = wiringOf(options)
  const { clock, timers } = wiring
  const channel = channelOf(location.schema, namespace)
  const notifier = location.isNotifying ? new Notifier({ link, channel, clock, timers }) : null
  const source = location.isNotifying ? await listeningTo(location, link, wiring) : null
  // Who is not heard by others has nobody to wait for, so it says nothing about ends either.
  if (source === null) {
    const ends = new Ends({ clock, timers, notifier: null, listen: () => {} })
    return { wake: new Wake({ clock, notifier, listener: null }), ends }
  }
  let onHint = (_marks: readonly string[] | null): void => {}
  let onCancelled = (): void => {}
  const listener = new Listener({
    ...source,
    channel,
    wiring,
    say: (payload) => link.query(NOTIFY, [channel, payload]),
    onHint: (marks) => onHint(marks),
    onCancelled: () => onCancelled(),
    onEnds: (said) => ends.heard(said),
  })
  const wake = new Wake({ clock, notifier, listener })
  onHint = (marks) => wake.heard(marks)
  onCancelled = () => wake.heardCancelled()
  const ends = new Ends({
    clock,
    timers,
    notifier: new Notifier({ link, channel, clock, timers, payloadOf: endsPayloadOf }),
    listen: () => listener.start(),
  })
  return { wake, ends }
}

interface Source {
  readonly server: string
  makeClient(attempt: number): Client
}

/** Null: nowhere. Behind a pooler only where a direct URL is given. */
async function listeningTo(location: PostgresLocation, link: PostgresLink, wiring: Wiring): Promise<Source | null> {
  const { listen } = location
  if (listen === null) return null
  if (listen !== undefined) return listeningAt(listen, wiring)
  if (location.isPooled || link.facts.isPooled) return null
  if (location.kind === 'url') return listeningAt(location.target, wiring)
  // What the pool would make; its options hold a password that a copy would not have.
  const { options } = location.pool
  return { server: link.facts.server, makeClient: () => new Client(options) }
}

async function listeningAt(target: Target, wiring: Wiring): Promise<Source> {
  const tls = await driverTls(target.tls)
  const { endpoints } = target
  return {
    server: serverOf(target),
    makeClient: (attempt) => {
      const endpoint = endpoints[attempt % endpoints.length] ?? { host: 'localhost', port: 5432 }
      const connectionTimeoutMillis = wiring.limits.connectMs
      return new Client({ ...clientConfig(target, endpoint, tls), connectionTimeoutMillis })
    },
  }
}
