/**
 * A master with its replicas and the Sentinels that watch them, private to a test. The master can be killed, frozen or told to
 * step down, so that clients must find the new one, and the old one comes back as a replica or still takes itself for the master.
 */
import { lookFor } from './look.ts'
import { RedisServer, type RedisServerOptions } from './redis-server.ts'

export interface RedisSentinelsOptions extends Omit<RedisServerOptions, 'cluster' | 'replicaOf'> {
  readonly replicas?: number
  readonly sentinels?: number
  /** How long a master is silent before a Sentinel takes it for down. */
  readonly downAfterMs?: number
}

const NAME = 'holdfast'
/**
 * Sentinels say and ask more often than in production: a master that comes back is made a replica after four publish periods. The
 * ping period stays as it is, since a replica that has not been heard of for five of them cannot be promoted.
 */
const HASTE = ['INFO-PERIOD', 250, 'PUBLISH-PERIOD', 200, 'ASK-PERIOD', 200] as const

export class RedisSentinels {
  /** The name that Sentinels know the master by. */
  readonly name = NAME
  readonly servers: readonly RedisServer[]
  readonly sentinels: readonly RedisServer[]

  private constructor(servers: readonly RedisServer[], sentinels: readonly RedisServer[]) {
    this.servers = servers
    this.sentinels = sentinels
  }

  /** Resolves when every Sentinel knows all others and all replicas, so that a failover can succeed. */
  static async start(options: RedisSentinelsOptions = {}): Promise<RedisSentinels> {
    const { replicas = 1, sentinels = 3, downAfterMs = 1000, ...server } = options
    const started: RedisServer[] = []
    const start = async (each: RedisServerOptions): Promise<RedisServer> => {
      const one = await RedisServer.start(each)
      started.push(one)
      return one
    }
    try {
      // The master too: it will be a replica one day.
      const auth = server.password === undefined ? [] : [`masterauth ${JSON.stringify(server.password)}`]
      const each = { ...server, config: [...(server.config ?? []), ...auth] }
      const master = await start(each)
      const followers = await all(replicas, () => start({ ...each, replicaOf: master }))
      const watch = watching({ port: master.port, password: server.password, sentinels, downAfterMs })
      const guards = await all(sentinels, () => start({ config: watch, args: ['--sentinel'] }))
      for (const guard of guards) await guard.command('SENTINEL', 'DEBUG', ...HASTE)
      const made = new RedisSentinels([master, ...followers], guards)
      await made.#ready()
      return made
    } catch (error) {
      await Promise.all(started.map((each) => each.stop()))
      throw error
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map((each) => each.stop()))
  }

  /** Whom the Sentinels that run take for the master, once most of them agree. */
  async master(): Promise<RedisServer> {
    return lookFor('Sentinels agree on a master', async () => {
      const running = this.sentinels.filter(({ pid }) => pid !== null)
      const ports = await Promise.all(
        running.map(async (sentinel) => {
          const [, port] = (await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as [string, string]
          return Number(port)
        }),
      )
      return this.servers.find(({ port }) => ports.filter((each) => each === port).length * 2 > this.sentinels.length)
    })
  }

  /**
   * Loses the master and resolves when another has its place. `kill`: its process ends; `pause`: it freezes, and when it is
   * resumed still takes itself for the master for a while; `order`: it lives and is told to step down.
   */
  async failover(how: 'kill' | 'pause' | 'order' = 'kill'): Promise<{ old: RedisServer; promoted: RedisServer }> {
    const old = await this.master()
    if (how === 'kill') await old.kill()
    else if (how === 'pause') await old.pause()
    else await this.sentinels[0]?.command('SENTINEL', 'FAILOVER', NAME)
    const promoted = await lookFor('another master', async () => {
      const found = await this.master()
      if (found === old) return undefined
      const [role] = (await found.command('ROLE')) as readonly unknown[]
      return role === 'master' ? found : undefined
    })
    return { old, promoted }
  }

  /** Resolves when a server follows the master and has its data. */
  async follows(replica: RedisServer): Promise<void> {
    await lookFor('a replica has its data', async () => {
      const master = await this.master()
      const [role, , port, state] = (await replica.command('ROLE')) as readonly unknown[]
      return role === 'slave' && port === master.port && state === 'connected' ? true : undefined
    })
  }

  async #ready(): Promise<void> {
    for (const replica of this.servers.slice(1)) await this.follows(replica)
    await lookFor('Sentinels know each other', async () => {
      const states = await Promise.all(
        this.sentinels.map((each) => each.command('SENTINEL', 'MASTER', NAME) as Promise<string[]>),
      )
      const isReady = states.every(
        (state) =>
          field(state, 'num-other-sentinels') === String(this.sentinels.length - 1) &&
          field(state, 'num-slaves') === String(this.servers.length - 1),
      )
      return isReady ? true : undefined
    })
  }
}

interface Watch {
  readonly port: number
  readonly password: string | undefined
  readonly sentinels: number
  readonly downAfterMs: number
}

function watching({ port, password, sentinels, downAfterMs }: Watch): readonly string[] {
  return [
    `sentinel monitor ${NAME} 127.0.0.1 ${port} ${Math.floor(sentinels / 2) + 1}`,
    `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
    `sentinel failover-timeout ${NAME} 1500`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${NAME} ${JSON.stringify(password)}`]),
  ]
}

const all = <T>(count: number, make: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: count }, make))

/** From a reply that lists names and values by turns. */
const field = (pairs: readonly string[], name: string): string | undefined => pairs[pairs.indexOf(name) + 1]
