/**
 * One socket to one server, from its handshake to its end; it never comes back, a Link opens the next one.
 * So no command is ever sent twice and no late reply can meet another call: what is under way when the socket ends rejects.
 *
 * States: opening (only the handshake is sent) → open → ended. `drop` ends it from any state.
 */
import { Redis, type RedisOptions } from 'ioredis'
import { Deadlines } from '../../deadlines.ts'
import { HoldfastError } from '../../errors.ts'
import { commandOf } from './command-line.ts'
import {
  cannotConnect,
  commandError,
  isFinal,
  notConnected,
  REJECTED_HINT,
  replyError,
  replyWordOf,
  timedOut,
} from './errors.ts'
import { ReplicaWait } from './replica-wait.ts'
import { checkVersion, readReport, type ServerReport } from './server-facts.ts'
import type { RedisArgument, RedisReply } from './servers.ts'
import type { Target, Wiring } from './wiring.ts'

/** Longest wait for the driver to tell that a dropped socket has closed. */
const DROP_WAIT_MS = 1000
/** Of the deadline of a call: a write may wait behind another one's WAIT and then for its own, and must be told in time. */
const WAIT_SHARE = 1 / 3

/** Which try to connect it is, and who hears what is said on channels. */
export interface Attempt {
  readonly number: number
  readonly onMessage?: ((message: string) => void) | undefined
}

export class Connection {
  /** Resolves when the socket is gone. */
  readonly ended: Promise<void>
  private readonly redis: Redis
  private readonly target: Target
  private readonly wiring: Wiring
  private isDropped = false
  /** The cause; what the driver reports after it are effects. */
  private firstError: unknown
  private end: () => void = () => {}
  private readonly deadlines: Deadlines
  private readonly replicaWaits = new Map<number, ReplicaWait>()

  constructor(target: Target, wiring: Wiring, { number, onMessage }: Attempt) {
    this.target = target
    this.wiring = wiring
    this.deadlines = new Deadlines(wiring.clock, wiring.timers)
    this.redis = new Redis(driverOptions(target.driver(number), wiring.callTimeoutMs))
    this.ended = new Promise((resolve) => {
      this.end = resolve
    })
    this.redis.on('error', (error: unknown) => {
      this.firstError ??= error
    })
    if (onMessage !== undefined) this.redis.on('message', (_channel: string, message: string) => onMessage(message))
    this.redis.on('end', () => {
      this.deadlines.clear()
      this.end()
    })
  }

  get isOpen(): boolean {
    return !this.isDropped && this.redis.status === 'ready'
  }

  /** Connects, names and authenticates itself, and asks the server who it is. Rejects when the server cannot be used. */
  async open(acceptsReplica = false): Promise<ServerReport> {
    const { timers, callTimeoutMs } = this.wiring
    const timer = timers.set(() => {
      this.firstError ??= timedOut(this.target.server, callTimeoutMs)
      this.drop()
    }, callTimeoutMs)
    try {
      // A turn later, so that what the server said last is heard.
      const lost = this.ended.then(() => new Promise<void>((resolve) => timers.defer(resolve)))
      const closed = lost.then((): never => {
        throw new Error('closed')
      })
      return await Promise.race([this.handshake(acceptsReplica), closed])
    } catch (error) {
      this.drop()
      // The driver says only that the connection closed; what it reported before is the cause.
      const isTold = isFinal(error) || replyWordOf(error) !== undefined
      const cause = this.firstError ?? new Error(`the server closed the connection${REJECTED_HINT}`)
      throw cannotConnect(this.target.server, isTold ? error : cause)
    } finally {
      timers.clear(timer)
    }
  }

