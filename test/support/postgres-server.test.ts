/** The private PostgreSQL server of tests: starts, freezes, dies and comes back with what it kept, and leaves nothing behind. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { eventually, rejection, within } from './event.ts'
import { lookFor } from './look.ts'
import { PostgresServer, type PostgresServerOptions } from './postgres-server.ts'
import { areGone, childrenOf } from './process-tree.ts'
import { service } from './services.ts'

const servers: PostgresServer[] = []
async function start(options?: PostgresServerOptions): Promise<PostgresServer> {
  const server = await PostgresServer.start(options)
  servers.push(server)
  return server
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
})

const memorySegments = async (): Promise<string> => (await promisify(execFile)('ipcs', ['-m'])).stdout

/** The identifier of its piece of shared memory, which stands in its lock file. */
async function segmentOf(server: PostgresServer): Promise<string> {
  const lines = (await readFile(`${server.folder}/data/postmaster.pid`, 'utf8')).split('\n')
  return String(lines[6]?.trim().split(/\s+/)[1])
}

describe('a private PostgreSQL server', () => {
  let shared: PostgresServer
  beforeAll(async () => {
    shared = await PostgresServer.start({ settings: { max_connections: 20 } })
  })
  afterAll(() => shared.stop())

  it('has the encoding, the locale, the role and the settings of tests, and what is durable by itself', async () => {
    const [facts] = await shared.query(`SELECT current_setting('server_encoding') AS encoding,
      (SELECT datcollate FROM pg_database WHERE datname = 'postgres') AS collation, current_user AS role,
      (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS super,
      current_setting('max_connections') AS connections, current_setting('fsync') AS fsync,
      current_setting('synchronous_commit') AS commit, current_setting('TimeZone') AS zone`)
    expect(facts).toEqual({
      encoding: 'UTF8',
      collation: 'C',
      role: 'holdfast',
      super: true,
      connections: '20',
      fsync: 'on',
      commit: 'on',
      zone: 'UTC',
    })
  })

  it('gives each test a database of its own, and an address for it', async () => {
    const [one, other] = [await shared.createDatabase(), await shared.createDatabase()]
    await shared.query('CREATE TABLE t (n int)', [], { database: one })
    const seen = `SELECT current_database() AS name, to_regclass('t') IS NOT NULL AS there`
    for (const [name, there] of [[one, true] as const, [other, false] as const]) {
      const client = new Client(shared.urlOf({ database: name, parameters: { application_name: 'by address' } }))
      await client.connect()
      expect((await client.query(seen)).rows).toEqual([{ name, there }])
      expect((await client.query('SHOW application_name')).rows).toEqual([{ application_name: 'by address' }])
      await client.end()
    }
  })

  it('loses one backend by a kill, recovers and stays the same process', async () => {
    const { pid } = shared
    await shared.query('CREATE TABLE kept AS SELECT 1 AS n')
    const [victim, bystander] = [await shared.connect(), await shared.connect()]
    const { rows } = await victim.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const isCutOff = Promise.all([victim, bystander].map((client) => new Promise((end) => client.once('end', end))))
    const asleep = rejection(victim.query('SELECT pg_sleep(60)'))
    await shared.killBackend(rows[0]?.pid ?? 0)
    await asleep
    await within(isCutOff, 'the end of all connections')
    const kept = await lookFor('the recovery', () => shared.query('SELECT n FROM kept'))
    expect(kept).toEqual([{ n: 1 }])
    expect(shared.pid).toBe(pid)
    expect((await rejection(shared.killBackend(process.pid))).message).toMatch(/was not started by|took no/)
  })

  it('says nothing while it is paused, on old connections and on new ones', async () => {
    const client = await shared.connect()
    await shared.pause()
    const answers = [client.query('SELECT 1').then(String), shared.query('SELECT 1').then(String)]
    for (const answer of answers)
      expect((await rejection(within(answer, 'an answer', 200))).message).toMatch(/^an answer: not within/)
    await shared.resume()
    await Promise.all(answers)
    await client.end()
  })
})

