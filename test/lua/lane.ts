/** One lane on a private server, driven through the bare scripts, with a job in every state, and what it takes to damage it. */
import { Redis } from 'ioredis'
import { LaneKeys } from '#dist/src/backends/redis/key.js'
import { loadCatalog, type ScriptName } from '#dist/src/lua/catalog.js'
import { RedisServer } from '../support/redis-server.ts'

export type Argument = string | number | Buffer
/** Replies with texts as latin1, so that any bytes compare. */
export type Answer = string | number | null | readonly Answer[]

export const NAMESPACE = 'lua'
export const LANE = 'default'
const WORKER = 'w'

function decoded(reply: unknown): Answer {
  if (Buffer.isBuffer(reply)) return reply.toString('latin1')
  if (Array.isArray(reply)) return reply.map(decoded)
  return typeof reply === 'number' ? reply : null
}

export class Lane {
  readonly server: RedisServer
  readonly redis: Redis
  readonly scripts = loadCatalog()
  private readonly keys = new LaneKeys(NAMESPACE, LANE)

  private constructor(server: RedisServer) {
    this.server = server
    this.redis = new Redis(server.port, '127.0.0.1', { retryStrategy: null, protocol: 2 })
  }

  static async open(env: Readonly<Record<string, string>> = {}): Promise<Lane> {
    return new Lane(await RedisServer.start({ env, args: ['--enable-debug-command', 'local'] }))
  }

  async close(): Promise<void> {
    this.redis.disconnect()
    await this.server.stop()
  }

  key(role: string): string {
    return this.keys.key(role)
  }

  keysOf(name: ScriptName): readonly string[] {
    if (name === 'lane_probe')
      return ['lanes', 'meta', 'fifo', 'ready', 'scheduled', 'retrying', 'leases', 'deadlines', 'parked'].map((role) =>
        this.key(role),
      )
    return this.keys.of(this.scripts[name])
  }

  async run(name: ScriptName, args: readonly Argument[], keys = this.keysOf(name)): Promise<Answer> {
    const { source, sha1 } = this.scripts[name]
    const rest = [String(keys.length), ...keys, ...args]
    try {
      return decoded(await this.redis.callBuffer('EVALSHA', sha1, ...rest))
    } catch (error) {
      if (!String(error).includes('NOSCRIPT')) throw error
      return decoded(await this.redis.callBuffer('EVAL', source, ...rest))
    }
  }

  /** Of all that the server holds. */
  async digest(): Promise<string> {
    return String(await this.redis.call('DEBUG', 'DIGEST'))
  }

  enqueue(...jobs: readonly (readonly [id: string, spec: string])[]): Promise<Answer> {
    return this.run(
      'job_enqueue',
      jobs.flatMap(([id, spec]) => [id, spec, `type\n\nj{"n":1}`]),
    )
  }

  /** Claims one job by one; the tokens by id. */
  async claim(limit: number): Promise<ReadonlyMap<string, string>> {
    const answer = (await this.run('job_claim', [limit, WORKER, 'nonce', 60_000, 0])) as readonly Answer[]
    const ids = answer[4] as readonly string[]
    return new Map(await Promise.all(ids.map(async (id) => [id, await this.token(id)] as const)))
  }

  async token(id: string): Promise<string> {
    const record = await this.redis.hget(this.key('run'), id)
    return record?.slice(1).split('|')[0] ?? ''
  }

  turn(settlements: { forgotten?: Argument[]; kept?: Argument[]; others?: Argument[][] }, limit = -1): Promise<Answer> {
    const { forgotten = [], kept = [], others = [] } = settlements
    const counts = [0, forgotten.length / 2, kept.length > 0 ? 1 : 0, others.length]
    return this.run('job_turn', [
      ...[limit, WORKER, 'n2', 60_000, 0],
      ...counts,
      ...forgotten,
      ...kept,
      ...others.flat(),
    ])
  }

