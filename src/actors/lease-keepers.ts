/**
 * The leases of one worker, by their duration: a LeaseKeeper for what has the worker's own, and one more for each other that the types of its
 * handlers say. A claim grants all with the worker's; as soon as all of a grant are held, each type's own is asked for, one call a duration.
 * Until that has worked a lease has what the claim said, so nothing is kept at a slower pace than the worker's own.
 * Where no type says anything the worker has the one keeper and nothing in between.
 */
import type { JobActor } from './job-actor.ts'
import { LeaseKeeper, type LeaseKeeperOptions } from './lease-keeper.ts'

/** What the parts of a worker ask of whoever keeps its leases. */
export type Keeper = Pick<
  LeaseKeeper,
  'hold' | 'drop' | 'limit' | 'doubt' | 'afterGap' | 'renewNow' | 'actors' | 'hasStandIn' | 'blocks' | 'longestBlockMs'
>

export interface KeepersOptions extends Omit<LeaseKeeperOptions, 'terms'> {
  readonly leaseMs: number
  readonly maxBlockedMs: number
  /** By type, where it is not `leaseMs`. */
  readonly typeLeases: ReadonlyMap<string, number>
}

/** `keeper` is whom to ask; `keepers` are to be started, and stopped, beside it. */
export function makeKeepers({ leaseMs, maxBlockedMs, typeLeases, ...shared }: KeepersOptions): {
  readonly keeper: Keeper
  readonly keepers: readonly LeaseKeeper[]
} {
  const ofWorker = new LeaseKeeper({ ...shared, terms: { leaseMs, paceMs: leaseMs, maxBlockedMs } })
  if (typeLeases.size === 0) return { keeper: ofWorker, keepers: [ofWorker] }
  const byDuration = new Map<number, LeaseKeeper>()
  const byType = new Map<string, LeaseKeeper>()
  for (const [type, ownMs] of typeLeases) {
    const terms = { leaseMs: ownMs, paceMs: Math.min(ownMs, leaseMs), maxBlockedMs }
    // They all stand on one main loop: its keeper tells of it once.
    const keeper = byDuration.get(ownMs) ?? new LeaseKeeper({ ...shared, terms, onBlocked: () => undefined })
    byDuration.set(ownMs, keeper)
    byType.set(type, keeper)
  }
  return { keeper: new TypeKeepers(ofWorker, byType), keepers: [ofWorker, ...byDuration.values()] }
}

class TypeKeepers implements Keeper {
  private readonly ofWorker: LeaseKeeper
  private readonly byType: ReadonlyMap<string, LeaseKeeper>
  private readonly all: readonly LeaseKeeper[]
  /** What was granted since the last `doubt`, by the keeper that has to ask for its duration. */
  private readonly granted: ReadonlyMap<LeaseKeeper, JobActor[]>

  constructor(ofWorker: LeaseKeeper, byType: ReadonlyMap<string, LeaseKeeper>) {
    const others = [...new Set(byType.values())]
    this.ofWorker = ofWorker
    this.byType = byType
    this.all = [ofWorker, ...others]
    this.granted = new Map(others.map((keeper) => [keeper, []]))
  }

  hold(actor: JobActor): void {
    const keeper = this.of(actor)
    keeper.hold(actor)
    this.granted.get(keeper)?.push(actor)
  }

  drop(actor: JobActor): void {
    this.of(actor).drop(actor)
  }

  limit(actor: JobActor, untilMs: number | null): void {
    this.of(actor).limit(actor, untilMs)
  }

  /** All of a grant are held, and none has been started. */
  doubt(claimedAt: number): void {
    for (const [keeper, actors] of this.granted) keeper.adopt(actors.splice(0))
    for (const keeper of this.all) keeper.doubt(claimedAt)
  }

  afterGap(now?: number): Promise<void> | null {
    const renewals = this.all.map((keeper) => keeper.afterGap(now)).filter((renewal) => renewal !== null)
    return renewals.length === 0 ? null : Promise.all(renewals).then(() => undefined)
  }

  async renewNow(): Promise<void> {
    await Promise.all(this.all.map((keeper) => keeper.renewNow()))
  }

  get actors(): readonly JobActor[] {
    return this.all.flatMap(({ actors }) => actors)
  }

  get hasStandIn(): boolean {
    return this.all.every(({ hasStandIn }) => hasStandIn)
  }

  get blocks(): number {
    return this.ofWorker.blocks
  }

  get longestBlockMs(): number {
    return this.ofWorker.longestBlockMs
  }

  private of({ job }: JobActor): LeaseKeeper {
    return this.byType.get(job.type) ?? this.ofWorker
  }
}