describe('a private PostgreSQL server of one test', () => {
  it('answers on a port of its own and is gone after stop, with its folder, its processes and its memory', async () => {
    const [one, other] = await Promise.all([start(), start()])
    expect(one.port).not.toBe(other.port)
    expect(one.port).toBeGreaterThanOrEqual(7000)
    const { pid, folder } = one
    const children = await childrenOf(pid ?? 0)
    expect(children.length).toBeGreaterThan(2)
    const segment = await segmentOf(one)
    // A container has its own.
    if ((await service('postgres')).kind === 'local')
      expect(await memorySegments()).toMatch(new RegExp(`\\b${segment}\\b`))
    await one.stop()
    expect(one.pid).toBeNull()
    expect(await areGone([pid ?? 0, ...children])).toBe(true)
    expect(existsSync(folder)).toBe(false)
    expect(await memorySegments()).not.toMatch(new RegExp(`\\b${segment}\\b`))
    expect(await other.query('SELECT 1 AS n')).toEqual([{ n: 1 }])
  })

  it('comes back on the same port after a restart in order, an immediate one and a kill', async () => {
    const server = await start()
    const { port } = server
    await server.query('CREATE TABLE t (n int)')
    const ways = [() => server.restart(), () => server.restart('immediate'), () => server.kill(), () => server.pause()]
    for (const [n, way] of ways.entries()) {
      const { pid } = server
      await server.query('INSERT INTO t VALUES ($1)', [n])
      await way()
      if (way === ways[2]) expect(server.pid).toBeNull()
      if (n >= 2) await server.restart()
      expect(server.pid).not.toBe(pid)
    }
    expect(server.port).toBe(port)
    expect(await server.query('SELECT n FROM t ORDER BY n')).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }, { n: 3 }])
    const log = await server.log()
    for (const words of ['received fast shutdown', 'received immediate shutdown', 'was interrupted; last known up'])
      expect(log).toContain(words)
  }, 60_000)

  it('asks for a password', async () => {
    const server = await start({ password: "a 'secret'" })
    expect(await server.query('SELECT 1 AS n')).toEqual([{ n: 1 }])
    const client = new Client(server.url)
    await client.connect()
    await client.end()
    expect(await rejection(new Client(server.urlOf({ password: 'wrong' })).connect())).toMatchObject({ code: '28P01' })
    await server.restart()
    const silent = server.url.replace(/:[^:@]*@/, '@')
    expect((await rejection(new Client(silent).connect())).message).toContain('password')
  })

  it('speaks TLS where it is told to, and only that where it must', async () => {
    const [offered, required] = await Promise.all([start({ tls: 'offered' }), start({ tls: 'required' })])
    const isEncrypted = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'
    expect(await offered.query(isEncrypted)).toEqual([{ ssl: false }])
    expect(await required.query(isEncrypted)).toEqual([{ ssl: true }])
    const parameters = { sslmode: 'verify-full', sslrootcert: offered.certificatePath }
    const client = new Client(offered.urlOf({ parameters }))
    await client.connect()
    expect((await client.query(isEncrypted)).rows).toEqual([{ ssl: true }])
    await client.end()
    const untrusted = new Client(required.urlOf({ parameters: { sslmode: 'verify-full' } }))
    expect((await rejection(untrusted.connect())).message).toMatch(/certificate/)
    expect(await rejection(new Client(required.url).connect())).toMatchObject({ code: '28000' })
  })

  it('says what the server said when it does not start', async () => {
    const error = await rejection(PostgresServer.start({ settings: { no_such_setting: 1 } }))
    expect(error.message).toContain('no_such_setting')
  })

  it('goes when the process that started it is killed, also while it is paused', async () => {
    const script = `
      import { runnerImport } from 'vite'
      const { module } = await runnerImport(${JSON.stringify(fileURLToPath(new URL('./postgres-server.ts', import.meta.url)))})
      const server = await module.PostgresServer.start()
      await server.pause()
      console.log(server.pid + ' ' + server.folder)
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = await once(createInterface({ input: child.stdout }), 'line')
    const [pid, folder] = String(line).split(' ')
    const all = [Number(pid), ...(await childrenOf(Number(pid)))]
    expect(all.length).toBeGreaterThan(2)
    child.kill('SIGKILL')
    // A container is ended by the one that watches over them, which gives it ten seconds.
    await eventually(
      async () => (await areGone(all)) && !existsSync(String(folder)),
      'server and folder are gone',
      30_000,
    )
  }, 60_000)
})