  /** A job in every state and place; the tokens of those that run. */
  async fill(): Promise<ReadonlyMap<string, string>> {
    await this.redis.flushall()
    const now = Date.now()
    await this.enqueue(...['r1', 'r2', 'r3', 'r4', 'x1', 'c1', 'k1', 'd1', 'w1'].map((id) => [id, ''] as const))
    const tokens = await this.claim(9)
    const of = (id: string): string => tokens.get(id) ?? ''
    await this.run('job_cancel', [0, '', '{}', 'x1'])
    await this.turn({
      kept: ['3600000', '60000', 1, 'c1', of('c1'), 3, '=j"out"'],
      others: [
        other('cancel', 'k1', of('k1')),
        other('dead', 'd1', of('d1'), { extra: 'PERMANENT_ERROR' }),
        other('retry', 'w1', of('w1'), { extra: 60_000 }),
      ],
    })
    await this.run('job_note', [1, 'r1', of('r1'), 'j1', 9, 1, `${of('r1').split(':')[0]} 1 {}`])
    await this.enqueue(
      ['f1', ''],
      ['f2', ''],
      ['p1', '5    '],
      ['s1', `0 ${now + 60_000}   `],
      ['dl', `0   ${now - 1000} `],
    )
    await this.redis.mset(this.key('keyspace'), '1', this.key('lock'), 'token')
    await this.redis.hset(this.key('workers'), 'gone', '{}')
    await this.redis.zadd(this.key('beats'), now, 'gone')
    await this.enqueue(['i1', '0    my key'], ['past', `-3 ${now - 5000}   `])
    return tokens
  }
}

/** The ten arguments of one settlement in the last section. */
export function other(
  kind: string,
  id: string,
  token: string,
  { extra = '', crashes = 0, keepMs = '' }: { extra?: Argument; crashes?: Argument; keepMs?: Argument } = {},
): Argument[] {
  const [outcome, terms] =
    kind === 'retry' ? ['failed', '{"maxAttempts":3}'] : [kind === 'cancel' ? 'cancelled' : 'failed', '']
  return [kind, id, token, keepMs, 5, outcome, crashes, '{"code":"X"}', terms, extra]
}

/** A call of each script that touches as much of a filled lane as it can. */
export function callOf(name: ScriptName, tokens: ReadonlyMap<string, string>): readonly Argument[] {
  const of = (id: string): string => tokens.get(id) ?? ''
  const everyId = ['f1', 'p1', 's1', 'dl', 'i1', 'past', 'w1', 'r1', 'r2', 'r3', 'r4', 'x1', 'c1', 'k1', 'd1', 'none']
  const settlements = [
    other('retry', 'r3', of('r3'), { extra: 1000 }),
    other('dead', 'r4', of('r4'), { extra: 'X' }),
    other('release', 'x1', of('x1')),
  ]
  const calls: Record<ScriptName, readonly Argument[]> = {
    job_add: ['n9', 't\n\nu'],
    job_cancel: [1, '', '{}', ...everyId],
    job_claim: [5, WORKER, 'n3', 60_000, 0],
    job_enqueue: [
      'n1',
      '',
      't\n\nu',
      'n2',
      `0 ${Date.now() + 9000}  ${Date.now() + 99_000} k2`,
      't\n\nu',
      'f1',
      '',
      'x',
    ],
    job_list: [Number.MAX_SAFE_INTEGER, 50, 'falckd'],
    job_logs: everyId,
    job_note: [
      ...[3, 'r1', of('r1'), 'j2', 2, 2, '7 1 {}', '7 2 {}'],
      ...['none', '', 'j', 0, 0],
      ...['f1', '', 'j', 9, 1, '7 1 {}'],
    ],
    job_promote: everyId,
    job_read: [1, ...everyId],
    job_states: everyId,
    job_turn: [
      ...[5, WORKER, 'n3', 60_000, 0],
      ...[1, 1, 1, settlements.length],
      ...['r2', of('r2'), '', 9, 1, '7 1 {}'],
      ...['r1', of('r1')],
      ...['3600000', '60000', 1, 'r2', of('r2'), 3, '=j2'],
      ...settlements.flat(),
    ],
    keyspace_step: ['token', '1', '2'],
    lane_bury: [100, '', '{}'],
    lane_drop: [],
    lane_forget: [LANE, 0],
    lane_maintain: [100],
    lane_policy: [1, 2, '10 1000 10', '', '3 1000'],
    lane_probe: [],
    lane_register: [LANE],
    lane_stats: [],
    lane_trim: [0, '', 0, 100],
    lane_usage: [100],
    lane_wait: [1000],
    lease_find: [`:${WORKER}:nonce.`, 0, 100],
    lease_reap: [100, settlements.length, ...settlements.flat()],
    lease_renew: [60_000, 'r1', of('r1'), 'x1', of('x1'), 'f1', ''],
    rights_check: ['get', 'zadd', 'flushall'],
    wake_push: [1],
    worker_beat: [60_000, 'w1', '{}', 'w2', '{}'],
    worker_gone: ['gone', 'w2'],
    worker_list: [60_000, 10],
  }
  return calls[name]
}
