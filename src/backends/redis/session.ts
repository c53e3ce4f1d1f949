/** What the messages of the Redis store share: the connections, the scripts, the keys of each lane, and how ids split into both. */
import { type LuaCatalog, loadCatalog, type ScriptName } from '../../lua/catalog.ts'
import { LaneKeys } from './key.ts'
import type { RedisArgument, RedisReply, RedisServers } from './servers.ts'

/** Jobs and bytes of one script call. Measured limits: see `docs/decisions/0007-redis-batches.md`. */
export const BATCH = {
  enqueueJobs: 250,
  settlements: 200,
  /** Settlements that are not completions: each takes several commands. */
  otherSettlements: 50,
  claimJobs: 200,
  leases: 500,
  notes: 100,
  moves: 50,
  buried: 50,
  reads: 100,
  values: 20,
  bytes: 524_288,
} as const

export class RedisSession {
  readonly servers: RedisServers
  readonly namespace: string
  readonly scripts: LuaCatalog = loadCatalog()
  private readonly lanes = new Map<string, LaneKeys>()

  constructor(servers: RedisServers, namespace: string) {
    this.servers = servers
    this.namespace = namespace
  }

  keys(lane: string): LaneKeys {
    let keys = this.lanes.get(lane)
    if (keys === undefined) {
      keys = new LaneKeys(this.namespace, lane)
      this.lanes.set(lane, keys)
    }
    return keys
  }

  /** Runs a script on the keys of a lane; `further` is the optional one of a script that has it. */
  run(
    name: ScriptName,
    lane: string,
    args: readonly RedisArgument[],
    further: string | null = null,
  ): Promise<RedisReply> {
    const script = this.scripts[name]
    const keys = this.keys(lane).of(script)
    return this.servers.run(script, further === null ? keys : [...keys, further], args)
  }
}

/** What a job is called within its lane. An id without a slash belongs to no lane and names no job. */
export interface LocalId {
  readonly lane: string
  readonly local: string
}

export function localId(id: string): LocalId | null {
  const slash = id.indexOf('/')
  return slash <= 0 ? null : { lane: id.slice(0, slash), local: id.slice(slash + 1) }
}

/** Items of each lane with their places in the whole, so that answers can be put back in order. */
export interface LaneGroup<T> {
  readonly lane: string
  readonly items: { readonly item: T; readonly local: string; readonly index: number }[]
}

/** Groups by lane; what names no job is left out. */
export function groupByLane<T>(items: readonly T[], idOf: (item: T) => string): readonly LaneGroup<T>[] {
  const groups = new Map<string, LaneGroup<T>>()
  let group: LaneGroup<T> | undefined
  let prefix = ''
  for (const [index, item] of items.entries()) {
    const id = idOf(item)
    // Nearly all are of the lane of the one before.
    if (group === undefined || !id.startsWith(prefix)) {
      const name = localId(id)
      if (name === null) continue
      prefix = `${name.lane}/`
      group = groups.get(name.lane) ?? { lane: name.lane, items: [] }
      groups.set(name.lane, group)
    }
    group.items.push({ item, local: id.slice(prefix.length), index })
  }
  return [...groups.values()]
}

/** Cuts into parts of at most `count` items and about `bytes` bytes; an item that is larger goes alone. */
export function chunksOf<T>(
  items: readonly T[],
  count: number,
  sizeOf: (item: T) => number,
): readonly (readonly T[])[] {
  const chunks: T[][] = []
  let current: T[] = []
  let bytes = 0
  for (const item of items) {
    const size = sizeOf(item)
    if (current.length > 0 && (current.length >= count || bytes + size > BATCH.bytes)) {
      chunks.push(current)
      current = []
      bytes = 0
    }
    current.push(item)
    bytes += size
  }
  if (current.length > 0) chunks.push(current)
  return chunks
}
