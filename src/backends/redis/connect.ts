/** Opens the connections of a Redis store: retries until the server is there, then checks that it may keep jobs. */
import { readFile } from 'node:fs/promises'
import { systemTimers, type Timers, withDeadline } from '../../clock.ts'
import { HoldfastError } from '../../errors.ts'
import type { BackendOptions } from '../backend.ts'
import { Cluster } from './cluster.ts'
import { isFinal } from './errors.ts'
import type { RedisLocation } from './location.ts'
import type { ServerReport } from './server-facts.ts'
import type { RedisServers } from './servers.ts'
import { SettingsCheck, type Warn } from './settings-check.ts'
import { Standalone } from './standalone.ts'
import type { Wiring } from './wiring.ts'

const CALL_TIMEOUT_MS = 2000

export interface ServersOptions extends BackendOptions {
  readonly warn: Warn
  readonly timers?: Timers
  /** Deadline of one call; 2 s. */
  readonly callTimeoutMs?: number
  /** What the connections are for, in their name, where it is not everything. */
  readonly purpose?: string
}

/** What is opened: it can be asked to connect before it is used. */
interface Opening extends RedisServers {
  connect(): Promise<readonly ServerReport[]>
}

export async function openServers(location: RedisLocation, options: ServersOptions): Promise<RedisServers> {
  const trusted = await withCertificates(location)
  const settings = new SettingsCheck(trusted, options.warn)
  const wiring: Wiring = {
    clock: options.clock,
    timers: options.timers ?? systemTimers,
    random: options.random,
    callTimeoutMs: options.callTimeoutMs ?? CALL_TIMEOUT_MS,
    clientName: `holdfast:${options.namespace}${options.purpose === undefined ? '' : `:${options.purpose}`}`,
    settings,
  }
  const servers: Opening =
    trusted.topology === 'cluster' ? new Cluster(trusted, wiring) : new Standalone(trusted, wiring)
  try {
    settings.atOpening(await untilConnected(servers, wiring, options.openDeadlineMs))
    return servers
  } catch (error) {
    await servers.close()
    throw error
  }
}

async function untilConnected(
  servers: Opening,
  { clock, timers }: Wiring,
  timeoutMs: number,
): Promise<readonly ServerReport[]> {
  const untilMs = clock.monotonic() + timeoutMs
  const late = new Error('the server did not answer')
  let last: Error = late
  for (;;) {
    try {
      const leftMs = Math.max(0, untilMs - clock.monotonic())
      return await withDeadline(servers.connect(), leftMs, timers, () => late)
    } catch (error) {
      if (isFinal(error)) throw error
      if (error !== late && error instanceof Error) last = error
      if (error === late || clock.monotonic() >= untilMs) throw notInTime(timeoutMs, last)
    }
  }
}

function notInTime(timeoutMs: number, last: Error): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', `no connection within ${timeoutMs} ms: ${last.message}`, {
    details: { ...(last instanceof HoldfastError ? last.details : {}), outcome: 'notDone' },
    cause: last,
  })
}

async function withCertificates(location: RedisLocation): Promise<RedisLocation> {
  const { caFile, driver } = location
  if (caFile === undefined) return location
  try {
    const ca = await readFile(caFile)
    const sentinel = driver.sentinelTLS === undefined ? {} : { sentinelTLS: { ...driver.sentinelTLS, ca } }
    return { ...location, driver: { ...driver, tls: { ...driver.tls, ca }, ...sentinel } }
  } catch (cause) {
    throw new HoldfastError('INVALID_URL', 'url: the file of parameter ca cannot be read', {
      details: { field: 'url' },
      cause,
    })
  }
}
