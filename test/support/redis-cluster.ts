/**
 * A private Redis Cluster of a test: masters with a replica each, all slots served. Nodes can be killed, and slots can be moved
 * one by one, with a stop half way, so that clients meet MOVED, ASK and TRYAGAIN.
 */
import keySlot from 'cluster-key-slot'
import { lookFor } from './look.ts'
import { RedisServer, type RedisServerOptions } from './redis-server.ts'

export interface RedisClusterOptions extends Omit<RedisServerOptions, 'cluster' | 'replicaOf'> {
  readonly masters?: number
  /** Of each master. */
  readonly replicas?: number
  readonly nodeTimeoutMs?: number
}

/** A slot on its way: keys are on both sides until it is finished. */
export interface SlotMigration {
  readonly slot: number
  readonly from: RedisServer
  readonly to: RedisServer
  /** Moves some keys (default all) to the new owner. */
  moveKeys(count?: number): Promise<void>
  /** Moves what is left and gives the slot to the new owner. */
  finish(): Promise<void>
}

interface Node {
  readonly id: string
  readonly server: RedisServer
}

const SLOTS = 16_384
const MIGRATE_MS = 5000

export const slotOf = (key: string): number => keySlot(key)

export class RedisCluster {
  readonly nodes: readonly RedisServer[]

  private constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes
  }

  /** Starts the nodes, deals out the slots, and resolves when every node finds the cluster in order. */
  static async start(options: RedisClusterOptions = {}): Promise<RedisCluster> {
    const { masters = 3, replicas = 1, nodeTimeoutMs = 2000, ...server } = options
    const started = await Promise.allSettled(
      Array.from({ length: masters * (1 + replicas) }, () =>
        RedisServer.start({ ...server, cluster: { nodeTimeoutMs } }),
      ),
    )
    const cluster = new RedisCluster(started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])))
    try {
      for (const each of started) if (each.status === 'rejected') throw each.reason
      await cluster.#form(masters)
      return cluster
    } catch (error) {
      await cluster.stop()
      throw error
    }
  }

  /** Names every node. */
  get url(): string {
    const [first] = this.nodes
    if (first === undefined) throw new Error('a cluster without nodes')
    const hosts = this.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')
    return first.url.replace('redis:', 'redis+cluster:').replace(`127.0.0.1:${first.port}`, hosts)
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()))
  }

  /** The node that serves a slot now, as those that run see it. */
  async masterOf(slot: number): Promise<RedisServer> {
    return lookFor(`a master of slot ${slot}`, async () => {
      const ranges = (await this.#anyone().command('CLUSTER', 'SLOTS')) as readonly [number, number, [string, number]][]
      const range = ranges.find(([first, last]) => first <= slot && slot <= last)
      return range === undefined ? undefined : this.nodes.find(({ port }) => port === range[2][1])
    })
  }

  /** Kills the master of a slot; resolves when another serves it. */
  async failover(slot: number): Promise<{ readonly killed: RedisServer; readonly promoted: RedisServer }> {
    const killed = await this.masterOf(slot)
    await killed.kill()
    const promoted = await lookFor(`another master of slot ${slot}`, async () => {
      const found = await this.masterOf(slot)
      return found === killed ? undefined : found
    })
    await this.inOrder()
    return { killed, promoted }
  }

  /** Resolves when every node that runs finds all slots served, and all see the same owners. */
  async inOrder(): Promise<void> {
    await lookFor('the cluster in order', async () => {
      const running = this.nodes.filter(({ pid }) => pid !== null)
      const views = await Promise.all(
        running.map(async (node) => {
          const info = String(await node.command('CLUSTER', 'INFO'))
          const isGood = info.includes('cluster_state:ok') && info.includes(`cluster_slots_ok:${SLOTS}`)
          return isGood ? ownersSeenBy(String(await node.command('CLUSTER', 'NODES'))) : null
        }),
      )
      return views.every((view) => view !== null && view === views[0]) ? true : undefined
    })
  }

  /** Begins to move a slot to another master; until it is finished, keys of it are on both. */
  async migrate(slot: number, to: RedisServer): Promise<SlotMigration> {
    const from = await this.masterOf(slot)
    const [fromId, toId] = await Promise.all([idOf(from), idOf(to)])
    await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId)
    await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId)
    const moveKeys = async (count = Number.POSITIVE_INFINITY): Promise<void> => {
      for (let left = count; left > 0; ) {
        const keys = (await from.command('CLUSTER', 'GETKEYSINSLOT', slot, Math.min(left, 100))) as readonly string[]
        if (keys.length === 0) return
        await from.command('MIGRATE', '127.0.0.1', to.port, '', 0, MIGRATE_MS, 'KEYS', ...keys)
        left -= keys.length
      }
    }
    const finish = async (): Promise<void> => {
      await moveKeys()
      // The new owner first: the other way round, both would send clients to each other for a moment.
      for (const node of [to, from]) await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', toId)
      await this.inOrder()
    }
    return { slot, from, to, moveKeys, finish }
  }

  /** A master other than this one. */
  async otherMaster(than: RedisServer): Promise<RedisServer> {
    for (const node of this.nodes) {
      if (node === than || node.pid === null) continue
      const [role] = (await node.command('ROLE')) as readonly unknown[]
      if (role === 'master') return node
    }
    throw new Error('no other master runs')
  }

  async #form(masters: number): Promise<void> {
    const all: Node[] = await Promise.all(this.nodes.map(async (server) => ({ id: await idOf(server), server })))
    await Promise.all(all.map(({ server }, n) => server.command('CLUSTER', 'SET-CONFIG-EPOCH', n + 1)))
    const [first, ...others] = all
    for (const { server } of others) await first?.server.command('CLUSTER', 'MEET', '127.0.0.1', server.port)
    await Promise.all(
      all.slice(0, masters).map(({ server }, n) => {
        const start = Math.ceil((n * SLOTS) / masters)
        const end = Math.ceil(((n + 1) * SLOTS) / masters) - 1
        return server.command('CLUSTER', 'ADDSLOTSRANGE', start, end)
      }),
    )
    await Promise.all(
      all.slice(masters).map(({ server }, n) => {
        const master = all[n % masters]
        if (master === undefined) throw new Error('a replica without a master')
        return lookFor('a replica knows its master', async () => {
          const known = String(await server.command('CLUSTER', 'NODES'))
          if (!known.includes(master.id)) return undefined
          return server.command('CLUSTER', 'REPLICATE', master.id)
        })
      }),
    )
    await Promise.all(all.slice(masters).map(({ server }) => this.#follows(server)))
    await this.inOrder()
  }

  /** Only a replica whose data came over can be voted for. */
  #follows(replica: RedisServer): Promise<true> {
    return lookFor('a replica has its data', async () => {
      const [role, , , state] = (await replica.command('ROLE')) as readonly unknown[]
      return role === 'slave' && state === 'connected' ? true : undefined
    })
  }

  #anyone(): RedisServer {
    const node = this.nodes.find(({ pid }) => pid !== null)
    if (node === undefined) throw new Error('no node runs')
    return node
  }
}

const idOf = async (node: RedisServer): Promise<string> => String(await node.command('CLUSTER', 'MYID'))

/** Who has which slots, as text that is the same on all nodes that agree. */
function ownersSeenBy(nodes: string): string {
  return nodes
    .split('\n')
    .map((line) => line.split(' '))
    .flatMap(([id, , , , , , , , ...slots]) => {
      const served = slots.filter((slot) => !slot.startsWith('['))
      return served.length === 0 ? [] : [`${id} ${served.join(' ')}`]
    })
    .sort()
    .join('\n')
}
