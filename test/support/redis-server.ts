/**
 * A private Redis server of a test: on a free port, in a folder of its own, gone with the test process. Stopping it removes the
 * folder; killing or restarting it keeps the folder, the port and the configuration, as a real server does.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { launchInContainer } from './container.ts'
import { within } from './event.ts'
import { freePort } from './free-port.ts'
import { launchLocally, ServerFolder, type ServerProcess } from './server-process.ts'
import { service } from './services.ts'

export interface RedisServerOptions {
  readonly appendOnly?: boolean
  /** Default `everysec`, as Redis has it. */
  readonly appendFsync?: 'always' | 'everysec' | 'no'
  /** When snapshots are taken, such as `60 1`; default: never. */
  readonly save?: string
  /** Such as `8mb`. */
  readonly maxMemory?: string
  readonly policy?: string
  readonly password?: string
  /** Rules of `user`, such as `worker on >secret ~hf:* +@all`. */
  readonly users?: readonly string[]
  readonly replicaOf?: { readonly port: number }
  readonly cluster?: { readonly nodeTimeoutMs: number }
  /** Of a clock, of a power cut, or both. */
  readonly env?: Readonly<Record<string, string>>
  /** Further lines of the configuration file. */
  readonly config?: readonly string[]
  /** Further arguments, such as `--enable-debug-command`, `local`. */
  readonly args?: readonly string[]
}

export type RedisArgument = string | number | Buffer

/** After an hour of writes its log is long, and the machine may be busy. */
const START_MS = 60_000
const STOP_MS = 60_000
const COMMAND_MS = 5000
const LOOK_AGAIN_MS = 10
const PORT_TRIES = 5

export class RedisServer {
  readonly port: number
  readonly #options: RedisServerOptions
  readonly #folder: ServerFolder
  #process: ServerProcess | null = null

  private constructor(port: number, folder: ServerFolder, options: RedisServerOptions) {
    this.port = port
    this.#folder = folder
    this.#options = options
  }

  /** Starts a server and resolves once it answers. */
  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    for (let attempt = 1; ; attempt += 1) {
      const server = new RedisServer(await freePort(), await ServerFolder.make('redis'), options)
      try {
        await writeFile(join(server.folder, 'redis.conf'), configuration(server.port, options))
        await server.#launch()
        return server
      } catch (error) {
        const wasTaken = (await server.log()).includes('Address already in use')
        await server.stop()
        if (!wasTaken || attempt === PORT_TRIES) throw error
      }
    }
  }

  get url(): string {
    const { password } = this.#options
    return `redis://${password === undefined ? '' : `:${encodeURIComponent(password)}@`}127.0.0.1:${this.port}`
  }

  /** Where its files are. */
  get folder(): string {
    return this.#folder.path
  }

  /** Of the process that runs now; null: none. */
  get pid(): number | null {
    return this.#process === null || this.#process.hasExited ? null : this.#process.pid
  }

  /** Sends one command on a connection of its own, so that nothing is left of what was before a restart. */
  async command(...args: readonly [string, ...RedisArgument[]]): Promise<unknown> {
    const [name, ...rest] = args
    const { password } = this.#options
    const client = new Redis({
      port: this.port,
      host: '127.0.0.1',
      lazyConnect: true,
      retryStrategy: null,
      enableReadyCheck: false,
      connectTimeout: COMMAND_MS,
      commandTimeout: COMMAND_MS,
      ...(password === undefined ? {} : { password }),
    })
    client.on('error', () => {}) // The command rejects with it.
    try {
      await client.connect()
      return await client.call(name, ...rest)
    } finally {
      client.disconnect()
    }
  }

  /** Ends it and removes its folder. */
  async stop(): Promise<void> {
    await this.kill()
    await this.#folder.remove()
  }

  /** SIGKILL: what was not yet written to files is lost with it; what the system holds of its files is not. */
  async kill(): Promise<void> {
    await this.#process?.signal('SIGKILL')
    await this.#process?.exited
  }

  /** Freezes it: connections stay open and nothing answers. */
  async pause(): Promise<void> {
    await this.#process?.signal('SIGSTOP')
  }

  async resume(): Promise<void> {
    await this.#process?.signal('SIGCONT')
  }

  /** Ends it in order where it still runs, and starts it again on the same port and files. */
  async restart(): Promise<void> {
    await this.resume()
    await this.#process?.signal('SIGTERM')
    await within(this.#process?.exited ?? Promise.resolve(), `the end of redis-server on port ${this.port}`, STOP_MS)
    await this.#launch()
  }

  /** All that it has said, of every start. */
  log(): Promise<string> {
    return readFile(this.#logPath, 'utf8').catch(() => '')
  }

  get #logPath(): string {
    return join(this.folder, 'redis.log')
  }

  async #launch(): Promise<void> {
    const { env = {}, args = [] } = this.#options
    const place = await service('redis')
    const launch = place.kind === 'local' ? launchLocally : launchInContainer(place.image)
    const launched = await launch({
      program: place.program,
      args: [join(this.folder, 'redis.conf'), ...args],
      folder: this.#folder,
      logPath: this.#logPath,
      env,
    })
    this.#process = launched
    const until = performance.now() + START_MS
    while (!(await this.#answers())) {
      if (launched.hasExited) throw new Error(`redis-server ended:\n${await this.log()}`)
      if (performance.now() > until)
        throw new Error(`redis-server on port ${this.port} is silent:\n${await this.log()}`)
      await setTimeout(LOOK_AGAIN_MS)
    }
    // Another server that took the port meanwhile would have answered in its place.
    if (launched.hasExited) throw new Error(`redis-server ended:\n${await this.log()}`)
  }

  async #answers(): Promise<boolean> {
    try {
      return (await this.command('PING')) === 'PONG'
    } catch (error) {
      // A server whose default user may not PING is there nonetheless.
      return error instanceof Error && /^(NOAUTH|NOPERM|WRONGPASS)/.test(error.message)
    }
  }
}

function configuration(port: number, options: RedisServerOptions): string {
  const { cluster, replicaOf, maxMemory, policy, password, users = [], config = [] } = options
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    'dir .',
    'daemonize no',
    'shutdown-timeout 0',
    'repl-diskless-sync-delay 0',
    `save ${JSON.stringify(options.save ?? '')}`,
    `appendonly ${options.appendOnly === true ? 'yes' : 'no'}`,
    `appendfsync ${options.appendFsync ?? 'everysec'}`,
    ...(maxMemory === undefined ? [] : [`maxmemory ${maxMemory}`]),
    ...(policy === undefined ? [] : [`maxmemory-policy ${policy}`]),
    ...(password === undefined ? [] : [`requirepass ${JSON.stringify(password)}`]),
    ...users.map((rules) => `user ${rules}`),
    ...(replicaOf === undefined ? [] : [`replicaof 127.0.0.1 ${replicaOf.port}`]),
    ...(cluster === undefined
      ? []
      : [
          'cluster-enabled yes',
          'cluster-config-file nodes.conf',
          `cluster-node-timeout ${cluster.nodeTimeoutMs}`,
          // On a busy machine a replica may not have heard of its master for long, and would never take its place.
          'cluster-replica-validity-factor 0',
        ]),
    ...config,
  ]
  return `${lines.join('\n')}\n`
}
