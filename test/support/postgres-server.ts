/**
 * A private PostgreSQL server of a test: on a free port, in a folder of its own, gone with the test process. Stopping it removes
 * the folder; killing, shutting down or restarting it keeps the folder, the port and the settings, as a real server does. A start
 * takes about half a second, so a file of tests shares one server and gives each test a database or a schema of its own.
 */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Client, type ClientConfig } from 'pg'
import { launchInContainer } from './container.ts'
import { within } from './event.ts'
import { freePort } from './free-port.ts'
import { lookFor } from './look.ts'
import {
  admit,
  type ClusterFiles,
  FAREWELL,
  makeCluster,
  readableEnvironment,
  type Settings,
  SUPERUSER,
  serverAccount,
} from './postgres-cluster.ts'
import { launchLocally, ServerFolder, type ServerProcess } from './server-process.ts'
import { service } from './services.ts'

export interface PostgresServerOptions {
  /** Of the superuser, by SCRAM. Default: everybody is trusted. */
  readonly password?: string
  /** By a certificate of its own for `localhost`. Default: none. */
  readonly tls?: 'offered' | 'required'
  /** Of postgresql.conf, such as `{ max_connections: 5 }`. */
  readonly settings?: Settings
  /** Of a clock, of a power cut, or both. */
  readonly env?: Readonly<Record<string, string>>
}

export interface PostgresAddress {
  readonly database?: string
  /** Of a proxy before the server. */
  readonly port?: number
  readonly user?: string
  readonly password?: string
  /** What stands behind the question mark. */
  readonly parameters?: Readonly<Record<string, string>>
}

/** Fast ends transactions and writes all to the files; immediate leaves that to the next start. */
export type Shutdown = 'fast' | 'immediate'

const SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const
const START_MS = 60_000
const STOP_MS = 60_000
const QUERY_MS = 10_000
const LOOK_AGAIN_MS = 10
const PORT_TRIES = 5

