/**
 * The PostgreSQL store behind the backend interface: opens the link, brings the tables up to date, runs each message as a plan, and
 * tells idle workers of new jobs. Nothing here needs a restart after an outage.
 */
import { systemTimers } from '../../clock.ts'
import { HoldfastError, isHoldfastError } from '../../errors.ts'
import type {
  Backend,
  BackendOptions,
  CancelListener,
  HintListener,
  HintSubscription,
  LeaseKeeping,
} from '../backend.ts'
import type { Capabilities } from '../capabilities.ts'
import { lanesEnded } from '../end-listeners.ts'
import { LimitedLanes } from '../freed.ts'
import type { LeaseTerms } from '../lease-policy.ts'
import { type LeaseThread, openLeaseThread } from '../lease-thread.ts'
import type { MessageType, Reply, Request } from '../protocol/index.ts'
import { type PlannedType, plansOf } from '../sql/handlers.ts'
import { hintsOf } from '../sql/hint.ts'
import { change, type Plan, read } from '../sql/plan.ts'
import { channelOf } from './channel.ts'
import { fence, turn } from './claim.ts'
import { openedInTime, openLink } from './connect.ts'
import type { Ends } from './ends.ts'
import { runEnqueue } from './enqueue.ts'
import type { PostgresLink } from './link.ts'
import { type PostgresLocation, serverOf } from './location.ts'
import { checkLedger, migrate } from './migrate.ts'
import { openWake } from './open-wake.ts'
import { placeOf } from './renewer.ts'
import { missingRights } from './rights.ts'
import { Runner } from './runner.ts'
import { durabilityOf } from './server-facts.ts'
import { Statements } from './statement.ts'
import { Sweep } from './sweep.ts'
import { markOf, PostgresTransactional } from './transactional.ts'
import { Upkeep } from './upkeep.ts'
import type { Wake } from './wake.ts'

/** What every PostgreSQL offers; how durable it is depends on the server. */
export const POSTGRES_CAPABILITIES: Capabilities = Object.freeze({
  durableJobs: true,
  durability: 'power',
  sameHostProcesses: true,
  distributedWorkers: true,
  transactionalEnqueue: true,
  notifications: 'network',
  ordering: Object.freeze(['fifo'] as const),
  retention: 'stored',
  leaseKeeper: 'thread',
  schedules: false,
  continuations: false,
  partitions: false,
  streams: false,
  rateLimits: true,
})

export interface PostgresBackendOptions extends BackendOptions {
  readonly location: PostgresLocation
}

interface Parts {
  readonly link: PostgresLink
  readonly runner: Runner
  readonly schema: string
  readonly schemaVersion: number
  readonly wake: Wake
  readonly ends: Ends
  readonly transactional: PostgresTransactional
  readonly upkeep: Upkeep
  readonly sweep: Sweep
  readonly options: PostgresBackendOptions
  readonly leases: LeaseThread | null
}

export class PostgresBackend implements Backend {
  readonly name = 'postgres'
  readonly capabilities: Capabilities
  readonly transactional: PostgresTransactional
  readonly limits = { enqueueJobs: 1_000, turnSettlements: 1_000, claimJobs: 1_000 }
  readonly overlapsTurns = false
  private readonly parts: Parts
  private readonly plans = plansOf({ turn, fence })
  private readonly limited = new LimitedLanes()
  private isClosed = false
  /** Why nothing is done any more. */
  private refusal: HoldfastError | null = null

  private constructor(parts: Parts) {
    this.parts = parts
    this.transactional = parts.transactional
    this.capabilities = Object.freeze({
      ...POSTGRES_CAPABILITIES,
      durability: durabilityOf(parts.link.facts),
      leaseKeeper: parts.leases === null ? 'main' : 'thread',
    })
  }

  /** Rejects with STORE_UNAVAILABLE, STORE_DENIED, UNSUPPORTED or STORE_SCHEMA_TOO_NEW, naming the server, never its password. */
  static open(options: PostgresBackendOptions): Promise<PostgresBackend> {
    return openedInTime(options, (rest) => PostgresBackend.openOnce(rest))
  }

  private static async openOnce(options: PostgresBackendOptions): Promise<PostgresBackend> {
    const { location, namespace } = options
    const link = await openLink(location, options)
    try {
      const { version } = await migrate(link, options)
      const statements = new Statements(location.schema)
      const ns = await namespaceOf(new Runner(link, statements, NO_NAMESPACE), namespace)
      const runner = new Runner(link, statements, ns)
      const mark = await markOf(link, location.schema, ns)
      const server = location.kind === 'url' ? serverOf(location.target) : 'the server of the pool'
      const transactional = new PostgresTransactional({
        statements,
        mark,
        server,
        channel: location.isNotifying ? channelOf(location.schema, namespace) : null,
      })
      const { clock, warn } = options
      const upkeep = new Upkeep({ link, schema: location.schema, clock, warn })
      if (location.isMigrating) await upkeep.prepare()
      const { wake, ends } = await openWake(link, options)
      const { schema } = location
      const sweep = new Sweep(link, schema, options.clock)
      const place = placeOf(location, { namespace, ns, isPooled: link.facts.isPooled })
      const leases = openLeaseThread(place, { ...options, timers: systemTimers })
      const rest = { wake, ends, transactional, upkeep, sweep, options, leases }
      return new PostgresBackend({ link, runner, schema, schemaVersion: version, ...rest })
    } catch (error) {
      await link.close()
      throw error
    }
  }

