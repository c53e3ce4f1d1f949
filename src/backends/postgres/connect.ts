/** Opens the link of a PostgreSQL store: retries until a primary is there, then checks that it may keep jobs; and whatever is opened over it. */
import { systemTimers, type Timers, withDeadline } from '../../clock.ts'
import { Deadlines } from '../../deadlines.ts'
import { HoldfastError, isHoldfastError } from '../../errors.ts'
import type { BackendOptions } from '../backend.ts'
import { CallerPool } from './caller-pool.ts'
import { isFinal } from './errors.ts'
import { PostgresLink } from './link.ts'
import type { PostgresLocation } from './location.ts'
import { OwnPool } from './own-pool.ts'
import { SettingsCheck } from './settings-check.ts'
import { driverTls } from './tls.ts'
import { backOffMs, LIMITS, type Limits, type Wiring } from './wiring.ts'

const OPEN_BACK_OFF = { baseMs: 50, maxMs: 500 }

export interface LinkOptions extends BackendOptions {
  readonly timers?: Timers
  readonly limits?: Partial<Limits>
}

export async function openLink(location: PostgresLocation, options: LinkOptions): Promise<PostgresLink> {
  const wiring = wiringOf(options)
  const deadlines = new Deadlines(wiring.clock, wiring.timers)
  const source = await openSource(location, wiring, deadlines)
  return linkOver({ source, wiring, deadlines, isPooled: location.isPooled }, options.openDeadlineMs)
}

export interface LinkParts {
  readonly source: OwnPool | CallerPool
  readonly wiring: Wiring
  readonly deadlines: Deadlines
  readonly isPooled: boolean
}

export async function linkOver(parts: LinkParts, openDeadlineMs: number): Promise<PostgresLink> {
  const { source, wiring } = parts
  const settings = new SettingsCheck(source.server, wiring.warn)
  const link = new PostgresLink({ ...parts, settings })
  source.onIdleError((error) => link.idleLost(error))
  try {
    await untilConnected(link, wiring, openDeadlineMs)
    return link
  } catch (error) {
    await link.close()
    throw error
  }
}

/**
 * Opens again, in what is left of the time, when a connection was lost on the way: a server that is restarted, or an operator, may end
 * any of them, and nothing that is done while a store is opened is harmed by being done twice.
 */
export async function openedInTime<O extends LinkOptions, T>(options: O, open: (options: O) => Promise<T>): Promise<T> {
  const { clock, random, timers = systemTimers, openDeadlineMs } = options
  const untilMs = clock.monotonic() + openDeadlineMs
  for (let failures = 0; ; failures += 1) {
    try {
      return await open({ ...options, openDeadlineMs: Math.max(1, Math.round(untilMs - clock.monotonic())) })
    } catch (error) {
      const waitMs = backOffMs(failures, random, OPEN_BACK_OFF)
      const isLost = isHoldfastError(error) && error.code === 'STORE_UNAVAILABLE'
      if (!isLost || clock.monotonic() + waitMs >= untilMs) throw error
      await new Promise<void>((resolve) => timers.set(resolve, waitMs))
    }
  }
}

export function wiringOf({ clock, random, warn, timers = systemTimers, limits }: LinkOptions): Wiring {
  return { clock, timers, random, warn, limits: { ...LIMITS, ...limits } }
}

async function openSource(
  location: PostgresLocation,
  wiring: Wiring,
  deadlines: Deadlines,
): Promise<OwnPool | CallerPool> {
  if (location.kind === 'pool') return new CallerPool(location.pool, wiring, deadlines)
  const { target, connections, isPooled } = location
  const tls = await driverTls(target.tls)
  return new OwnPool({ target, tls, connections, isPlain: isPooled }, wiring, deadlines)
}

async function untilConnected(link: PostgresLink, wiring: Wiring, timeoutMs: number): Promise<void> {
  const { clock, timers, random } = wiring
  const untilMs = clock.monotonic() + timeoutMs
  const late = new Error('the server did not answer')
  let last: Error = late
  for (let failures = 0; ; failures += 1) {
    try {
      const leftMs = Math.max(0, untilMs - clock.monotonic())
      return await withDeadline(link.connect(), leftMs, timers, () => late)
    } catch (error) {
      if (isFinal(error)) throw error
      if (error !== late && error instanceof Error) last = error
      const waitMs = backOffMs(failures, random, OPEN_BACK_OFF)
      if (error === late || clock.monotonic() + waitMs >= untilMs) throw notInTime(timeoutMs, last)
      await new Promise<void>((resolve) => timers.set(resolve, waitMs))
    }
  }
}

function notInTime(timeoutMs: number, last: Error): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', `no connection within ${timeoutMs} ms: ${last.message}`, {
    details: { ...(last instanceof HoldfastError ? last.details : {}), outcome: 'notDone' },
    cause: last,
  })
}