  private async handshake(acceptsReplica: boolean): Promise<ServerReport> {
    await this.redis.connect()
    const { username = 'default', password, database, server } = this.target
    const login = password === undefined ? [] : ['AUTH', username, password]
    const steps = [
      this.send('HELLO', [2, ...login, 'SETNAME', this.wiring.clientName]),
      this.send('INFO', []),
      this.send('CONFIG', ['GET', 'appendfsync']),
      ...(database === 0 ? [] : [this.send('SELECT', [database])]),
    ]
    const [hello, info, fsync, select] = await Promise.allSettled(steps)
    if (hello?.status === 'rejected' && !isUnknownCommand(hello.reason)) throw hello.reason
    if (info?.status !== 'fulfilled') throw info?.reason
    const report = readReport(info.value, fsync?.status === 'fulfilled' ? fsync.value : null)
    checkVersion(report, server)
    if (hello?.status === 'rejected') throw hello.reason
    if (select?.status === 'rejected') throw noDatabase(database, select.reason)
    if (report.isLoading) throw replyError(new Error('LOADING'), server)
    if (!report.isPrimary && !acceptsReplica) throw replyError(new Error('READONLY role: replica'), server)
    return report
  }

  /** Sends one command. Rejects with a HoldfastError at the deadline at the latest; the socket is dropped then. */
  send(name: string, args: readonly RedisArgument[], timeoutMs = this.wiring.callTimeoutMs): Promise<RedisReply> {
    const { server } = this.target
    if (!this.isOpen) return Promise.reject(notConnected(server))
    return new Promise((resolve, reject) => {
      const command = commandOf(name, args)
      this.redis.sendCommand(command)
      let isSettled = false
      const expire = (): void => {
        if (isSettled) return
        this.drop()
        reject(timedOut(server, timeoutMs))
      }
      // A process that was held up finds the timer due before it reads the reply that came in time: read first.
      const deadline = this.deadlines.add(timeoutMs, () => this.wiring.timers.defer(expire))
      command.promise.then(
        (reply: RedisReply) => {
          isSettled = true
          this.deadlines.delete(deadline)
          resolve(reply)
        },
        (error: unknown) => {
          isSettled = true
          this.deadlines.delete(deadline)
          const known = commandError(error, server)
          if (replyWordOf(known) === 'READONLY') this.drop()
          reject(known)
        },
      )
    })
  }

  /** How many replicas have what was sent so far, as soon as it is `replicas`; fewer when that takes too long. */
  confirm(replicas: number): Promise<number> {
    let wait = this.replicaWaits.get(replicas)
    if (wait === undefined) {
      const waitMs = Math.ceil(this.wiring.callTimeoutMs * WAIT_SHARE)
      wait = new ReplicaWait(async () => Number(await this.send('WAIT', [replicas, waitMs])))
      this.replicaWaits.set(replicas, wait)
    }
    return wait.confirmed()
  }

  /** Ends the socket at once, without waiting for replies. */
  drop(): void {
    if (this.isDropped) return
    this.isDropped = true
    this.redis.disconnect()
    const timer = this.wiring.timers.set(() => this.end(), DROP_WAIT_MS, true)
    this.redis.once('end', () => this.wiring.timers.clear(timer))
  }
}

/** An old server does not know HELLO, but tells its version; one that has no connection left says `ERR` too, and then nothing more. */
function isUnknownCommand(error: unknown): boolean {
  return replyWordOf(error) === 'ERR' && isFinal(error)
}

function noDatabase(database: number, cause: unknown): unknown {
  if (replyWordOf(cause) !== 'ERR') return cause
  return new HoldfastError('INVALID_URL', `url: the server has no database ${database}`, {
    details: { field: 'url', outcome: 'refused' },
    cause,
  })
}

/** One connection, no queue, no retry: everything that the driver would do by itself is off. */
function driverOptions(options: RedisOptions, timeoutMs: number): RedisOptions & { replyMapping: 'legacy' } {
  const isSentinel = options.sentinels !== undefined
  return {
    ...options,
    lazyConnect: true,
    retryStrategy: null,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    disableClientInfo: true,
    protocol: 2,
    replyMapping: 'legacy',
    connectTimeout: isSentinel ? timeoutMs / 4 : timeoutMs,
    // The socket is destroyed at once, not when the server has answered its end.
    disconnectTimeout: 0,
    ...(isSentinel
      ? { sentinelRetryStrategy: () => null, sentinelCommandTimeout: timeoutMs / 4, updateSentinels: false }
      : {}),
  }
}
