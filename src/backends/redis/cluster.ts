/**
 * A Redis Cluster: each call goes to the node that owns its key's slot. A node that refuses with MOVED, ASK, TRYAGAIN or
 * CLUSTERDOWN has done nothing, so the call goes on elsewhere or later, within its one deadline; any other failure is told.
 */
import { delay, withDeadline } from '../../clock.ts'
import { HoldfastError } from '../../errors.ts'
import type { LuaScript } from '../../lua/script.ts'
import { type ChangeListener, Changes } from '../changes.ts'
import { ClusterNodes } from './cluster-nodes.ts'
import { notConnected, replyWordOf } from './errors.ts'
import type { Link } from './link.ts'
import type { RedisLocation } from './location.ts'
import { runScript } from './script-call.ts'
import { type ServerReport, weakest } from './server-facts.ts'
import type { RedisArgument, RedisReply, RedisServers, ServerFacts } from './servers.ts'
import { slotOf } from './slot-map.ts'
import { type OnMessage, Subscriber } from './subscriber.ts'
import { type Popped, Waiter } from './waiter.ts'
import { backOffMs, type Target, type Wiring } from './wiring.ts'

const REDIRECTS_MAX = 5
/** With less time left a call is given up rather than sent: its deadline would drop a connection that others use. */
const SEND_TIME_MIN_MS = 100
const TRY_AGAIN_MS = 50

interface Sending {
  readonly isAsking: boolean
  readonly timeoutMs: number
}

type Work = (link: Link, sending: Sending) => Promise<RedisReply>

/** Where a call goes next. */
interface Step {
  readonly address: string | undefined
  readonly isAsking: boolean
  readonly redirects: number
}

export class Cluster implements RedisServers {
  private readonly nodes: ClusterNodes
  private readonly waiter: Waiter
  private readonly subscriber: Subscriber
  private readonly changes: Changes
  private readonly wiring: Wiring
  private readonly waitReplicas: number
  private failedConnects = 0

  constructor(location: RedisLocation, wiring: Wiring) {
    this.wiring = wiring
    this.changes = new Changes(wiring.timers)
    this.nodes = new ClusterNodes(location, wiring, this.changes)
    this.waiter = new Waiter(
      (list) => this.ownerOf(list),
      wiring,
      (list, error) => this.learn(slotOf(list), error),
    )
    this.subscriber = new Subscriber((channel) => this.ownerOf(channel), wiring)
    this.waitReplicas = location.waitReplicas
  }

  /** Settles with the next try to find the nodes and connect to them. */
  async connect(): Promise<readonly ServerReport[]> {
    try {
      return await this.nodes.connect()
    } catch (error) {
      await delay(backOffMs(this.failedConnects, this.wiring.random), this.wiring.timers)
      this.failedConnects += 1
      throw error
    }
  }

  run(script: LuaScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<RedisReply> {
    const { waitReplicas } = this
    return this.route(slotOf(keys[0] ?? ''), (link, sending) =>
      runScript(link, { script, keys, args, waitReplicas, ...sending }),
    )
  }

  command(name: string, key: string, args: readonly RedisArgument[]): Promise<RedisReply> {
    return this.route(slotOf(key), (link, { isAsking, timeoutMs }) => {
      if (isAsking) link.send('ASKING', [], timeoutMs).catch(() => {})
      return link.send(name, args, timeoutMs)
    })
  }

  pop(lists: readonly string[], timeoutMs: number): Promise<Popped | null> {
    return this.waiter.pop(lists, timeoutMs)
  }

  listen(channel: string, onMessage: OnMessage): void {
    this.subscriber.listen(channel, onMessage)
  }

  get isWaiting(): boolean {
    return this.waiter.isWaiting
  }

  onChange(listener: ChangeListener): () => void {
    return this.changes.add(listener)
  }

  settled(): Promise<void> {
    return this.changes.settled()
  }

  facts(): ServerFacts {
    // Also while no node is known: what is done lane by lane must not be done for all lanes at once.
    return { ...weakest(this.nodes.reports(), this.waitReplicas), isCluster: true }
  }

  async close(): Promise<void> {
    await Promise.all([this.nodes.close(), this.waiter.close(), this.subscriber.close()])
  }

  private async route(slot: number, work: Work): Promise<RedisReply> {
    const untilMs = this.wiring.clock.monotonic() + this.wiring.callTimeoutMs
    let step: Step = { address: this.nodes.ownerOf(slot), isAsking: false, redirects: 0 }
    for (;;) {
      try {
        return await this.take(step, work, untilMs)
      } catch (error) {
        step = await this.nextStep(step, slot, error)
        if (this.leftMs(untilMs) < SEND_TIME_MIN_MS) throw error
      }
    }
  }

  private async take({ address, isAsking }: Step, work: Work, untilMs: number): Promise<RedisReply> {
    if (address === undefined) throw noOwner(this.nodes.name)
    const link = this.nodes.linkTo(address)
    if (!link.isReady) {
      const late = () => notConnected(link.server, new Error('not within the deadline'))
      await withDeadline(link.reach(), this.leftMs(untilMs), this.wiring.timers, late)
    }
    return work(link, { isAsking, timeoutMs: this.leftMs(untilMs) })
  }

  /** Where to go after a refusal; throws the error again when the call must not go on. */
  private async nextStep({ redirects }: Step, slot: number, error: unknown): Promise<Step> {
    this.learn(slot, error)
    const word = replyWordOf(error)
    if (word === 'TRYAGAIN' || word === 'CLUSTERDOWN') {
      await delay(TRY_AGAIN_MS * (0.5 + this.wiring.random.next()), this.wiring.timers)
      return { address: this.nodes.ownerOf(slot), isAsking: false, redirects }
    }
    const address = redirectOf(error)
    if (address === undefined || redirects === REDIRECTS_MAX) throw error
    return { address, isAsking: word === 'ASK', redirects: redirects + 1 }
  }

  /** What a failure says about the nodes. */
  private learn(slot: number, error: unknown): void {
    const address = redirectOf(error)
    if (replyWordOf(error) === 'MOVED' && address !== undefined) this.nodes.moved(slot, address)
    else if (replyWordOf(error) !== 'ASK' && error instanceof HoldfastError && error.retryable) this.nodes.refreshSoon()
  }

  private ownerOf(list: string): Target {
    const address = this.nodes.ownerOf(slotOf(list))
    if (address === undefined) throw noOwner(this.nodes.name)
    return this.nodes.targetOf(address)
  }

  private leftMs(untilMs: number): number {
    return untilMs - this.wiring.clock.monotonic()
  }
}

/** The node in `MOVED 3999 127.0.0.1:6381`, or in the same of ASK; without a host it is on the one that answered. */
function redirectOf(error: unknown): string | undefined {
  const word = replyWordOf(error)
  if (!(error instanceof HoldfastError) || (word !== 'MOVED' && word !== 'ASK')) return undefined
  const { said, server } = error.details
  const address = String(said).split(' ')[2] ?? ''
  return address.startsWith(':') ? `${String(server).replace(/:\d+$/, '')}${address}` : address
}

function noOwner(server: string): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', `no node of the Cluster at ${server} is known to own the slot`, {
    details: { outcome: 'notDone', server, reply: 'CLUSTERDOWN' },
  })
}
