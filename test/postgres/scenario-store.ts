/**
 * PostgreSQL under seeded scenarios: one client behind a proxy that cuts and drops, a server whose clock stands where it is put, whose
 * connections are ended and whose processes are killed, and rivals that hold the rows. Clients stay from one scenario to the next:
 * to plan their statements takes longer than to run them.
 */
import type { Client } from 'pg'
import type { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { isHoldfastError } from '#dist/src/errors.js'
import { type Glimpse, letterOf, type Seen } from '../scenario/glimpse.ts'
import { severAt } from '../scenario/sever.ts'
import type { ScenarioBackend, ScenarioStore } from '../scenario/store.ts'
import type { SeededRandom } from '../simulation/random.ts'
import { recount } from '../sql/recount.ts'
import { ServerClock } from '../support/clock/server-clock.ts'
import { eventually } from '../support/event.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { isAnswered, isQuery } from '../support/postgres-traffic.ts'
import { FaultProxy } from '../support/proxy.ts'
import { dumpTables } from './dump.ts'
import { openBackend } from './support.ts'

const NAMESPACE = 'scenario'
const TABLES = ['job', 'archive', 'attempt', 'key', 'counter', 'lane']
/** Reconnects and repeats at once: pauses are not what is tested here. */
const QUICK = {
  random: { next: () => 0.001, bytes: (count: number) => new Uint8Array(count) },
  limits: { lockMs: 25, repeatMs: 40 },
}
/** Hints are told when the time has come for it, which is no matter of the seed. */
const PARAMETERS = { connections: '1', notify: 'off', listen: 'off' }

const LOOK = `SELECT id, state, token, attempts, lease_expires_at::float8 AS expires_at, cancel_requested FROM holdfast.job
  UNION ALL SELECT id, state, token, attempts, NULL, false FROM holdfast.archive ORDER BY id`

const AT_WORK = `SELECT FROM pg_stat_activity
  WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND state <> 'idle'`

interface LookRow {
  readonly id: string
  readonly state: string
  readonly token: string | null
  readonly attempts: number
  readonly expires_at: number | null
  readonly cancel_requested: boolean
}

export class PostgresScenarioStore implements ScenarioStore {
  readonly clock: ServerClock
  /** A start takes more than a second. */
  readonly restartChance = 0.03
  private readonly server: PostgresServer
  private readonly proxy: FaultProxy
  private readonly backends: PostgresBackend[] = []
  private observer: Client | null = null
  private rival: Client | null = null
  private readonly met: string[] = []

  private constructor(clock: ServerClock, server: PostgresServer, proxy: FaultProxy) {
    this.clock = clock
    this.server = server
    this.proxy = proxy
  }

  static async start(): Promise<PostgresScenarioStore> {
    const clock = await ServerClock.make()
    // A power cut is not among the faults here.
    const server = await PostgresServer.start({ env: clock.env, settings: { fsync: 'off', autovacuum: 'off' } })
    return new PostgresScenarioStore(clock, server, await FaultProxy.start({ upstream: server.port }))
  }

  async stop(): Promise<void> {
    this.proxy.set('pass')
    await Promise.all(this.backends.map((backend) => backend.close()))
    await this.observer?.end()
    await this.rival?.end()
    await this.proxy.close()
    await this.server.stop()
    await this.clock.remove()
  }

  async begin(): Promise<void> {
    this.proxy.set('pass')
    if (this.backends.length === 0) return
    const client = await this.observing()
    await client.query(TABLES.map((table) => `DELETE FROM holdfast.${table}`).join('; '))
  }

  async open(count: number): Promise<readonly ScenarioBackend[]> {
    while (this.backends.length < count) {
      const { server, proxy } = this
      const port = this.backends.length === 0 ? proxy.port : server.port
      this.backends.push(await openBackend(server.urlOf({ port, parameters: PARAMETERS }), NAMESPACE, QUICK))
    }
    const clients = this.backends.slice(0, count)
    for (const each of clients) await reached(each)
    return clients.map(inOrder)
  }

  async arm(random: SeededRandom): Promise<void> {
    if (random.chance(0.05)) return this.lock()
    const place = {
      nth: random.pick([1, 1, 1, 2, 2, 3, 4, 5]),
      // When plans are made anew is up to the real time.
      counts: (request: Buffer) => isQuery(request) && !request.includes('DISCARD PLANS'),
    }
    severAt(this.proxy, place, random.chance(0.75) ? 'reply' : 'request', isAnswered)
  }

  async disarm(): Promise<void> {
    this.proxy.set('pass')
    const { rival } = this
    this.rival = null
    await rival?.query('ROLLBACK')
    await rival?.end()
    // What was cut in the middle holds its locks until its process has noticed.
    const client = await this.observing()
    await eventually(async () => (await client.query(AT_WORK)).rowCount === 0, 'the end of what was cut')
  }

  /** F35: somebody else has every row and every key, for longer than anybody waits. */
  private async lock(): Promise<void> {
    this.met.push('rows locked by a rival')
    this.rival = await this.server.connect()
    await this.rival.query('BEGIN; SELECT FROM holdfast.job FOR UPDATE; LOCK TABLE holdfast.key IN EXCLUSIVE MODE')
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

  async shake(random: SeededRandom): Promise<string> {
    const client = await this.observing()
    const [what, text] = random.pick([
      ['analysed', 'ANALYZE holdfast.job, holdfast.archive'],
      ['vacuumed', 'VACUUM holdfast.job, holdfast.archive, holdfast.counter'],
      ['reindexed', 'REINDEX TABLE holdfast.job'],
      ['plans invalidated', `ALTER TABLE holdfast.job SET (autovacuum_vacuum_threshold = ${random.integer(1, 9)}000)`],
    ] as const)
    await client.query(text)
    return what
  }

  async killConnections(): Promise<void> {
    const client = await this.observing()
    await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
    )
  }

  /** One of its processes, or all of them, or in order. */
  async restart(random: SeededRandom): Promise<void> {
    const how = random.pick(['backend', 'postmaster', 'order'] as const)
    this.met.push(`restart after the end of ${how}`)
    if (how === 'backend') await this.crash()
    else {
      if (how === 'postmaster') await this.server.kill()
      await this.server.restart()
    }
    this.observer = null
    await eventually(() => this.observing().catch(() => null), 'the observer')
  }

  /** All other connections end with it, a moment later. */
  private async crash(): Promise<void> {
    const [victim, observer] = [await this.server.connect(), await this.observing()]
    const { rows } = await victim.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const isOver = new Promise<void>((resolve) => observer.once('end', resolve))
    await this.server.killBackend(rows[0]?.pid ?? 0)
    await isOver
    await victim.end().catch(() => {})
  }

  async look(): Promise<Glimpse> {
    const client = await this.observing()
    const [{ rows }, policies] = [
      await client.query<LookRow>(LOOK),
      await client.query<{ lane: string }>('SELECT lane FROM holdfast.lane WHERE paused'),
    ]
    return {
      jobs: new Map(rows.map((row) => [row.id, seen(row)])),
      paused: new Set(policies.rows.map(({ lane }) => lane)),
    }
  }

  async recount(): Promise<readonly string[]> {
    return recount(await dumpTables(await this.observing()))
  }

  async end(): Promise<readonly string[]> {
    return this.met.splice(0)
  }

  private async observing(): Promise<Client> {
    this.observer ??= await this.server.connect()
    return this.observer
  }
}

/** Where the store promises no order, that of the rows on their pages would come through. */
const inOrder = (backend: PostgresBackend): ScenarioBackend => ({
  call: async (type, request) => {
    const reply = await backend.call(type, request)
    if ('expired' in reply) return { ...reply, expired: [...reply.expired].sort((a, b) => (a.id < b.id ? -1 : 1)) }
    if (!('grants' in reply)) return reply
    return { ...reply, grants: reply.grants.map((grant) => ({ ...grant, deadlined: [...grant.deadlined].sort() })) }
  },
})

const reached = (backend: PostgresBackend): Promise<unknown> =>
  eventually(() => backend.call('store.health', {}).catch(() => null), 'a connection')

const isNotDone = (error: unknown): boolean => isHoldfastError(error) && error.details.outcome === 'notDone'

function seen({ state, token, attempts, expires_at: expiresAt, cancel_requested: isCancelled }: LookRow): Seen {
  const letter = letterOf(state, isCancelled)
  return { state: letter, token: token ?? '', attempts, expiresAt }
}
