/** A Cluster of three primaries for a test, each a server of its own, and what moves slots between them. */
import { eventually } from '../support/event.ts'
import { RedisServer } from '../support/redis-server.ts'

const SLOTS = 16_384

export interface ThreeNodes {
  readonly nodes: readonly RedisServer[]
  readonly url: string
  /** The node that owns the slot by its own word. */
  ownerOf(slot: number): Promise<RedisServer>
  /** Marks the slot as moving from its owner, or ends the move. */
  beginMove(slot: number, to: RedisServer): Promise<void>
  endMove(slot: number, to: RedisServer): Promise<void>
  stop(): Promise<void>
}

/** `replicas` more servers join without slots. */
export async function startThreeNodes(replicas = 0, nodeTimeoutMs = 2000): Promise<ThreeNodes> {
  const servers = await Promise.all(
    Array.from({ length: 3 + replicas }, () => RedisServer.start({ appendOnly: false, cluster: { nodeTimeoutMs } })),
  )
  const nodes = servers.slice(0, 3)
  await Promise.all(
    nodes.map((node, index) => {
      const first = Math.ceil((SLOTS / 3) * index)
      const last = Math.ceil((SLOTS / 3) * (index + 1)) - 1
      return node.command('CLUSTER', 'ADDSLOTSRANGE', first, last)
    }),
  )
  // An epoch each, so that no two claim the same one.
  await Promise.all(servers.map((node, index) => node.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)))
  for (const other of servers.slice(1)) await other.command('CLUSTER', 'MEET', '127.0.0.1', servers[0]?.port ?? 0)
  const knowsAll = async (node: RedisServer): Promise<boolean> => {
    const info = String(await node.command('CLUSTER', 'INFO'))
    return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${servers.length}`)
  }
  await eventually(async () => (await Promise.all(servers.map(knowsAll))).every(Boolean), 'a whole Cluster')
  const id = async (node: RedisServer): Promise<string> => String(await node.command('CLUSTER', 'MYID'))
  const ownerOf = async (slot: number): Promise<RedisServer> => {
    const ranges = (await nodes[0]?.command('CLUSTER', 'SLOTS')) as [number, number, [string, number]][]
    const port = ranges.find(([first, last]) => slot >= first && slot <= last)?.[2][1]
    const owner = servers.find((server) => server.port === port)
    if (owner === undefined) throw new Error(`no owner of slot ${slot}`)
    return owner
  }
  return {
    nodes: servers,
    url: `redis+cluster://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    ownerOf,
    async beginMove(slot, to) {
      const from = await ownerOf(slot)
      await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await id(from))
      await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await id(to))
    },
    async endMove(slot, to) {
      const from = await ownerOf(slot)
      await to.command('CLUSTER', 'SETSLOT', slot, 'NODE', await id(to))
      await from.command('CLUSTER', 'SETSLOT', slot, 'NODE', await id(to))
    },
    async stop() {
      await Promise.all(servers.map((server) => server.stop()))
    },
  }
}
