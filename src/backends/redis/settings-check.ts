/**
 * Whether the settings of servers let them keep jobs. At opening those that lose jobs without a word are refused; settings that may
 * lose some, and any that turned bad by a later connection, are warned of once for each server, and again after they were good.
 */
import { unsupported } from './errors.ts'
import { addressOf, type RedisLocation } from './location.ts'
import type { ServerReport } from './server-facts.ts'

export type Warn = (fields: Readonly<Record<string, unknown>>, message: string) => void

interface Problem {
  readonly code: 'EVICTION_POLICY' | 'NO_PERSISTENCE'
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
  /** A store is not opened with it. */
  readonly isRefused: boolean
}

export class SettingsCheck {
  private readonly location: RedisLocation
  private readonly warn: Warn
  /** Codes of what each server was last found with. */
  private readonly known = new Map<string, ReadonlySet<string>>()
  private isOpened = false

  constructor(location: RedisLocation, warn: Warn) {
    this.location = location
    this.warn = warn
  }

  /** Of all servers together, once they are connected. Throws UNSUPPORTED. */
  atOpening(reports: readonly ServerReport[]): void {
    checkSettings(reports, this.location, this.warn)
    this.isOpened = true
  }

  /** Of one server each time a connection to it is ready; tells only what is new. */
  again(server: string, report: ServerReport): void {
    const before = this.known.get(server)
    const problems = problemsOf([report], this.location, server)
    this.known.set(server, new Set(problems.map(({ code }) => code)))
    if (!this.isOpened) return
    for (const { code, fields, message } of problems) if (!before?.has(code)) this.warn(fields, message)
  }
}

export function checkSettings(reports: readonly ServerReport[], location: RedisLocation, warn: Warn): void {
  const server = location.endpoints.map(addressOf).join(', ')
  checkTopology(reports, location, server)
  for (const { code, fields, message, isRefused } of problemsOf(reports, location, server)) {
    if (isRefused) throw unsupported(code, `${message}, or open it with allowEviction=true and lose jobs`, server)
    warn(fields, message)
  }
}

/** A Cluster is opened as one, and nothing else is. */
export function checkTopology(reports: readonly ServerReport[], { topology }: RedisLocation, server: string): void {
  const isCluster = reports.some(({ facts }) => facts.isCluster)
  if (isCluster === (topology === 'cluster')) return
  const message = isCluster
    ? `Redis at ${server} is a node of a Cluster; use a redis+cluster:// URL`
    : `Redis at ${server} is no Cluster; use a redis:// URL`
  throw unsupported('TOPOLOGY', message, server)
}

/** Holdfast sets no expiry on jobs, so `volatile-*` evicts none of them, only keys of others; `allkeys-*` evicts jobs. */
function problemsOf(reports: readonly ServerReport[], location: RedisLocation, server: string): readonly Problem[] {
  const problems: Problem[] = []
  const evicting = reports.find(({ facts, maxmemory }) => maxmemory > 0 && facts.maxmemoryPolicy !== 'noeviction')
  if (evicting !== undefined) {
    const policy = evicting.facts.maxmemoryPolicy
    const code = 'EVICTION_POLICY'
    problems.push({
      code,
      fields: { code, server, policy },
      message: `Redis at ${server} evicts keys when it is full (maxmemory-policy ${policy}); set 'maxmemory-policy noeviction'`,
      isRefused: policy.startsWith('allkeys-') && !location.allowEviction,
    })
  }
  if (reports.some(({ facts }) => !facts.isAofEnabled)) {
    const code = 'NO_PERSISTENCE'
    problems.push({
      code,
      fields: { code, server },
      message: `Redis at ${server} does not log its writes: a restart loses jobs; set 'appendonly yes' and 'appendfsync always' (or 'everysec')`,
      isRefused: false,
    })
  }
  return problems
}
