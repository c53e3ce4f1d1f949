/** The Redis store as the table of messages: each is one or a few atomic scripts, in the slot of its lane. */
import type { Clock } from '../../clock.ts'
import type { BackendHandlers } from '../protocol/index.ts'
import { ahead } from './ahead.ts'
import { cancel, health, maintain, promote } from './control.ts'
import { enqueue } from './enqueue.ts'
import type { LaneListener } from './lane-listener.ts'
import { LaneRegistry } from './lane-registry.ts'
import { reap, renew } from './lease.ts'
import { listJobs } from './list.ts'
import { logs, note, states } from './note.ts'
import { policy } from './policy.ts'
import { readJobs, readStats } from './read.ts'
import type { RedisSession } from './session.ts'
import { Turn, type TurnListener } from './turn.ts'
import { beat, listWorkers } from './worker.ts'

export interface RedisStoreOptions {
  readonly clock: Clock
  readonly lanes: LaneListener
  /** Told of lanes in which somebody waits for ends, when there are some. */
  readonly onEnded: (lane: string) => void
}

export class RedisStore {
  readonly session: RedisSession
  readonly registry: LaneRegistry
  private readonly lanes: LaneListener
  private readonly turns: TurnListener

  constructor(session: RedisSession, { clock, lanes, onEnded }: RedisStoreOptions) {
    this.session = session
    this.registry = new LaneRegistry(session, clock)
    this.lanes = lanes
    this.turns = { left: (lane, isClaimed) => lanes.left(lane, isClaimed), ended: onEnded }
  }

  private readonly onReady = (lane: string): void => this.lanes.ready(lane)

  private readonly statesOf = async (ids: readonly string[]) => (await states(this.session, { ids })).states

  readonly handlers = {
    'job.enqueue': (request) =>
      enqueue({ session: this.session, registry: this.registry, statesOf: this.statesOf, lanes: this.lanes }, request),
    'job.turn': async (request) => {
      // After a change of server what is held is renewed before anything is claimed.
      if (request.claims.length > 0) await this.session.servers.settled()
      return new Turn(this.session, request, this.turns).take()
    },
    'lease.renew': (request) => renew(this.session, request),
    'lease.reap': (request) => reap(this.context, request),
    'job.note': (request) => note(this.session, request),
    'job.logs': (request) => logs(this.session, request),
    'job.states': (request) => states(this.session, request),
    'job.cancel': (request) => cancel(this.session, request, this.onReady),
    'job.promote': (request) => promote(this.session, request, this.onReady),
    'job.get': async ({ ids }) => ({
      jobs: (await readJobs(this.session, ids, true)).map((view) => view?.job ?? null),
    }),
    'job.ahead': (request) => ahead(this.session, request),
    'job.list': async (request) => {
      const lanes = request.lane === null ? await this.registry.list() : [request.lane]
      return listJobs(this.session, request, lanes)
    },
    'job.history': async ({ ids }) => ({
      attempts: (await readJobs(this.session, ids, false)).map((view) => view?.attempts ?? []),
    }),
    'queue.stats': async ({ lanes }) => readStats(this.session, lanes ?? (await this.registry.list())),
    'queue.policy': (request) => policy(this.context, request),
    'store.maintain': (request) => maintain(this.context, request),
    'worker.beat': (request) => beat(this.session, request),
    'worker.list': (request) => listWorkers(this.session, request),
    'store.health': (request) => health(this.session, request),
  } satisfies BackendHandlers

  private get context() {
    return { session: this.session, registry: this.registry, onReady: this.onReady }
  }
}
