/**
 * A proxy on loopback that stands between a client and a server and does what networks do to them. Bytes that it swallowed are
 * gone: as a real connection would, that one then stays mute in the direction until someone closes it; new ones are not touched by it.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { SeededRandom } from '../simulation/random.ts'

/** Which requests a fault is for, and how many times; after that, what comes passes. Default: all, always. */
export interface FaultAim {
  /** Asked for every piece that a client sends; a client that awaits its replies sends a request a piece. */
  readonly when?: (request: Buffer) => boolean
  readonly times?: number
}

export type Fault =
  | { readonly mode: 'pass' }
  /** Connections stay open and nothing comes through, either way. */
  | { readonly mode: 'blackhole' }
  /** Nothing comes through, either way, until the next fault is set; then it does, late. */
  | { readonly mode: 'stall' }
  /** The server never sees the request. */
  | ({ readonly mode: 'dropRequests' } & FaultAim)
  /** The server carries it out; its reply vanishes. */
  | ({ readonly mode: 'dropReplies' } & FaultAim)
  /** The server carries it out; when its reply comes, or has come as far as is asked for, the client sees a reset instead. */
  | ({ readonly mode: 'cutReply'; readonly until?: (reply: Buffer) => boolean } & FaultAim)
  /** The server has got it, and the client sees a reset at once. */
  | ({ readonly mode: 'cutRequest' } & FaultAim)
  /** From that request on, so many bytes of one side come through, and then the client sees a reset and the server the end. */
  | ({ readonly mode: 'cutAfter'; readonly side: 'requests' | 'replies'; readonly bytes: number } & FaultAim)
  /** New connections are reset; those that stand are untouched. */
  | { readonly mode: 'refuse' }
  /** After the next reply the client sees the end of the connection. */
  | { readonly mode: 'halfClose' }
  | { readonly mode: 'slow'; readonly bytesPerSecond: number }
  | { readonly mode: 'delay'; readonly ms: number; readonly jitterMs?: number }
  /** Up and down by turns, each for half to one and a half of its time; down means reset and refused. */
  | { readonly mode: 'flapping'; readonly upMs: number; readonly downMs: number }

/** Those that need no figure. */
export type PlainFault = Exclude<Fault['mode'], 'slow' | 'delay' | 'flapping' | 'cutAfter'>

export interface ProxyCounters {
  accepted: number
  refused: number
  /** Pieces that clients sent, and that servers sent. */
  requests: number
  replies: number
  droppedRequests: number
  droppedReplies: number
  cut: number
}

export interface ProxyOptions {
  /** The port of the server, on loopback. */
  readonly upstream: number
  readonly seed?: number
}

interface Link {
  readonly client: Socket
  readonly server: Socket
  /** What becomes of replies from here on. */
  replies: 'pass' | 'drop' | 'cut'
  /** What has come of the reply that will be cut. */
  reply: Buffer
  areRequestsLost: boolean
  /** How much still comes through. */
  rest: { readonly side: 'requests' | 'replies'; bytes: number } | null
  readonly toServer: Way
  readonly toClient: Way
}

/** What is held back on its way, in its order; null: the end. Timers of equal times may fire in any order, so each sends the first. */
interface Way {
  readonly held: (Buffer | null)[]
  /** When the last piece goes on, so that none overtakes another. */
  until: number
}

export class FaultProxy {
  readonly counters: ProxyCounters = {
    accepted: 0,
    refused: 0,
    requests: 0,
    replies: 0,
    droppedRequests: 0,
    droppedReplies: 0,
    cut: 0,
  }
  readonly #server: Server
  #upstream: number
  readonly #random: SeededRandom
  readonly #links = new Set<Link>()
  #fault: Fault = { mode: 'pass' }
  #hits = 0
  #isDown = false
  #flap: NodeJS.Timeout | undefined

  private constructor({ upstream, seed = 1 }: ProxyOptions) {
    this.#upstream = upstream
    this.#random = new SeededRandom(seed)
    this.#server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => this.#accept(client))
  }

