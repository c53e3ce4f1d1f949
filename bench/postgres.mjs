// The PostgreSQL server of a run: a private one with its defaults on a free port, or a given one that must be empty, for every side
// drops what the last one made.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { freePort } from './free-port.mjs'
import { cpuMicroseconds } from './process-cpu.mjs'

const DEBIAN = '/usr/lib/postgresql'
const START_MS = 15_000
const LOOK_AGAIN_MS = 50
const SCHEMAS = ['holdfast', 'graphile_worker', 'pgboss', 'bench']

/** The one of the PATH, else the newest of Debian's, which are not on it. */
function program(name) {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore' })
    return name
  } catch {
    const versions = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a))
    return join(DEBIAN, versions[0] ?? '', 'bin', name)
  }
}

/** PostgreSQL refuses to run as root: then it runs as the user that its package made. */
function unprivileged() {
  if (process.getuid() !== 0) return {}
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

function makeCluster(folder) {
  const user = unprivileged()
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const settings = ['--encoding=UTF8', '--locale=C.UTF-8', '--username=postgres', '--auth=trust', '--no-sync']
  execFileSync(program('initdb'), ['-D', data, ...settings], { cwd: folder, stdio: ['ignore', 'ignore', 2], ...user })
  return { data, user }
}

async function connected(url, deadline, failed) {
  for (;;) {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    try {
      await Promise.race([client.connect(), failed])
      return client
    } catch (error) {
      if (error.code === 'ENDED' || performance.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
    }
  }
}

async function startServer({ fsync, folder }) {
  const { data, user } = makeCluster(folder)
  const port = await freePort()
  const own = ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=']
  const durability = fsync === undefined ? [] : ['-c', `fsync=${fsync}`]
  const child = spawn(program('postgres'), ['-D', data, '-p', String(port), ...own, ...durability], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
    ...user,
  })
  let log = ''
  child.stderr.on('data', (text) => {
    log = `${log}${text}`.slice(-4_000)
  })
  const failed = once(child, 'exit').then(() => {
    throw Object.assign(new Error(`postgres did not start: ${log}`), { code: 'ENDED' })
  })
  failed.catch(() => {})
  const stopAtExit = () => child.kill('SIGQUIT')
  process.once('exit', stopAtExit)
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const admin = await connected(url, performance.now() + START_MS, failed)
  // Someone else may have taken the port meanwhile, and what is theirs must not be emptied.
  const { rows } = await admin.query('SHOW data_directory')
  if (rows[0].data_directory !== data) throw new Error(`port ${port} was taken by another server`)
  return {
    url,
    admin,
    pid: child.pid,
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGINT')
      await exited
      process.off('exit', stopAtExit)
    },
  }
}

async function useServer(url) {
  const admin = new pg.Client({ connectionString: url })
  admin.on('error', () => {})
  await admin.connect()
  const { rows } = await admin.query(
    `SELECT 1 FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
     WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg\\_toast%' LIMIT 1`,
  )
  if (rows.length > 0) throw new Error('the database of --url is not empty, and a run would empty it')
  return { url, admin, pid: null, stop: async () => {} }
}

/** Figures of one server that the scenarios compare before and after. */
export class PostgresServer {
  constructor({ url, admin, pid, stop }) {
    this.url = url
    this.admin = admin
    this.pid = pid
    this.stopProcess = stop
  }

  static async open(options) {
    return new PostgresServer(options.url === undefined ? await startServer(options) : await useServer(options.url))
  }

  async query(text, values) {
    return (await this.admin.query(text, values)).rows
  }

  /** Every side begins on an empty database, and with the pages of the last one written. */
  async clear() {
    for (const schema of SCHEMAS) await this.admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    if (this.pid !== null) await this.admin.query('CHECKPOINT')
  }

  /** Position in the write-ahead log, in bytes. */
  async walBytes() {
    const [{ bytes }] = await this.query(`SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS bytes`)
    return Number(bytes)
  }

  /** What a job costs this server from now on; its CPU only when the server is of this machine. */
  async watch() {
    const cpu = () => (this.pid === null ? null : cpuMicroseconds(this.pid))
    const before = { cpu: cpu(), wal: await this.walBytes() }
    return async (jobs) => {
      const after = { cpu: cpu(), wal: await this.walBytes() }
      return {
        ...(before.cpu === null ? {} : { serverCpu: (after.cpu - before.cpu) / jobs }),
        walBytes: (after.wal - before.wal) / jobs,
      }
    }
  }

  /** Bytes of all tables and indexes that were made here. */
  async usedMemory() {
    const [{ bytes }] = await this.query(
      `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) AS bytes FROM pg_class c
       JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = ANY($1) AND relkind IN ('r', 'm')`,
      [SCHEMAS],
    )
    return Number(bytes)
  }

  /** Of every table that was made here: what it holds, what is dead in it, what ever died in it, and its bytes. */
  async tables() {
    const rows = await this.query(
      `SELECT schemaname || '.' || relname AS name, n_live_tup AS live, n_dead_tup AS dead, n_tup_upd + n_tup_del AS died,
              pg_table_size(relid) AS "tableBytes", pg_indexes_size(relid) AS "indexBytes",
              vacuum_count + autovacuum_count AS vacuums
       FROM pg_stat_user_tables WHERE schemaname = ANY($1) ORDER BY 1`,
      [SCHEMAS],
    )
    return rows.map(({ name, ...figures }) => ({
      name,
      ...Object.fromEntries(Object.entries(figures).map(([key, value]) => [key, Number(value)])),
    }))
  }

  async describe() {
    const show = async (name) => (await this.query(`SELECT current_setting($1) AS value`, [name]))[0].value
    return {
      postgres: await show('server_version'),
      fsync: await show('fsync'),
      synchronousCommit: await show('synchronous_commit'),
      given: this.pid === null,
    }
  }

  async stop() {
    await this.admin.end()
    await this.stopProcess()
  }
}
