/** Renews leases of a PostgreSQL store on one connection of its own: what the lease keeper's thread needs of the store. */
import { Deadlines } from '../../deadlines.ts'
import { RENEWER_OPEN_MS, type Renewer, type RenewerOptions } from '../renewer.ts'
import { renew } from '../sql/lease.ts'
import { targetOfPool } from './caller-pool.ts'
import { linkOver, wiringOf } from './connect.ts'
import type { PostgresLocation, Target } from './location.ts'
import { OwnPool } from './own-pool.ts'
import { Runner } from './runner.ts'
import { Statements } from './statement.ts'
import { type DriverTls, driverTls } from './tls.ts'

/** Plain data. */
export interface PostgresPlace {
  readonly kind: 'postgres'
  readonly target: Target
  /** As a caller's pool has it; null: as the target says. */
  readonly tls: DriverTls | null
  readonly isPooled: boolean
  readonly schema: string
  readonly namespace: string
  /** The number of the namespace. */
  readonly ns: number
}

export async function openPostgresRenewer(place: PostgresPlace, options: RenewerOptions): Promise<Renewer> {
  const { isPooled, schema, namespace, ns } = place
  const target = { ...place.target, applicationName: `${place.target.applicationName} leases` }
  // What the server's settings promise, the main thread has said.
  const wiring = wiringOf({ ...options, namespace, warn: () => {}, openDeadlineMs: RENEWER_OPEN_MS })
  const deadlines = new Deadlines(wiring.clock, wiring.timers)
  const tls = place.tls ?? (await driverTls(target.tls))
  const source = new OwnPool({ target, tls, connections: 1, isPlain: isPooled }, wiring, deadlines)
  const link = await linkOver({ source, wiring, deadlines, isPooled }, RENEWER_OPEN_MS)
  const runner = new Runner(link, new Statements(schema), ns)
  return { renew: (request) => runner.run(() => renew(request)), close: () => link.close() }
}

/** null: what leads to the server cannot be said in plain data, or is the caller's pool alone to know. */
export function placeOf(
  location: PostgresLocation,
  { isPooled, ...rest }: Pick<PostgresPlace, 'namespace' | 'ns' | 'isPooled'>,
): PostgresPlace | null {
  const { schema } = location
  if (location.kind === 'url')
    return { kind: 'postgres', target: location.target, tls: null, isPooled, schema, ...rest }
  const found = targetOfPool(location.pool)
  return found === null ? null : { kind: 'postgres', ...found, isPooled, schema, ...rest }
}