  static async start(options: ProxyOptions): Promise<FaultProxy> {
    const proxy = new FaultProxy(options)
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject)
      proxy.#server.listen(0, '127.0.0.1', resolve)
    })
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** Connections that stand now. */
  get connections(): number {
    return this.#links.size
  }

  /** From now on, also for connections that stand already. */
  set(fault: Fault | PlainFault): void {
    clearTimeout(this.#flap)
    this.#fault = typeof fault === 'string' ? { mode: fault } : fault
    this.#hits = 0
    this.#isDown = false
    const isStalled = this.#fault.mode === 'stall'
    for (const { client, server } of this.#links) {
      for (const socket of [client, server]) {
        if (isStalled) socket.pause()
        else socket.resume()
      }
    }
    for (const link of this.#links) this.#sweep(link)
    if (this.#fault.mode === 'flapping') this.#turn(this.#fault)
  }

  /** New connections go to another server. */
  retarget({ port }: { readonly port: number }): void {
    this.#upstream = port
  }

  /** Resets every connection that stands. */
  reset(): void {
    for (const { client } of this.#links) client.resetAndDestroy()
  }

  async close(): Promise<void> {
    clearTimeout(this.#flap)
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
    })
    for (const { client, server } of this.#links) {
      client.destroy()
      server.destroy()
    }
    await closed
  }

  #turn(fault: Fault & { readonly mode: 'flapping' }): void {
    const nextMs = (this.#isDown ? fault.downMs : fault.upMs) * (0.5 + this.#random.next())
    this.#flap = setTimeout(() => {
      this.#isDown = !this.#isDown
      if (this.#isDown) this.reset()
      this.#turn(fault)
    }, nextMs)
    this.#flap.unref()
  }

  #accept(client: Socket): void {
    client.on('error', () => {}) // The other side hears of it by the close below.
    if (this.#fault.mode === 'refuse' || this.#isDown) {
      this.counters.refused += 1
      client.resetAndDestroy()
      return
    }
    this.counters.accepted += 1
    const server = connect({ port: this.#upstream, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    server.on('error', () => {
      if (this.#fault.mode !== 'blackhole') client.resetAndDestroy()
    })
    const link: Link = {
      client,
      server,
      replies: 'pass',
      reply: Buffer.alloc(0),
      areRequestsLost: false,
      rest: null,
      toServer: { held: [], until: 0 },
      toClient: { held: [], until: 0 },
    }
    this.#links.add(link)
    client.on('data', (piece) => this.#request(link, piece))
    server.on('data', (piece) => this.#reply(link, piece))
    client.on('end', () => this.#end(server, link.toServer))
    server.on('end', () => this.#end(client, link.toClient))
    client.on('close', () => this.#sweep(link))
    server.on('close', () => this.#sweep(link))
    if (this.#fault.mode === 'stall') {
      client.pause()
      server.pause()
    }
  }

  #request(link: Link, piece: Buffer): void {
    this.counters.requests += 1
    const fault = this.#fault
    if (fault.mode === 'blackhole' || (fault.mode === 'dropRequests' && this.#isHit(fault, piece)))
      link.areRequestsLost = true
    if (link.areRequestsLost) {
      this.counters.droppedRequests += 1
      return
    }
    if (fault.mode === 'dropReplies' && this.#isHit(fault, piece)) link.replies = 'drop'
    if (fault.mode === 'cutReply' && this.#isHit(fault, piece)) link.replies = 'cut'
    if (fault.mode === 'cutAfter' && link.rest === null && this.#isHit(fault, piece))
      link.rest = { side: fault.side, bytes: fault.bytes }
    if (fault.mode === 'cutRequest' && this.#isHit(fault, piece)) this.#cutBehind(link, link.server, piece)
    else if (link.rest?.side === 'requests') this.#passRest(link, link.server, piece)
    else this.#forward(link.server, piece, link.toServer)
  }

  #reply(link: Link, piece: Buffer): void {
    this.counters.replies += 1
    const fault = this.#fault
    const { mode } = fault
    if (mode === 'blackhole') link.replies = 'drop'
    if (link.replies === 'drop') {
      this.counters.droppedReplies += 1
    } else if (link.replies === 'cut') {
      link.reply = Buffer.concat([link.reply, piece])
      if (mode === 'cutReply' && fault.until?.(link.reply) === false) return
      this.counters.cut += 1
      link.client.resetAndDestroy()
    } else if (link.rest?.side === 'replies') {
      this.#passRest(link, link.client, piece)
    } else if (mode === 'halfClose') {
      link.client.end(piece)
    } else {
      this.#forward(link.client, piece, link.toClient)
    }
  }

  #passRest(link: Link, to: Socket, piece: Buffer): void {
    if (link.rest === null) return
    const passing = piece.subarray(0, link.rest.bytes)
    link.rest.bytes -= passing.length
    if (link.rest.bytes > 0) to.write(passing)
    else this.#cutBehind(link, to, passing)
  }

  /** Only once the system has the bytes, since a reset discards those that it has not. */
  #cutBehind({ client }: Link, to: Socket, last: Buffer): void {
    this.counters.cut += 1
    to.write(last, () => client.resetAndDestroy())
  }

  /** The end of one side, after what is still held back; a blackhole swallows it like all else. */
  #end(to: Socket, way: Way): void {
    if (this.#fault.mode === 'blackhole') return
    if (way.held.length === 0) to.end()
    else this.#hold(to, null, way)
  }

  /** When one side is gone, so is the other, but in a blackhole neither hears of it. */
  #sweep(link: Link): void {
    const { client, server } = link
    if (client.destroyed && server.destroyed) this.#links.delete(link)
    if (this.#fault.mode === 'blackhole') return
    if (client.destroyed || server.destroyed) {
      client.destroy()
      server.destroy()
      return
    }
    if (client.readableEnded) this.#end(server, link.toServer)
    if (server.readableEnded) this.#end(client, link.toClient)
  }

  #isHit({ when, times = Number.POSITIVE_INFINITY }: FaultAim, request: Buffer): boolean {
    if (this.#hits >= times || when?.(request) === false) return false
    this.#hits += 1
    return true
  }

  /** Writes now or later. */
  #forward(to: Socket, piece: Buffer, way: Way): void {
    const fault = this.#fault
    const now = performance.now()
    let at = now
    if (fault.mode === 'slow') at = Math.max(way.until, now) + (piece.length * 1000) / fault.bytesPerSecond
    if (fault.mode === 'delay') at = now + fault.ms + this.#random.next() * (fault.jitterMs ?? 0)
    way.until = Math.max(at, way.until)
    if (way.until <= now && way.held.length === 0) to.write(piece)
    else this.#hold(to, piece, way)
  }

  #hold(to: Socket, what: Buffer | null, { held, until }: Way): void {
    held.push(what)
    setTimeout(() => {
      const next = held.shift()
      if (next === null) to.end()
      else if (next !== undefined && to.writable) to.write(next)
    }, until - performance.now())
  }
}