/** Nothing of it lies outside its folder: no socket, no shared memory under a name. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  dynamic_shared_memory_type: 'mmap',
  timezone: 'UTC',
  log_timezone: 'UTC',
} as const

export class PostgresServer {
  readonly port: number
  readonly #options: PostgresServerOptions
  readonly #files: ClusterFiles
  readonly #folder: ServerFolder
  #isPasswordAsked = false
  #process: ServerProcess | null = null

  private constructor(folder: ServerFolder, files: ClusterFiles, options: PostgresServerOptions) {
    this.port = Number(files.settings.port)
    this.#folder = folder
    this.#files = files
    this.#options = options
  }

  /** Starts a server and resolves once it answers. */
  static async start(options: PostgresServerOptions = {}): Promise<PostgresServer> {
    for (let attempt = 1; ; attempt += 1) {
      const server = await PostgresServer.#prepare(options)
      try {
        await makeCluster(server.#files)
        await server.#launch()
        await server.#setPassword()
        return server
      } catch (error) {
        const wasTaken = (await server.log()).includes('Address already in use')
        await server.stop()
        if (!wasTaken || attempt === PORT_TRIES) throw error
      }
    }
  }

  static async #prepare(options: PostgresServerOptions): Promise<PostgresServer> {
    const { tls = 'none', settings } = options
    const place = await service('postgres')
    const folder = await ServerFolder.make('postgres', place.kind === 'local' ? FAREWELL : '')
    const files: ClusterFiles = {
      folder: folder.path,
      place,
      account: await serverAccount(),
      settings: { ...SETTINGS, port: await freePort(), ssl: tls !== 'none', ...settings },
      tls,
    }
    return new PostgresServer(folder, files, options)
  }

  /** Of the database `postgres`, as the superuser. */
  get url(): string {
    return this.urlOf()
  }

  urlOf(address: PostgresAddress = {}): string {
    const { database = 'postgres', port = this.port, user = SUPERUSER, parameters = {} } = address
    const { password = this.#options.password } = address
    // The certificate is good for this name only.
    const host = this.#options.tls === undefined ? '127.0.0.1' : 'localhost'
    const secret = password === undefined ? '' : `:${encodeURIComponent(password)}`
    const query = new URLSearchParams(parameters).toString()
    return `postgres://${user}${secret}@${host}:${port}/${database}${query === '' ? '' : `?${query}`}`
  }

  /** Where its files are. */
  get folder(): string {
    return this.#folder.path
  }

  /** The authority to trust, where it speaks TLS. */
  get certificatePath(): string {
    return join(this.folder, 'data', 'server.crt')
  }

  /** Of the process that runs now and starts all others; null: none. */
  get pid(): number | null {
    return this.#process === null || this.#process.hasExited ? null : this.#process.pid
  }

  /** A connection as the superuser, to be ended by who asked for it. It may be killed: whoever queries it then hears of it. */
  async connect(config: ClientConfig = {}): Promise<Client> {
    const { password } = this.#options
    const client = new Client({
      host: '127.0.0.1',
      port: this.port,
      user: SUPERUSER,
      database: 'postgres',
      connectionTimeoutMillis: QUERY_MS,
      ...(this.#isPasswordAsked ? { password } : {}),
      ...(this.#options.tls === 'required' ? { ssl: await this.#trust() } : {}),
      ...config,
    })
    client.on('error', () => {})
    await client.connect()
    return client
  }

  /** The rows of one query on a connection of its own, so that nothing is left of what was before a restart. */
  async query<Row = Record<string, unknown>>(
    text: string,
    values: readonly unknown[] = [],
    config: ClientConfig = {},
  ): Promise<Row[]> {
    const client = await this.connect({ query_timeout: QUERY_MS, ...config })
    try {
      return (await client.query(text, [...values])).rows as Row[]
    } finally {
      await client.end().catch(() => {})
    }
  }

  /** A new and empty database; gives its name. */
  async createDatabase(): Promise<string> {
    const name = `test_${randomBytes(6).toString('hex')}`
    await this.query(`CREATE DATABASE ${name}`)
    return name
  }

  /** Ends it and removes its folder. */
  async stop(): Promise<void> {
    await this.kill()
    await this.#folder.remove()
  }

  /** SIGKILL of all its processes: what was not yet written to files is lost; what the system holds of its files is not. */
  async kill(): Promise<void> {
    await this.#process?.signalAll('SIGKILL')
    await this.#process?.exited
  }

  /** SIGKILL of one connection's process, such as `pg_backend_pid()` gives; the server then ends all others and recovers. */
  async killBackend(pid: number): Promise<void> {
    if (this.#process === null) throw new Error('the server does not run')
    await this.#process.signalChild(pid, 'SIGKILL')
  }

  /** Freezes all its processes: connections stay open and nothing answers. */
  async pause(): Promise<void> {
    await this.#process?.signalAll('SIGSTOP')
  }

  async resume(): Promise<void> {
    await this.#process?.signalAll('SIGCONT')
  }

  /** Ends it in order; its files stay for a restart. */
  async shutDown(how: Shutdown = 'fast'): Promise<void> {
    await this.resume()
    await this.#process?.signal(SIGNALS[how])
    await within(this.#process?.exited ?? Promise.resolve(), `the end of PostgreSQL on port ${this.port}`, STOP_MS)
  }

  /** Ends it where it still runs, and starts it again on the same port and files. */
  async restart(how: Shutdown = 'fast'): Promise<void> {
    await this.shutDown(how)
    await this.#launch()
  }

  /** All that it has said, of every start. */
  log(): Promise<string> {
    return readFile(this.#logPath, 'utf8').catch(() => '')
  }

  get #logPath(): string {
    return join(this.folder, 'postgres.log')
  }

  async #trust(): Promise<ClientConfig['ssl']> {
    return { ca: await readFile(this.certificatePath, 'utf8'), servername: 'localhost' }
  }

  async #launch(): Promise<void> {
    const { place, account, folder } = this.#files
    const launch = place.kind === 'local' ? launchLocally : launchInContainer(place.image)
    const env = await readableEnvironment(this.#files, this.#options.env ?? {})
    const launched = await launch({
      program: place.program,
      args: ['-D', join(folder, 'data')],
      folder: this.#folder,
      logPath: this.#logPath,
      env: { LC_ALL: 'C', ...env },
      account,
    })
    this.#process = launched
    const until = performance.now() + START_MS
    while (!(await this.#answers())) {
      if (launched.hasExited) throw new Error(`postgres ended:\n${await this.log()}`)
      if (performance.now() > until) throw new Error(`postgres on port ${this.port} is silent:\n${await this.log()}`)
      await setTimeout(LOOK_AGAIN_MS)
    }
    // Another server that took the port meanwhile would have answered in its place.
    if (launched.hasExited) throw new Error(`postgres ended:\n${await this.log()}`)
  }

  async #answers(): Promise<boolean> {
    try {
      await this.query('SELECT 1')
      return true
    } catch {
      return false
    }
  }

  /** It is set while everybody is trusted, and asked for from then on. */
  async #setPassword(): Promise<void> {
    const { password } = this.#options
    if (password === undefined) return
    await this.query(`ALTER ROLE ${SUPERUSER} PASSWORD '${password.replaceAll("'", "''")}'`)
    await admit(this.#files, 'scram-sha-256')
    await this.query('SELECT pg_reload_conf()')
    await lookFor('the question for the password', async () => {
      const isRefused = await this.query('SELECT 1').then(
        () => false,
        () => true,
      )
      return isRefused || undefined
    })
    this.#isPasswordAsked = true
  }
}
