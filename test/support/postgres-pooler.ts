/**
 * A transaction pooler as PgBouncer is one: each transaction of a client goes to another connection of the server than the one before,
 * so nothing of a session lasts, and settings in the first packet are refused. Speaks just enough of the protocol for that.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export interface PoolerOptions {
  /** The port of the server, which must trust everybody. */
  readonly upstream: number
  readonly user: string
  readonly database: string
  /** Connections to the server. */
  readonly size?: number
  /** Takes settings in the first packet and forgets them, as PgBouncer does with `ignore_startup_parameters`. */
  readonly ignoresSettings?: boolean
}

const KNOWN = new Set(['user', 'database', 'application_name', 'client_encoding'])
const SSL_REQUEST = 80_877_103
const READY = 'Z'.charCodeAt(0)
const QUIT = 'X'.charCodeAt(0)
const IDLE = 'I'.charCodeAt(0)

/** Cuts a stream into messages; the first one of a client has no type. */
class Messages {
  private rest = Buffer.alloc(0)

  take(chunk: Buffer, hasType: boolean): Buffer[] {
    this.rest = Buffer.concat([this.rest, chunk])
    const messages: Buffer[] = []
    const head = hasType ? 1 : 0
    while (this.rest.length >= head + 4) {
      const length = head + this.rest.readUInt32BE(head)
      if (this.rest.length < length) break
      messages.push(this.rest.subarray(0, length))
      this.rest = this.rest.subarray(length)
    }
    return messages
  }
}

interface Upstream {
  readonly socket: Socket
  greeting: Buffer
  client: Client | null
}

interface Client {
  readonly socket: Socket
  readonly waiting: Buffer[]
  server: Upstream | null
}

export class TransactionPooler {
  readonly #options: PoolerOptions
  readonly #listener: Server
  readonly #servers: Upstream[] = []
  readonly #clients = new Set<Client>()
  /** Clients that wait for a connection, first come first. */
  readonly #queue: Client[] = []

  private constructor(options: PoolerOptions) {
    this.#options = options
    this.#listener = createServer({ noDelay: true }, (socket) => this.#accept(socket))
  }

  static async start(options: PoolerOptions): Promise<TransactionPooler> {
    const pooler = new TransactionPooler(options)
    for (let index = 0; index < (options.size ?? 3); index += 1) await pooler.#open()
    pooler.#listener.listen(0, '127.0.0.1')
    await once(pooler.#listener, 'listening')
    return pooler
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port
  }

  async stop(): Promise<void> {
    for (const { socket } of [...this.#clients, ...this.#servers]) socket.destroy()
    this.#listener.close()
    await once(this.#listener, 'close')
  }

  /** Ends the connections to the server and makes new ones; those of clients stay. */
  async reopen(upstream = this.#options.upstream): Promise<void> {
    const size = this.#servers.length
    for (const { socket } of this.#servers.splice(0)) socket.destroy()
    for (let index = 0; index < size; index += 1) await this.#open(upstream)
    this.#serve()
  }

  async #open(upstream = this.#options.upstream): Promise<void> {
    const { user, database } = this.#options
    const socket = connect(upstream, '127.0.0.1')
    socket.setNoDelay(true)
    const server: Upstream = { socket, greeting: Buffer.alloc(0), client: null }
    const messages = new Messages()
    const greeted = new Promise<void>((resolve, reject) => {
      socket.on('error', reject)
      socket.on('close', () => reject(new Error('the server closed the connection')))
      socket.on('data', (chunk) => {
        for (const message of messages.take(chunk, true)) {
          if (server.greeting.length === 0 || !this.#servers.includes(server)) {
            server.greeting = Buffer.concat([server.greeting, message])
            if (message[0] === READY) resolve()
          } else this.#reply(server, message)
        }
      })
    })
    socket.write(startup({ user, database, client_encoding: 'UTF8' }))
    await greeted
    this.#servers.push(server)
    socket.on('close', () => {
      const at = this.#servers.indexOf(server)
      if (at !== -1) this.#servers.splice(at, 1)
      server.client?.socket.destroy()
    })
  }

  #reply(server: Upstream, message: Buffer): void {
    const { client } = server
    client?.socket.write(message)
    if (message[0] !== READY || message[5] !== IDLE || client === null) return
    client.server = null
    server.client = null
    // The one that was used last is used last again, so that nobody keeps it by chance.
    this.#servers.push(...this.#servers.splice(this.#servers.indexOf(server), 1))
    if (client.waiting.length > 0) this.#queue.push(client)
    this.#serve()
  }

  #accept(socket: Socket): void {
    const client: Client = { socket, waiting: [], server: null }
    const messages = new Messages()
    let isGreeted = false
    this.#clients.add(client)
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#clients.delete(client)
      // As PgBouncer does: what a lost client had begun is ended with its connection.
      client.server?.socket.destroy()
    })
    socket.on('data', (chunk) => {
      for (const message of messages.take(chunk, isGreeted)) {
        if (isGreeted) this.#request(client, message)
        else isGreeted = this.#greet(socket, message)
      }
    })
  }

  #greet(socket: Socket, message: Buffer): boolean {
    if (message.readUInt32BE(4) === SSL_REQUEST) {
      socket.write('N')
      return false
    }
    const words = message.toString('utf8', 8).split('\0')
    const unknown = words.find((word, index) => index % 2 === 0 && word !== '' && !KNOWN.has(word))
    if (unknown !== undefined && this.#options.ignoresSettings !== true) {
      socket.end(fatal('08P01', `unsupported startup parameter: ${unknown}`))
      return false
    }
    socket.write(this.#servers[0]?.greeting ?? fatal('08P01', 'no server'))
    return true
  }

  #request(client: Client, message: Buffer): void {
    if (message[0] === QUIT) {
      client.socket.end()
      return
    }
    if (client.server !== null) {
      client.server.socket.write(message)
      return
    }
    client.waiting.push(message)
    if (!this.#queue.includes(client)) this.#queue.push(client)
    this.#serve()
  }

  #serve(): void {
    for (;;) {
      const server = this.#servers.find(({ client }) => client === null)
      const client = server === undefined ? undefined : this.#queue.shift()
      if (server === undefined || client === undefined) return
      server.client = client
      client.server = server
      for (const message of client.waiting.splice(0)) server.socket.write(message)
    }
  }
}

function startup(parameters: Readonly<Record<string, string>>): Buffer {
  const words = Buffer.from(`${Object.entries(parameters).flat().join('\0')}\0\0`)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + words.length, 0)
  head.writeUInt32BE(196_608, 4)
  return Buffer.concat([head, words])
}

function fatal(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeUInt32BE(4 + fields.length, 1)
  return Buffer.concat([head, fields])
}
