/**
 * A transaction pooler before a PostgreSQL server, as hard on its clients as such poolers may be: each transaction gets the server
 * connection that has rested longest, nothing is reset between two clients, and nothing that a client set, prepared or listened to
 * follows it to its next transaction. It lets everybody in, and the server must do so with it.
 *
 * A client is first greeted, once a server connection of its pool has logged in. Then its messages wait in its queue: the first one
 * takes a server connection, and after each message that asks for an answer the queue stands still until the server is ready again.
 * If the server is then in no transaction, the connection goes back to the pool.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export interface PoolerOptions {
  /** The port of the server, on loopback. */
  readonly upstream: number
  /** Server connections for each user and database. */
  readonly connections: number
}

const PROTOCOL = 196_608
const ENCRYPTION_REQUESTS: readonly number[] = [80_877_103, 80_877_104]
const KNOWN_PARAMETERS = ['user', 'database', 'client_encoding', 'application_name', 'DateStyle', 'TimeZone']
/** Query, Sync and FunctionCall: the server says when it is ready again. */
const ASKS = 'QSF'
/** The data of a COPY, which are part of an answer that is awaited. */
const COPY = 'dcf'

interface Backend {
  readonly socket: Socket
  /** Whose transaction it carries out now. */
  client: PooledClient | null
}

interface PooledClient {
  readonly socket: Socket
  pool: Pool | null
  readonly queue: Buffer[]
  backend: Backend | null
  isWaitingForBackend: boolean
  isAwaitingAnswer: boolean
}

export class TransactionPooler {
  readonly #options: PoolerOptions
  readonly #server: Server
  readonly #pools = new Map<string, Pool>()
  readonly #clients = new Set<PooledClient>()

  private constructor(options: PoolerOptions) {
    this.#options = options
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket))
  }

  static async start(options: PoolerOptions): Promise<TransactionPooler> {
    const pooler = new TransactionPooler(options)
    await new Promise<void>((resolve, reject) => {
      pooler.#server.once('error', reject)
      pooler.#server.listen(0, '127.0.0.1', resolve)
    })
    return pooler
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Connections of clients, and those to the server, that stand now. */
  get connections(): { readonly clients: number; readonly backends: number } {
    const backends = [...this.#pools.values()].reduce((sum, { size }) => sum + size, 0)
    return { clients: this.#clients.size, backends }
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
    })
    for (const { socket } of this.#clients) socket.destroy()
    for (const pool of this.#pools.values()) pool.close()
    await closed
  }

  #accept(socket: Socket): void {
    const client: PooledClient = {
      socket,
      pool: null,
      queue: [],
      backend: null,
      isWaitingForBackend: false,
      isAwaitingAnswer: false,
    }
    this.#clients.add(client)
    const messages = new Messages(0)
    socket.on('error', () => {}) // The end below tells it.
    socket.on('close', () => this.#leave(client))
    socket.on('data', (piece) => {
      for (const message of messages.of(piece)) {
        if (client.pool === null) this.#greet(client, message, messages)
        else if (message.toString('latin1', 0, 1) === 'X') socket.end()
        else client.queue.push(message)
      }
      pump(client)
    })
  }

  #greet(client: PooledClient, message: Buffer, messages: Messages): void {
    const code = message.readUInt32BE(4)
    if (ENCRYPTION_REQUESTS.includes(code)) {
      client.socket.write('N')
      return
    }
    if (code !== PROTOCOL) {
      client.socket.destroy() // Such as the wish to cancel a query.
      return
    }
    messages.headBytes = 1
    const parameters = parametersOf(message)
    const unknown = [...parameters.keys()].find((name) => !KNOWN_PARAMETERS.includes(name))
    if (unknown !== undefined) {
      refuse(client, '08P01', `unsupported startup parameter: ${unknown}`)
      return
    }
    const user = parameters.get('user') ?? ''
    const database = parameters.get('database') ?? user
    const name = JSON.stringify([user, database])
    const pool = this.#pools.get(name) ?? new Pool(this.#options, startup({ user, database }))
    this.#pools.set(name, pool)
    client.pool = pool
    client.isAwaitingAnswer = true
    pool.take((backend) => {
      if (backend instanceof Error) {
        refuse(client, '08006', backend.message)
        return
      }
      pool.give(backend)
      client.socket.write(Buffer.concat([AUTHENTICATION_OK, ...pool.greeting, READY]))
      client.isAwaitingAnswer = false
      pump(client)
    })
  }

  /** The server gives up a transaction only when its connection goes. */
  #leave(client: PooledClient): void {
    this.#clients.delete(client)
    client.queue.length = 0
    client.backend?.socket.destroy()
  }
}

/** Hands on what may be handed on now. */
function pump(client: PooledClient): void {
  const { pool, queue } = client
  for (let next = queue[0]; next !== undefined && pool !== null; next = queue[0]) {
    const type = next.toString('latin1', 0, 1)
    if (client.isWaitingForBackend || (client.isAwaitingAnswer && !COPY.includes(type))) return
    const { backend } = client
    if (backend === null) {
      client.isWaitingForBackend = true
      pool.take((found) => link(client, found))
      return
    }
    queue.shift()
    client.isAwaitingAnswer ||= ASKS.includes(type)
    backend.socket.write(next)
  }
}

