/**
 * Redis under seeded scenarios: one client behind a proxy that cuts and drops, a server whose clock stands where it is put, and that
 * forgets its scripts, its connections, or is killed.
 */
import { Redis } from 'ioredis'
import type { RedisBackend } from '#dist/src/backends/redis/backend.js'
import { isHoldfastError } from '#dist/src/errors.js'
import { loadCatalog } from '#dist/src/lua/catalog.js'
import { LANES } from '../scenario/client.ts'
import type { Glimpse, Seen } from '../scenario/glimpse.ts'
import { severAt } from '../scenario/sever.ts'
import type { ScenarioStore } from '../scenario/store.ts'
import type { SeededRandom } from '../simulation/random.ts'
import { ServerClock } from '../support/clock/server-clock.ts'
import { eventually } from '../support/event.ts'
import { FaultProxy } from '../support/proxy.ts'
import { RedisServer } from '../support/redis-server.ts'
import { Dumper } from './dump.ts'
import { openBackend } from './model-subject.ts'
import { recount } from './recount.ts'

/** Reconnects at once: pauses are not what is tested here. */
const QUICK = { random: { next: () => 0.001, bytes: (count: number) => new Uint8Array(count) } }

export class RedisScenarioStore implements ScenarioStore {
  readonly clock: ServerClock
  readonly restartChance = 0.06
  private readonly server: RedisServer
  private readonly proxy: FaultProxy
  private readonly observer: Redis
  private readonly dumper: Dumper
  private namespace = ''
  private backends: readonly RedisBackend[] = []
  private noScriptsBefore = 0

  private constructor(clock: ServerClock, server: RedisServer, proxy: FaultProxy) {
    this.clock = clock
    this.server = server
    this.proxy = proxy
    const { port } = server
    this.observer = new Redis({
      port,
      host: '127.0.0.1',
      protocol: 2,
      replyMapping: 'legacy',
      retryStrategy: () => 5,
    })
    this.observer.on('error', () => {}) // What is asked rejects with it, or is asked again.
    this.dumper = new Dumper(port)
  }

  static async start(): Promise<RedisScenarioStore> {
    const clock = await ServerClock.make()
    const server = await RedisServer.start({ appendOnly: true, appendFsync: 'always', env: clock.env })
    return new RedisScenarioStore(clock, server, await FaultProxy.start({ upstream: server.port }))
  }

  async stop(): Promise<void> {
    this.observer.disconnect()
    this.dumper.close()
    await this.proxy.close()
    await this.server.stop()
    await this.clock.remove()
  }

  /** What the server remembers of earlier scenarios must not matter. */
  async begin(namespace: string): Promise<void> {
    this.namespace = namespace
    this.proxy.set('pass')
    await this.observer.script('FLUSH')
    await Promise.all(Object.values(loadCatalog()).map(({ source }) => this.observer.script('LOAD', source)))
    this.noScriptsBefore = await this.noScripts()
  }

  async open(count: number): Promise<readonly RedisBackend[]> {
    const { proxy, server, namespace } = this
    this.backends = await Promise.all(
      Array.from({ length: count }, (_, index) => openBackend(index === 0 ? proxy.url : server.url, namespace, QUICK)),
    )
    return this.backends
  }

  async arm(random: SeededRandom): Promise<void> {
    const place = {
      nth: random.pick([1, 1, 1, 2, 3]),
      // Nobody waits for wake-ups, so when they are sent is up to the moment.
      counts: (request: Buffer) => !request.includes(':wake:'),
    }
    severAt(this.proxy, place, random.chance(0.6) ? 'reply' : 'request')
  }

  async disarm(): Promise<void> {
    this.proxy.set('pass')
  }

  async setDown(isDown: boolean): Promise<void> {
    this.proxy.set(isDown ? 'refuse' : 'pass')
    if (!isDown) return
    this.proxy.reset()
    await eventually(
      () => this.backends[0]?.call('store.health', {}).then(() => false, isNotDone) ?? false,
      'a lost connection',
    )
  }

  async shake(): Promise<string> {
    await this.observer.script('FLUSH')
    return 'scripts flushed'
  }

  async killConnections(): Promise<void> {
    await this.observer.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  }

  async restart(random: SeededRandom): Promise<void> {
    if (random.chance(0.5)) await this.server.kill()
    await this.server.restart()
    await eventually(() => this.observer.ping().catch(() => false as const), 'the observer')
  }

  async look(): Promise<Glimpse> {
    const jobs = new Map<string, Seen>()
    const paused = new Set<string>()
    for (const lane of LANES) {
      const key = (role: string): string => `hf:{${this.namespace}:${lane}}:${role}`
      const [ids, runs, leases, isPaused] = await Promise.all([
        this.observer.hkeys(key('defs')),
        this.observer.hgetall(key('run')),
        this.observer.call('ZRANGE', key('leases'), 0, -1, 'WITHSCORES') as Promise<string[]>,
        this.observer.hexists(key('meta'), 'paused'),
      ])
      const expiries = new Map(leases.map((member, index) => [member, Number(leases[index + 1])]))
      for (const id of ids) jobs.set(`${lane}/${id}`, seen(runs[id], expiries.get(id) ?? null))
      if (isPaused === 1) paused.add(lane)
    }
    return { jobs, paused }
  }

  async recount(): Promise<readonly string[]> {
    return recount(await this.dumper.dump(this.namespace), this.namespace)
  }

  async end(): Promise<readonly string[]> {
    const met = (await this.noScripts()) > this.noScriptsBefore ? ['NOSCRIPT'] : []
    await Promise.all(this.backends.map((backend) => backend.close()))
    this.backends = []
    return met
  }

  private async noScripts(): Promise<number> {
    const info = await this.observer.info('errorstats')
    return Number(/errorstat_NOSCRIPT:count=(\d+)/.exec(info)?.[1] ?? 0)
  }
}

const isNotDone = (error: unknown): boolean => isHoldfastError(error) && error.details.outcome === 'notDone'

function seen(run: string | undefined, expiresAt: number | null): Seen {
  if (run === undefined) return { state: '-', token: '', attempts: 0, expiresAt }
  const [token = '', attempts] = run.slice(1).split('|')
  return { state: run.slice(0, 1), token, attempts: Number(attempts), expiresAt }
}
