// The Redis server of a run: a private one on a free port, or a given one that must be empty, for every side empties it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { freePort } from './free-port.mjs'

const SLOW_MICROSECONDS = 5_000

/** Without `fsync` the server keeps nothing on disk; with it the server writes an append-only file into `folder`. */
function serverArguments(port, { fsync, folder }) {
  const durability = fsync === undefined ? ['no'] : ['yes', '--appendfsync', fsync]
  return ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', ...durability]
}

async function startServer(options) {
  const port = await freePort()
  const child = spawn('redis-server', serverArguments(port, options), { stdio: ['ignore', 'ignore', 'inherit'] })
  const failed = once(child, 'exit').then(() => {
    throw new Error('redis-server did not start')
  })
  failed.catch(() => {})
  const stopAtExit = () => child.kill('SIGKILL')
  process.once('exit', stopAtExit)
  const url = `redis://127.0.0.1:${port}`
  const admin = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
  admin.on('error', () => {})
  const info = await Promise.race([admin.info('server'), failed])
  // Someone else may have taken the port meanwhile, and what is theirs must not be emptied.
  if (!info.includes(`process_id:${child.pid}\r\n`)) throw new Error(`port ${port} was taken by another server`)
  return {
    url,
    admin,
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      process.off('exit', stopAtExit)
    },
  }
}

async function useServer(url) {
  const admin = new Redis(url)
  if ((await admin.dbsize()) > 0) throw new Error('the server of --url is not empty, and a run would empty it')
  return { url, admin, stop: async () => {} }
}

/** Figures of one server that the scenarios compare before and after. */
export class Server {
  constructor({ url, admin, stop }, fsync) {
    this.url = url
    this.admin = admin
    this.stopProcess = stop
    this.fsync = fsync
  }

  static async open(options) {
    if (options.url !== undefined) return new Server(await useServer(options.url), 'given')
    return new Server(await startServer(options), options.fsync ?? 'off')
  }

  async clear() {
    await this.admin.flushall('SYNC')
    await this.admin.config('SET', 'slowlog-log-slower-than', String(SLOW_MICROSECONDS), 'slowlog-max-len', '1024')
  }

  async figure(section, name) {
    const line = (await this.admin.info(section)).split('\r\n').find((text) => text.startsWith(`${name}:`))
    return Number(line?.slice(name.length + 1))
  }

  async cpuMicroseconds() {
    const user = await this.figure('cpu', 'used_cpu_user')
    return (user + (await this.figure('cpu', 'used_cpu_sys'))) * 1e6
  }

  usedMemory() {
    return this.figure('memory', 'used_memory')
  }

  /** What a job costs this server from now on, and how many scripts took over 5 ms of wall time; a machine under load makes some. */
  async watch() {
    await this.admin.slowlog('RESET')
    const before = await this.cpuMicroseconds()
    return async (jobs) => {
      const serverCpu = ((await this.cpuMicroseconds()) - before) / jobs
      const entries = await this.admin.slowlog('GET', '1024')
      const slowScripts = entries.filter(([, , , [command]]) => /^(eval|fcall)/i.test(command)).length
      return { serverCpu, slowScripts }
    }
  }

  /** Calls of every command, those from inside scripts too; what measuring itself calls is left out. */
  async allCommands() {
    const lines = (await this.admin.info('commandstats')).matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)
    return [...lines].reduce((sum, [, name, calls]) => sum + (/^(info|monitor)$/.test(name) ? 0 : Number(calls)), 0)
  }

  async describe() {
    const version = /redis_version:(\S+)/.exec(await this.admin.info('server'))?.[1] ?? 'unknown'
    return { redis: version, fsync: this.fsync }
  }

  async stop() {
    this.admin.disconnect()
    await this.stopProcess()
  }
}
