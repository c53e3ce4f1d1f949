/**
 * The nodes of a Cluster: which one owns a slot, and one link to each primary in use, opened when first needed and closed when
 * its node owns no slot any more. The map is asked for again when a node says MOVED or is lost, once at a time.
 */
import { delay } from '../../clock.ts'
import type { Changes } from '../changes.ts'
import { Connection } from './connection.ts'
import { isFinal, notConnected } from './errors.ts'
import { Link } from './link.ts'
import { addressOf, type Endpoint, endpointOf, type RedisLocation } from './location.ts'
import type { ServerReport } from './server-facts.ts'
import type { RedisReply } from './servers.ts'
import { checkTopology } from './settings-check.ts'
import { SlotMap } from './slot-map.ts'
import { type Target, targetOf, type Wiring } from './wiring.ts'

/** The map is asked for between one and two times this after the event, so that many clients do not ask at once. */
const REFRESH_PAUSE_MS = 50

export class ClusterNodes {
  private readonly location: RedisLocation
  private readonly wiring: Wiring
  private readonly changes: Changes
  private readonly links = new Map<string, Link>()
  private map = new SlotMap()
  private refreshing: Promise<void> | undefined
  private probe: Connection | undefined
  private isClosed = false

  constructor(location: RedisLocation, wiring: Wiring, changes: Changes) {
    this.location = location
    this.wiring = wiring
    this.changes = changes
  }

  /** The nodes as messages name them. */
  get name(): string {
    return this.location.endpoints.map(addressOf).join(', ')
  }

  ownerOf(slot: number): string | undefined {
    return this.map.ownerOf(slot)
  }

  /** Of the primaries that were reached. */
  reports(): readonly ServerReport[] {
    return [...this.links.values()].flatMap(({ report }) => (report === undefined ? [] : [report]))
  }

  targetOf(address: string): Target {
    return targetOf(this.location, this.translated(address))
  }

  linkTo(address: string): Link {
    const known = this.links.get(address)
    if (known !== undefined) return known
    const link = new Link(this.targetOf(address), this.wiring, {
      onReady: (report, isOther) => {
        this.wiring.settings.again(address, report)
        if (isOther) this.changes.announce()
      },
      onLost: () => this.refreshSoon(),
    })
    if (this.isClosed) void link.close()
    else this.links.set(address, link)
    return link
  }

  /** A node said that the slot is at `address` from now on. */
  moved(slot: number, address: string): void {
    if (this.map.assign(slot, address)) this.changes.announce()
    this.refreshSoon()
  }

  refreshSoon(): void {
    if (this.refreshing !== undefined || this.isClosed) return
    const pauseMs = REFRESH_PAUSE_MS * (1 + this.wiring.random.next())
    this.refreshing = delay(pauseMs, this.wiring.timers, true).then(() => this.load())
    this.endRefresh(this.refreshing)
  }

  /** Resolves when some node has told its map; joins one that is under way. */
  refresh(): Promise<void> {
    if (this.refreshing === undefined) {
      this.refreshing = this.load()
      this.endRefresh(this.refreshing)
    }
    return this.refreshing
  }

  /** Connects to all primaries. Rejects when none can be reached, or one can never be used. */
  async connect(): Promise<readonly ServerReport[]> {
    await this.refresh()
    const tries = await Promise.allSettled(
      [...this.map.addresses()].map((address) => this.linkTo(address).nextAttempt()),
    )
    const failures = tries.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    const worst = failures.find(isFinal) ?? (failures.length === tries.length ? failures[0] : undefined)
    if (worst !== undefined) throw worst
    if (tries.length === 0) throw notConnected(this.name, new Error('no node owns a slot'))
    return this.reports()
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.probe?.drop()
    await Promise.all([...this.links.values()].map((link) => link.close()))
  }

  private endRefresh(refreshing: Promise<void>): void {
    const end = (): void => {
      this.refreshing = undefined
    }
    refreshing.then(end, end)
  }

  /** Asks one node after another, those with a healthy link first. */
  private async load(): Promise<void> {
    const ready = [...this.links].filter(([, link]) => link.isReady)
    let failure: unknown
    for (const [address, link] of this.shuffled(ready)) {
      try {
        this.take(SlotMap.read(await link.send('CLUSTER', ['SLOTS']), this.translated(address)))
        return
      } catch (error) {
        failure = error
      }
    }
    const others = [...this.location.endpoints, ...[...this.map.addresses()].map((address) => this.translated(address))]
    for (const endpoint of this.shuffled(others)) {
      if (this.isClosed) return
      try {
        this.take(SlotMap.read(await this.ask(endpoint), endpoint))
        return
      } catch (error) {
        failure = isFinal(failure) ? failure : error
      }
    }
    throw failure
  }

  /** On a connection for this one question, since the node may be a replica. */
  private async ask(endpoint: Endpoint): Promise<RedisReply> {
    const target = targetOf(this.location, endpoint)
    const probe = new Connection(target, this.wiring, { number: 0 })
    this.probe = probe
    try {
      checkTopology([await probe.open(true)], this.location, target.server)
      return await probe.send('CLUSTER', ['SLOTS'])
    } finally {
      probe.drop()
    }
  }

  private take(next: SlotMap): void {
    const addresses = next.addresses()
    // A node that knows nothing yet must not make us forget.
    if (addresses.size === 0) return
    const isOther = this.map.differsFrom(next)
    this.map = next
    for (const [address, link] of this.links) {
      if (addresses.has(address)) continue
      this.links.delete(address)
      void link.close()
    }
    if (isOther) this.changes.announce()
  }

  /** Where a node is reached from here, which behind an address translation is elsewhere than it says. */
  private translated(address: string): Endpoint {
    const { natMap } = this.location.driver
    const mapped = typeof natMap === 'function' ? natMap(address) : natMap?.[address]
    return mapped ?? endpointOf(address)
  }

  private shuffled<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, rank: this.wiring.random.next() }))
      .sort((left, right) => left.rank - right.rank)
      .map(({ item }) => item)
  }
}
