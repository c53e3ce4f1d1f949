/**
 * A store that many simulated processes share, and the bad network between it and each of them.
 * The store executes messages one at a time and writes down what each did: this order is the truth that the checkers judge.
 * The network delays, loses, cuts, repeats and reorders as its faults say, all by one seeded source of chance.
 */
import type { Backend, HintListener, HintSubscription, LeaseKeeping } from '#dist/src/backends/backend.js'
import type { LeaseTerms } from '#dist/src/backends/lease-policy.js'
import { LeaseStandIn } from '#dist/src/backends/lease-stand-in.js'
import { everyHint, neverChanges } from '#dist/src/backends/local.js'
import { MEMORY_CAPABILITIES } from '#dist/src/backends/memory/backend.js'
import { MemoryStore } from '#dist/src/backends/memory/store.js'
import type { MessageType, Reply, Request } from '#dist/src/backends/protocol/index.js'
import { withDeadline } from '#dist/src/clock.js'
import { type ErrorCode, HoldfastError } from '#dist/src/errors.js'
import { type Fact, factsOf } from './history.ts'
import type { SeededRandom } from './random.ts'
import type { VirtualProcess, World } from './virtual-time.ts'

/** Chances are from 0 to 1, times in milliseconds. */
export interface Faults {
  /** Longest ordinary time on the way, each way. */
  readonly delayMs: number
  /** Chance that a request takes up to `lateMs` instead. */
  readonly late: number
  readonly lateMs: number
  /** The request never arrives, and no answer ever comes. */
  readonly loseRequest: number
  /** The store refuses before doing anything and says so. */
  readonly refuse: number
  /** The request is executed; the connection is cut before the answer, and the caller hears that. */
  readonly cutReply: number
  /** The request is executed; the caller hears nothing. */
  readonly loseReply: number
  /** The request is executed, answered, and executed again up to `lateMs` later. */
  readonly duplicate: number
  readonly dropHints: number
}

export const NO_FAULTS: Faults = {
  delayMs: 1,
  late: 0,
  lateMs: 0,
  loseRequest: 0,
  refuse: 0,
  cutReply: 0,
  loseReply: 0,
  duplicate: 0,
  dropHints: 0,
}

/** How often each rare thing happened, so that a suite can demand that it did. */
export type Counts = Map<string, number>

export class SimulatedStore {
  readonly world: World
  readonly clock: VirtualProcess
  readonly facts: Fact[] = []
  readonly counts: Counts = new Map()
  /** Throws out of the store: it was asked for, or found itself in, something impossible. */
  readonly failures: unknown[] = []
  isDown = false
  private readonly store: MemoryStore
  private readonly listeners = new Set<HintListener>()

  constructor(world: World) {
    this.world = world
    this.clock = world.process('store')
    this.store = new MemoryStore(this.clock)
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  execute<T extends MessageType>(type: T, request: Request<T>, from: { origin: string; copy: number }): Reply<T> {
    const storeNow = this.clock.now()
    if (type === 'job.turn') this.noteMerge(request as Request<'job.turn'>)
    try {
      const reply = (this.store.handlers[type] as (request: Request<T>) => Reply<T>)(request)
      this.facts.push(...factsOf({ at: this.world.time, ...from, type, request, reply }, storeNow))
      if (type === 'job.enqueue' || type === 'job.promote' || type === 'queue.policy') {
        for (const listener of this.listeners) listener(null)
      }
      return reply
    } catch (error) {
      this.failures.push(error)
      throw error
    }
  }

  private noteMerge({ claims, settlements }: Request<'job.turn'>): void {
    if (claims.length > 1) this.count('merged claims')
    const owners = new Set(settlements.map(({ token }) => token.split(':')[1]))
    if (owners.size > 1) this.count('merged settlements')
  }

  jumpClock(byMs: number): void {
    this.facts.push({ kind: 'jump', at: this.world.time, storeNow: this.clock.now(), job: '' })
    this.clock.jumpWallClock(byMs)
  }

  /** Reads past the network, for the end of a run. */
  read<T extends MessageType>(type: T, request: Request<T>): Reply<T> {
    return (this.store.handlers[type] as (request: Request<T>) => Reply<T>)(request)
  }

  listen(listener: HintListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }
}

function failure(code: ErrorCode, outcome: 'notDone' | 'unknown'): HoldfastError {
  return new HoldfastError(code, `simulated: ${code}`, { details: { outcome } })
}

/** How long the thread waits for an answer that may never come. */
const THREAD_CALL_MS = 200

type Fate = 'answered' | 'refused' | 'lost' | 'cut' | 'unheard' | 'repeated'

interface FaultyOptions {
  readonly faults: Faults
  readonly random: SeededRandom
  readonly overlapsTurns: boolean
  /** Where leases are renewed while the process is blocked: a thread of it, with a way to the store of its own. */
  readonly thread?: VirtualProcess
}

/** The store as one process reaches it. `faults` may be changed at any time; it counts for calls made from then on. */
export class FaultyBackend implements Backend {
  readonly name = 'simulated'
  readonly capabilities = MEMORY_CAPABILITIES
  readonly transactional = null
  readonly limits = { enqueueJobs: 10, turnSettlements: 10, claimJobs: 10 }
  readonly overlapsTurns: boolean
  readonly onChange = neverChanges
  private readonly thread: { readonly standIn: LeaseStandIn; readonly way: FaultyBackend } | null
  private boards = 0
  private ownFaults: Faults
  private readonly process: VirtualProcess
  private readonly store: SimulatedStore
  private readonly random: SeededRandom

