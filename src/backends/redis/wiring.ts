/** What every connection of one store shares: time, chance, deadlines, its name, and how to reach a server. */
import type { RedisOptions } from 'ioredis'
import type { Clock, Timers } from '../../clock.ts'
import type { Random } from '../../random.ts'
import { addressOf, type Endpoint, type RedisLocation } from './location.ts'
import type { SettingsCheck } from './settings-check.ts'

export interface Wiring {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  /** Deadline of one call. */
  readonly callTimeoutMs: number
  /** As CLIENT LIST shows it. */
  readonly clientName: string
  readonly settings: SettingsCheck
}

/** How to reach one server, and as whom. */
export interface Target {
  /** As messages name it; never holds a secret. */
  readonly server: string
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  /** Other at each attempt where there are several places to ask. */
  driver(attempt: number): RedisOptions
}

/** The server itself, or the primary that Sentinels name. */
export function targetOf(location: RedisLocation, endpoint?: Endpoint): Target {
  const { endpoints, driver, username, password, database } = location
  const login = { username, password, database }
  if (location.topology === 'sentinel') {
    const server = `${driver.name} (by Sentinel ${endpoints.map(addressOf).join(', ')})`
    return { ...login, server, driver: (attempt) => ({ ...driver, sentinels: rotated(endpoints, attempt) }) }
  }
  const { host, port } = endpoint ?? endpoints[0] ?? { host: 'localhost', port: 6379 }
  const server = driver.path ?? addressOf({ host, port })
  const { name: _, natMap: __, ...plain } = driver
  return { ...login, server, driver: () => ({ ...plain, host, port }) }
}

/** A dead Sentinel must not be asked first for ever. */
function rotated<T>(items: readonly T[], by: number): T[] {
  return items.map((_, index) => items[(index + by) % items.length] as T)
}

/** Full jitter: anything up to a bound that doubles with each failure. */
export function backOffMs(failures: number, random: Random): number {
  return random.next() * Math.min(BACK_OFF_MAX_MS, BACK_OFF_BASE_MS * 2 ** Math.min(failures, 10))
}

const BACK_OFF_BASE_MS = 50
const BACK_OFF_MAX_MS = 1000
