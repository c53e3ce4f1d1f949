/** The stores of a long run: where each is, what may befall it, and how many connections its server counts. */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { miscounts } from '../redis/stage.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { FaultProxy } from '../support/proxy.ts'
import { RedisServer } from '../support/redis-server.ts'
import { type Outage, postgresOutages, redisOutages } from './faults.ts'

export interface SoakStage {
  readonly url: string
  /** Past the faults of the network. */
  readonly directUrl: string
  /** Other processes can work on it. */
  readonly isShared: boolean
  readonly faults: readonly Outage[]
  /** Most of the server's connections that one client may have, where it opens them as it needs them; 0: it has all from the start. */
  readonly connectionsMax: number
  /** Clients that the server counts; 0 where there is no server. */
  connections(): Promise<number>
  /** What the store's own indexes and counters get wrong. */
  miscounts(namespace: string): Promise<readonly string[]>
  close(): Promise<void>
}

const nothing = async (): Promise<readonly string[]> => []

async function openMemory(): Promise<SoakStage> {
  return {
    url: 'memory:',
    directUrl: 'memory:',
    isShared: false,
    faults: [],
    connectionsMax: 0,
    connections: async () => 0,
    miscounts: nothing,
    close: async () => {},
  }
}

/** Another program holds the write lock, or all of the file. */
function locked(path: string, how: 'IMMEDIATE' | 'EXCLUSIVE'): Outage {
  let db: Database.Database | null = null
  return {
    name: `${how.toLowerCase()} lock`,
    isTotal: false,
    begin: async () => {
      db = new Database(path, { timeout: 10_000 })
      db.exec(`BEGIN ${how}`)
    },
    heal: async () => {
      db?.exec('ROLLBACK')
      db?.close()
    },
  }
}

async function openSqlite(folder: string): Promise<SoakStage> {
  const path = join(folder, 'jobs.db')
  const url = `sqlite:${path}`
  return {
    url,
    directUrl: url,
    isShared: true,
    faults: [locked(path, 'IMMEDIATE'), locked(path, 'EXCLUSIVE')],
    connectionsMax: 0,
    connections: async () => 0,
    miscounts: nothing,
    close: async () => {},
  }
}

async function openRedis(_folder: string, seed: number): Promise<SoakStage> {
  const server = await RedisServer.start({ appendOnly: true, appendFsync: 'always' })
  const proxy = await FaultProxy.start({ upstream: server.port, seed })
  return {
    url: proxy.url,
    directUrl: server.url,
    isShared: true,
    faults: redisOutages(server, proxy),
    connectionsMax: 0,
    connections: async () =>
      String(await server.command('CLIENT', 'LIST'))
        .split('\n')
        .filter((line) => line.includes('name=holdfast')).length,
    miscounts: (namespace) => miscounts(server, namespace),
    close: async () => {
      await proxy.close()
      await server.stop()
    },
  }
}

async function openPostgres(_folder: string, seed: number): Promise<SoakStage> {
  const server = await PostgresServer.start()
  const proxy = await FaultProxy.start({ upstream: server.port, seed })
  return {
    url: server.urlOf({ port: proxy.port }),
    directUrl: server.url,
    isShared: true,
    faults: postgresOutages(server, proxy),
    // Its pool, the one that listens, and that of the thread which renews leases.
    connectionsMax: 4 + 1 + 1,
    connections: async () => {
      const [row] = await server.query<{ n: number }>(
        'SELECT count(*)::int AS n FROM pg_stat_activity WHERE backend_type = $1 AND pid <> pg_backend_pid()',
        ['client backend'],
      )
      return row?.n ?? 0
    },
    miscounts: nothing,
    close: async () => {
      await proxy.close()
      await server.stop()
    },
  }
}

export const STAGES: readonly { readonly name: string; open(folder: string, seed: number): Promise<SoakStage> }[] = [
  { name: 'memory', open: openMemory },
  { name: 'sqlite', open: openSqlite },
  { name: 'postgres', open: openPostgres },
  { name: 'redis', open: openRedis },
]