  constructor(process: VirtualProcess, store: SimulatedStore, options: FaultyOptions) {
    this.process = process
    this.store = store
    this.ownFaults = options.faults
    this.random = options.random
    this.overlapsTurns = options.overlapsTurns
    this.thread = options.thread === undefined ? null : this.startThread(options.thread, options)
  }

  private startThread(thread: VirtualProcess, { faults, overlapsTurns }: FaultyOptions): FaultyBackend['thread'] {
    const way = new FaultyBackend(thread, this.store, { faults, random: this.random.fork(), overlapsTurns })
    const standIn = new LeaseStandIn({
      clock: thread,
      timers: thread,
      renew: (request) => {
        this.store.count('stand-in')
        return withDeadline(way.call('lease.renew', request), THREAD_CALL_MS, thread, () =>
          failure('STORE_TIMEOUT', 'unknown'),
        )
      },
    })
    return { standIn, way }
  }

  get faults(): Faults {
    return this.ownFaults
  }

  set faults(faults: Faults) {
    this.ownFaults = faults
    if (this.thread !== null) this.thread.way.faults = faults
  }

  keepLeases(terms: LeaseTerms): LeaseKeeping | null {
    if (this.thread === null) return null
    const { standIn } = this.thread
    this.boards += 1
    const id = this.boards
    standIn.add(id, terms, [])
    return { isReady: true, addPage: (memory) => standIn.addPage(id, memory), stop: () => standIn.remove(id) }
  }

  call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>> {
    const fate = this.store.isDown ? 'refused' : this.chooseFate()
    if (fate !== 'answered') this.store.count(`${fate} ${type}`)
    return new Promise((resolve, reject) => {
      if (fate === 'lost') return
      if (fate === 'refused') {
        const code = this.random.pick(['STORE_UNAVAILABLE', 'STORE_BUSY', 'STORE_FULL'] as const)
        this.process.set(() => reject(failure(code, 'notDone')), this.travel())
        return
      }
      this.store.world.after(this.requestDelay(), () => {
        this.arrive(type, request, { fate, resolve, reject })
      })
    })
  }

  private arrive<T extends MessageType>(
    type: T,
    request: Request<T>,
    { fate, resolve, reject }: { fate: Fate; resolve: (reply: Reply<T>) => void; reject: (error: unknown) => void },
  ): void {
    const origin = this.process.name
    let answer: () => void
    try {
      const reply = this.store.execute(type, request, { origin, copy: 0 })
      answer = () => resolve(reply)
    } catch (error) {
      answer = () => reject(error)
    }
    if (fate === 'repeated') {
      this.store.world.after(this.random.next() * this.faults.lateMs, () => {
        this.store.execute(type, request, { origin, copy: 1 })
      })
    }
    if (fate === 'unheard') return
    if (fate === 'cut') answer = () => reject(failure('STORE_UNAVAILABLE', 'unknown'))
    this.process.set(answer, this.travel())
  }

  private chooseFate(): Fate {
    const { loseRequest, refuse, cutReply, loseReply, duplicate } = this.faults
    const chances: readonly (readonly [Fate, number])[] = [
      ['lost', loseRequest],
      ['refused', refuse],
      ['cut', cutReply],
      ['unheard', loseReply],
      ['repeated', duplicate],
    ]
    let point = this.random.next()
    for (const [fate, chance] of chances) {
      point -= chance
      if (point < 0) return fate
    }
    return 'answered'
  }

  private travel(): number {
    return this.random.next() * this.faults.delayMs
  }

  private requestDelay(): number {
    if (!this.random.chance(this.faults.late)) return this.travel()
    this.store.count('late request')
    return this.random.next() * this.faults.lateMs
  }

  subscribe(_lanes: readonly string[], listener: HintListener): HintSubscription {
    const stop = this.store.listen((lane) => {
      if (!this.random.chance(this.faults.dropHints)) this.process.set(() => listener(lane), this.travel())
    })
    return everyHint(stop)
  }

  /** Hints of ends all get lost here: who waits polls. */
  awaitEnds(): () => void {
    return () => {}
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
