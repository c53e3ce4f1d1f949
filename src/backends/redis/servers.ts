/**
 * What the Redis store asks of its connections: scripts and commands with a deadline, one blocking wait, and word when a server
 * may be another one than before. One server, a server found through Sentinel, and a Cluster look the same from here.
 */
import type { LuaScript } from '../../lua/script.ts'

export type RedisArgument = string | Uint8Array | number

/** RESP values as ioredis gives them with buffers: bulk text is a Buffer, a status is a Buffer too, nil is null. */
export type RedisReply = Buffer | number | null | readonly RedisReply[]

/** What is known of the servers since the last handshake; in a Cluster the weakest of its nodes. */
export interface ServerFacts {
  /** `redis_version`, or Valkey's own version as `valkey_version`. */
  readonly version: string
  readonly isCluster: boolean
  /** `maxmemory_policy`; only `noeviction` keeps jobs. */
  readonly maxmemoryPolicy: string
  readonly isAofEnabled: boolean
  /** `unknown` where CONFIG is forbidden. */
  readonly appendFsync: 'always' | 'everysec' | 'no' | 'unknown'
  /** Replicas that a write waits for; 0: none. */
  readonly waitReplicas: number
}

export interface RedisServers {
  /** Runs a script where its first key lives. Rejects with a HoldfastError whose `details.outcome` says what may have happened. */
  run(script: LuaScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<RedisReply>
  /** Sends one command; `key` says where to in a Cluster. */
  command(name: string, key: string, args: readonly RedisArgument[]): Promise<RedisReply>
  /**
   * Waits on a connection of its own until one of the lists gives an element; all have one hash tag. Null: nothing came within
   * `timeoutMs`. One wait at a time.
   */
  pop(lists: readonly string[], timeoutMs: number): Promise<{ readonly list: string; readonly value: string } | null>
  /** Hears a channel, on a connection of its own, from now on; null: something may have been missed. One channel only. */
  listen(channel: string, onMessage: (message: string | null) => void): void
  /** True while the blocking wait stands on a healthy connection. */
  readonly isWaiting: boolean
  /** Called, and awaited (2 s at most), when a server is another one than before: nothing else is sent by `run` for a claim until then. */
  onChange(listener: () => Promise<void>): () => void
  /** Resolves when no change is being dealt with. */
  settled(): Promise<void>
  facts(): ServerFacts
  close(): Promise<void>
}