  async call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>> {
    if (this.isClosed) throw new HoldfastError('CLOSED', 'the store was closed', { details: { outcome: 'refused' } })
    if (this.refusal !== null) throw this.refusal
    if (type === 'store.health') return (await this.health(request as Request<'store.health'>)) as Reply<T>
    if (type === 'store.maintain') return (await this.maintain(request as Request<'store.maintain'>)) as Reply<T>
    if (type !== 'job.turn') return this.answer(type, request)
    const { sweep, options } = this.parts
    const { clock } = options
    const startedAt = clock.monotonic()
    const reply = await this.answer(type, request)
    sweep.claimTook(clock.monotonic() - startedAt)
    return reply
  }

  private async answer<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>> {
    const reply = await this.run(type as PlannedType, request)
    const { wake, ends } = this.parts
    if (ends.isAwaited) ends.ended(lanesEnded(type, request))
    for (const lane of hintsOf(type, request, reply as Reply<T>)) wake.ready(lane)
    for (const lane of this.limited.freedBy(type, request, reply as Reply<T>)) wake.ready(lane)
    for (const lane of lanesLeft(request, reply as Reply<T>)) wake.left(lane)
    if (type === 'job.cancel' && stopsOwners(request as Request<'job.cancel'>, reply as Reply<'job.cancel'>))
      wake.cancelled()
    return reply as Reply<T>
  }

  private run(type: PlannedType, request: unknown): Promise<unknown> {
    if (type === 'job.enqueue') return runEnqueue(this.parts.runner, request as Request<'job.enqueue'>)
    const plan = this.plans[type] as (request: unknown) => Plan<unknown>
    return this.parts.runner.run(() => plan(request))
  }

  private async maintain(request: Request<'store.maintain'>): Promise<Reply<'store.maintain'>> {
    await this.followLedger()
    const reply = await this.answer('store.maintain', request)
    // Once a maintenance, not once a batch of it.
    if (reply.more) return reply
    return { ...reply, pruned: reply.pruned + (await this.parts.upkeep.run()) }
  }

  /** A later release may have migrated the tables meanwhile. */
  private async followLedger(): Promise<void> {
    try {
      await checkLedger(this.parts.link, this.parts.options)
    } catch (error) {
      if (isHoldfastError(error) && error.code === 'STORE_SCHEMA_TOO_NEW') this.refusal = error
      throw error
    }
  }

  private async health({ rights = false }: Request<'store.health'>): Promise<Reply<'store.health'>> {
    const { link, schemaVersion } = this.parts
    const { rows } = await link.query(HEALTH, [])
    const [row] = rows as readonly { readonly now: number }[]
    const { version, isPooled, repeats } = link.facts
    const missing = rights ? { missingRights: await missingRights(link, this.parts.schema) } : {}
    return { nowMs: row?.now ?? 0, details: { version, schemaVersion, isPooled, repeats, ...missing } }
  }

  subscribe(lanes: readonly string[], listener: HintListener, onCancel?: CancelListener): HintSubscription {
    return this.parts.wake.subscribe(lanes, listener, onCancel)
  }

  awaitEnds(lane: string, listener: () => void): () => void {
    return this.parts.ends.add(lane, listener)
  }

  onChange(listener: () => Promise<void>): () => void {
    return this.parts.link.onChange(listener)
  }

  keepLeases(terms: LeaseTerms): LeaseKeeping | null {
    return this.parts.leases?.keep(terms) ?? null
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.parts.ends.close()
    await Promise.all([this.parts.leases?.close(), this.parts.wake.close()])
    await this.parts.link.close()
  }
}

/** Whether somebody who runs one of the jobs has to hear of it. */
function stopsOwners({ force }: Request<'job.cancel'>, { outcomes }: Reply<'job.cancel'>): boolean {
  return outcomes.some((outcome) => outcome === 'requested' || (force && outcome === 'cancelled'))
}

/** The lanes of claims that left work behind. */
function lanesLeft(request: object, reply: object): readonly string[] {
  if (!('claims' in request && 'grants' in reply)) return []
  const { claims } = request as Request<'job.turn'>
  const { grants } = reply as Reply<'job.turn'>
  return claims.flatMap(({ lanes }, index) => (grants[index]?.more === true ? lanes : []))
}

const HEALTH = {
  name: 'health',
  text: 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
}

const NO_NAMESPACE = -1

async function namespaceOf(runner: Runner, name: string): Promise<number> {
  const find = async (): Promise<number | undefined> =>
    (await runner.run(() => read<{ ns: number }>('namespace_find', [{ name }])))[0]?.ns
  const known = await find()
  if (known !== undefined) return known
  await runner.run(() => change('namespace_add', [{ name }]))
  const made = await find()
  if (made === undefined) throw new HoldfastError('INTERNAL', `the namespace ${name} was not kept`)
  return made
}
