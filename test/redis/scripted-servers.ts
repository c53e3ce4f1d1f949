/** Connections of a Redis store that a test plays itself: it sees what is sent, says what comes back, and ends the waits. */
import type { RedisArgument, RedisReply, RedisServers, ServerFacts } from '#dist/src/backends/redis/servers.js'
import type { LuaScript } from '#dist/src/lua/script.js'

export interface Sent {
  readonly name: string
  readonly keys: readonly string[]
  readonly args: readonly RedisArgument[]
}

interface Wait {
  readonly lists: readonly string[]
  /** A list gave an element, or none did in time. */
  end(list: string | null): void
  fail(): void
}

const FACTS: ServerFacts = {
  version: '7.0.0',
  isCluster: false,
  maxmemoryPolicy: 'noeviction',
  isAofEnabled: true,
  appendFsync: 'always',
  waitReplicas: 0,
}

export class ScriptedServers implements RedisServers {
  readonly sent: Sent[] = []
  /** All blocking waits so far; the last one may still stand. */
  readonly waits: Wait[] = []
  /** What a script or a command answers. */
  answer: (sent: Sent) => Promise<RedisReply> = () => Promise.resolve(1)
  isWaiting = false
  settled: () => Promise<void> = () => Promise.resolve()
  private readonly known: ServerFacts

  constructor(facts: Partial<ServerFacts> = {}) {
    this.known = { ...FACTS, ...facts }
  }

  run({ name }: LuaScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<RedisReply> {
    return this.command(name, keys[0] ?? '', [...keys, ...args], keys.length)
  }

  command(name: string, _key: string, args: readonly RedisArgument[], keyCount = 1): Promise<RedisReply> {
    const sent = { name, keys: args.slice(0, keyCount).map(String), args: args.slice(keyCount) }
    this.sent.push(sent)
    return this.answer(sent)
  }

  pop(lists: readonly string[]): Promise<{ readonly list: string; readonly value: string } | null> {
    return new Promise((resolve, reject) => {
      this.waits.push({
        lists,
        end: (list) => resolve(list === null ? null : { list, value: '1' }),
        fail: () => reject(new Error('cut')),
      })
    })
  }

  listen(): void {}

  /** How often a script or command was sent. */
  count(name: string): number {
    return this.sent.filter((each) => each.name === name).length
  }

  onChange(): () => void {
    return () => {}
  }

  facts(): ServerFacts {
    return this.known
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
