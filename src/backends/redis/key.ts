/**
 * The names of all keys. Those of a lane share the hash tag `{namespace:lane}`, so that a Cluster keeps them together; names of
 * lanes and namespaces have neither braces nor colons in them, so no two can meet. `docs/keyspace.md` describes each.
 */
import type { LuaScript } from '../../lua/script.ts'

const PREFIX = 'hf:'

/** Keys of the namespace itself. */
export const registryKey = (namespace: string): string => `${PREFIX}{${namespace}}:lanes`
export const keyspaceKey = (namespace: string): string => `${PREFIX}{${namespace}}:keyspace`
export const workersKey = (namespace: string): string => `${PREFIX}{${namespace}}:workers`
export const beatsKey = (namespace: string): string => `${PREFIX}{${namespace}}:beats`
export const wakeKey = (namespace: string, lane: string): string => `${PREFIX}{${namespace}}:wake:${lane}`

/** Where one process interrupts its own wait, to wait for more lanes. */
export const nudgeKey = (namespace: string, name: string): string => `${PREFIX}{${namespace}}:nudge:${name}`

/** Where it is said of which lanes jobs have ended. */
export const endsChannel = (namespace: string): string => `${PREFIX}{${namespace}}:ends`

/** The lane that a wake list belongs to. */
export const laneOfWakeKey = (key: string): string => key.slice(key.lastIndexOf(':') + 1)

/** What an ACL user must be allowed to touch: `~hf:{NAMESPACE:*` and `~hf:{NAMESPACE}:*`. */
export const keyPatterns = (namespace: string): readonly string[] => [
  `${PREFIX}{${namespace}:*`,
  `${PREFIX}{${namespace}}:*`,
]

/** The keys of one lane, by role; each list that a script declares is made once. */
export class LaneKeys {
  readonly lane: string
  private readonly tag: string
  private readonly lists = new Map<LuaScript, readonly string[]>()

  constructor(namespace: string, lane: string) {
    this.lane = lane
    this.tag = `${PREFIX}{${namespace}:${lane}}:`
  }

  key(role: string): string {
    return this.tag + role
  }

  of(script: LuaScript): readonly string[] {
    let list = this.lists.get(script)
    if (list === undefined) {
      list = script.keys.map((role) => this.tag + role)
      this.lists.set(script, list)
    }
    return list
  }
}