function link(client: PooledClient, backend: Backend | Error): void {
  client.isWaitingForBackend = false
  if (backend instanceof Error) refuse(client, '08006', backend.message)
  else if (client.socket.destroyed) client.pool?.give(backend)
  else {
    client.backend = backend
    backend.client = client
    pump(client)
  }
}

/** What a server connection says goes to the client whose transaction it has; what it says at rest is lost. */
function answer(backend: Backend, message: Buffer): void {
  const { client } = backend
  if (client === null) return
  client.socket.write(message)
  if (message.toString('latin1', 0, 1) !== 'Z') return
  client.isAwaitingAnswer = false
  if (message.toString('latin1', 5, 6) === 'I') {
    client.backend = null
    backend.client = null
    client.pool?.give(backend)
  }
  pump(client)
}

type Taker = (backend: Backend | Error) => void

/** The server connections of one user and database. */
class Pool {
  size = 0
  /** The settings and the key that the first server connection was told at its login. */
  greeting: readonly Buffer[] = []
  readonly #options: PoolerOptions
  readonly #startup: Buffer
  readonly #all = new Set<Socket>()
  readonly #resting: Backend[] = []
  readonly #takers: Taker[] = []

  constructor(options: PoolerOptions, startup: Buffer) {
    this.#options = options
    this.#startup = startup
  }

  /** Opens all connections before it gives one for the second time. */
  take(taker: Taker): void {
    this.#takers.push(taker)
    if (this.size < this.#options.connections) this.#open()
    else this.#serve()
  }

  give(backend: Backend): void {
    this.#resting.push(backend)
    this.#serve()
  }

  close(): void {
    this.#takers.length = 0
    for (const socket of this.#all) socket.destroy()
  }

  #serve(): void {
    while (this.#takers.length > 0 && this.#resting.length > 0) {
      const backend = this.#resting.shift()
      if (backend !== undefined) this.#takers.shift()?.(backend)
    }
  }

  #open(): void {
    const socket = connect({ port: this.#options.upstream, host: '127.0.0.1', noDelay: true })
    const backend: Backend = { socket, client: null }
    const messages = new Messages(1)
    const told: Buffer[] = []
    let isReady = false
    this.size += 1
    this.#all.add(socket)
    socket.on('error', () => {}) // The end below tells it.
    socket.write(this.#startup)
    socket.on('data', (piece) => {
      for (const message of messages.of(piece)) {
        if (isReady) answer(backend, message)
        else if (message.toString('latin1', 0, 1) !== 'Z') told.push(message)
        else {
          isReady = true
          this.greeting = told.filter((one) => 'SK'.includes(one.toString('latin1', 0, 1)))
          this.give(backend)
        }
      }
    })
    socket.on('close', () => {
      this.#all.delete(socket)
      this.size -= 1
      const place = this.#resting.indexOf(backend)
      if (place >= 0) this.#resting.splice(place, 1)
      if (!isReady) this.#takers.shift()?.(new Error('the server cannot be reached or refused the login'))
      if (this.#takers.length > 0) this.#open()
      if (backend.client !== null) refuse(backend.client, '08P01', 'server conn crashed?')
    })
  }
}

/** Cuts a stream into messages; at first they have no letter before their length. */
class Messages {
  headBytes: number
  #rest = Buffer.alloc(0)

  constructor(headBytes: number) {
    this.headBytes = headBytes
  }

  *of(piece: Buffer): Generator<Buffer> {
    this.#rest = Buffer.concat([this.#rest, piece])
    while (this.#rest.length >= this.headBytes + 4) {
      const length = this.headBytes + this.#rest.readUInt32BE(this.headBytes)
      if (this.#rest.length < length) return
      const message = this.#rest.subarray(0, length)
      this.#rest = this.#rest.subarray(length)
      yield message
    }
  }
}

function message(letter: string, content: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(content.length + 4)
  return Buffer.concat([Buffer.from(letter, 'latin1'), length, content])
}

const AUTHENTICATION_OK = message('R', Buffer.alloc(4))
const READY = message('Z', Buffer.from('I'))

function startup(parameters: Readonly<Record<string, string>>): Buffer {
  const version = Buffer.alloc(4)
  version.writeUInt32BE(PROTOCOL)
  const pairs = Object.entries({ ...parameters, client_encoding: 'UTF8' }).flat()
  return message('', Buffer.concat([version, Buffer.from(`${pairs.join('\0')}\0\0`)]))
}

function parametersOf(startupMessage: Buffer): Map<string, string> {
  const words = startupMessage.toString('utf8', 8).split('\0')
  return new Map(words.flatMap((word, n) => (n % 2 === 0 && word !== '' ? [[word, words[n + 1] ?? ''] as const] : [])))
}

function refuse({ socket }: PooledClient, code: string, text: string): void {
  socket.end(message('E', Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${text}\0\0`)))
}
