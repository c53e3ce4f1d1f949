/** What a server tells about itself in INFO and CONFIG GET: read once for each connection, before anything else is sent on it. */

import { unsupported } from './errors.ts'
import type { RedisReply, ServerFacts } from './servers.ts'

export interface ServerReport {
  /** `redis_version`; also of a Valkey server the version of Redis that it is compatible with. */
  readonly compatibleVersion: string
  readonly runId: string
  readonly replicationId: string
  readonly isPrimary: boolean
  readonly isLoading: boolean
  readonly maxmemory: number
  readonly facts: Omit<ServerFacts, 'waitReplicas'>
}

const OLDEST_MAJOR = 7

export function readReport(info: RedisReply, appendFsync: RedisReply): ServerReport {
  const fields = new Map<string, string>()
  for (const line of String(info).split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1))
  }
  const text = (name: string): string => fields.get(name) ?? ''
  return {
    compatibleVersion: text('redis_version'),
    runId: text('run_id'),
    replicationId: text('master_replid'),
    isPrimary: text('role') === 'master',
    isLoading: text('loading') === '1',
    maxmemory: Number(text('maxmemory')),
    facts: {
      version: text('valkey_version') || text('redis_version'),
      isCluster: text('cluster_enabled') === '1',
      maxmemoryPolicy: text('maxmemory_policy') || 'noeviction',
      isAofEnabled: text('aof_enabled') === '1',
      appendFsync: readFsync(appendFsync),
    },
  }
}

function readFsync(reply: RedisReply): ServerFacts['appendFsync'] {
  const value = Array.isArray(reply) ? String(reply[1]) : ''
  return value === 'always' || value === 'everysec' || value === 'no' ? value : 'unknown'
}

/** Another process, or another history of writes, than before: what was not replicated may be gone. */
export function isSameServer(before: ServerReport, now: ServerReport): boolean {
  return before.runId === now.runId && before.replicationId === now.replicationId
}

/** UNSUPPORTED is the code, since the server lacks what the store needs and neither retrying nor other arguments can help. */
export function checkVersion({ compatibleVersion }: ServerReport, server: string): void {
  if (Number.parseInt(compatibleVersion, 10) >= OLDEST_MAJOR) return
  const message = `Redis at ${server} has version ${compatibleVersion || 'unknown'}; Holdfast needs ${OLDEST_MAJOR}.0 or later`
  throw unsupported('SERVER_VERSION', message, server)
}

const FSYNC_STRENGTH: readonly ServerFacts['appendFsync'][] = ['unknown', 'no', 'everysec', 'always']

/** The facts of all nodes as one: what each of them promises at least. */
export function weakest(reports: readonly ServerReport[], waitReplicas: number): ServerFacts {
  const [first, ...others] = reports.map(({ facts }) => facts)
  if (first === undefined) return { ...NOTHING_KNOWN, waitReplicas }
  const joined = others.reduce(
    (all, one) => ({
      version: compareVersions(one.version, all.version) < 0 ? one.version : all.version,
      isCluster: all.isCluster && one.isCluster,
      maxmemoryPolicy: all.maxmemoryPolicy === 'noeviction' ? one.maxmemoryPolicy : all.maxmemoryPolicy,
      isAofEnabled: all.isAofEnabled && one.isAofEnabled,
      appendFsync:
        FSYNC_STRENGTH.indexOf(one.appendFsync) < FSYNC_STRENGTH.indexOf(all.appendFsync)
          ? one.appendFsync
          : all.appendFsync,
    }),
    first,
  )
  return { ...joined, waitReplicas }
}

const NOTHING_KNOWN: Omit<ServerFacts, 'waitReplicas'> = {
  version: '',
  isCluster: false,
  maxmemoryPolicy: 'noeviction',
  isAofEnabled: false,
  appendFsync: 'unknown',
}

function compareVersions(left: string, right: string): number {
  return left.localeCompare(right, 'en', { numeric: true })
}
