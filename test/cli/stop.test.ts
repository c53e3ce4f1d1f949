/**
 * The end of `holdfast work`: by signals, with handlers that do not end, by a job that kills the process, by a parent that dies.
 * F6, F8, F10; C010, C026, C030.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type Holdfast } from 'holdfast'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type CliProcess, startCli, temporaryFolder } from '../support/cli.ts'
import { eventually, within } from '../support/event.ts'
import { killWritten, writtenPid } from '../support/pid-file.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { areGone } from '../support/process-tree.ts'
import { RedisServer } from '../support/redis-server.ts'
import { silent } from '../support/silent.ts'

const folder = temporaryFolder()
const INDEX = JSON.stringify(new URL('../../dist/src/index.js', import.meta.url).href)
const DIST_INDEX =
  process.env.HOLDFAST_DIST === undefined ? INDEX : JSON.stringify(`${process.env.HOLDFAST_DIST}/src/index.js`)

/** Writes the pid of whoever runs it, and then does what it is told. */
const HANDLER = `
import { execSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
export default ({ act, file }) => {
  writeFileSync(file, String(process.pid))
  if (act === 'loop') for (;;);
  if (act === 'sleep') execSync(\`echo $$ > '\${file}.sleeper'; exec sleep 300\`)
  // A native crash in a thread is the end of its whole process.
  if (act === 'crash') process.kill(process.pid, 'SIGSEGV')
  if (act === 'waits' || act === 'leaves') {
    const { ppid } = process
    const program = spawn('sleep', ['300'], { stdio: 'ignore' })
    writeFileSync(\`\${file}.sleeper\`, String(program.pid))
    if (act === 'waits') return new Promise((resolve) => program.on('exit', resolve))
    while (process.ppid === ppid);
    process.exit(1)
  }
  if (act === 'deaf') return new Promise(() => {})
  return 'done'
}`

const MODULE = `
import { defineJob, handle, inThread } from ${DIST_INDEX}
import run from './handler.mjs'
const module = new URL('./handler.mjs', import.meta.url)
const all = {
  inline: handle(defineJob('inline'), run),
  thread: inThread(defineJob('thread'), module),
  process: inThread(defineJob('process'), module, { isolation: 'process' }),
}
const { types, ...options } = JSON.parse(process.env.WORKER_OPTIONS)
export default {
  handlers: Object.entries(all).flatMap(([type, handler]) => (types.includes(type) ? [handler] : [])),
  concurrency: 2,
  lease: '10m',
  killGrace: 50,
  ...options,
}`

const STORES = ['sqlite', 'postgres', 'redis'] as const
const servers = new Map<string, PostgresServer | RedisServer>()

beforeAll(async () => {
  writeFileSync(join(folder, 'handler.mjs'), HANDLER)
  writeFileSync(join(folder, 'worker.mjs'), MODULE)
  servers.set('postgres', await PostgresServer.start())
  servers.set('redis', await RedisServer.start({ appendOnly: true }))
})
afterAll(() => Promise.all([...servers.values()].map((server) => server.stop())))

const started: CliProcess[] = []
const clients: Holdfast[] = []
/** Files with the pids of what handlers have started, and of handler processes, should a test fail to end them. */
const sleepers: string[] = []
afterEach(async () => {
  killWritten(sleepers.splice(0))
  for (const { child } of started.splice(0))
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  await Promise.all(clients.splice(0).map((client) => client.close()))
})

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

interface Stage {
  readonly hf: Holdfast
  work(options?: object, flags?: readonly string[]): CliProcess
  /** Enqueues a job and gives back its id and the file it writes its pid to. */
  job(type: string, act: string, options?: object): Promise<{ id: string; file: string; pid: () => Promise<number> }>
}

async function stage(name: string, store: (typeof STORES)[number] = 'sqlite'): Promise<Stage> {
  const url = servers.get(store)?.url ?? `sqlite:${join(folder, `${name}.db`)}`
  // One server serves all tests.
  const namespace = `${store}-${name}`
  const hf = await connect(url, { logger: silent, namespace })
  clients.push(hf)
  let count = 0
  const types: string[] = []
  return {
    hf,
    work: (options = {}, flags = []) => {
      const env = { HOLDFAST_URL: url, HOLDFAST_LOG: 'silent', WORKER_OPTIONS: JSON.stringify({ types, ...options }) }
      const args = ['work', './worker.mjs', '--json', '--stop-deadline', '100ms', '--namespace', namespace, ...flags]
      const run = startCli(args, { env, cwd: folder })
      run.ended.catch(() => {})
      started.push(run)
      return run
    },
    job: async (type, act, options = {}) => {
      count += 1
      types.push(type)
      const file = join(folder, `${namespace}-${count}`)
      sleepers.push(`${file}.sleeper`)
      if (type === 'process') sleepers.push(file)
      const { id } = await hf.enqueue(type, { act, file }, options)
      const begun = ['sleep', 'waits', 'leaves'].includes(act) ? `${file}.sleeper` : file
      return {
        id,
        file,
        pid: async () => {
          await writtenPid(begun)
          return writtenPid(file)
        },
      }
    },
  }
}

describe('F8 one signal', () => {
  it.each([
    ['an inline handler that ignores it', 'sqlite', 'inline', 'deaf'],
    ['an inline handler that ignores it', 'postgres', 'inline', 'deaf'],
    ['an inline handler that ignores it', 'redis', 'inline', 'deaf'],
    ['a thread in a loop', 'sqlite', 'thread', 'loop'],
    ['a process in a loop', 'sqlite', 'process', 'loop'],
  ] as const)(
    'C026 with %s, on %s: the process ends with 0, and the job is free at once and uncharged',
    async (_name, store, type, act) => {
      const { hf, work, job } = await stage(`once-${type}`, store)
      const { id, pid } = await job(type, act)
      const run = work()
      await pid()
      run.child.kill('SIGTERM')
      const { code, stdout } = await within(run.ended, 'the process ends')
      expect(code).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject({ completed: 0, failed: 0, dead: 0 })
      expect(await hf.get(id)).toMatchObject({ state: 'queued', attempts: 0, leaseExpiresAt: null })
    },
  )

  it('with a thread in a native call: the job is free, and the process does not wait for the call', async () => {
    const { hf, work, job } = await stage('once-native')
    const { id, pid } = await job('thread', 'sleep')
    const run = work()
    await pid()
    run.child.kill('SIGTERM')
    await within(run.ended, 'the process ends')
    expect(await hf.get(id)).toMatchObject({ state: 'queued', attempts: 0 })
  })
})

describe('F8 C030 two signals', () => {
  /** The second is sent once the first has been seen, or the two may arrive as one. */
  async function twice(run: CliProcess, signal: NodeJS.Signals): Promise<void> {
    run.child.kill(signal)
    const again = setInterval(() => run.child.kill(signal), 50)
    await within(run.ended, 'the process ends').finally(() => clearInterval(again))
  }

  it.each(STORES)(
    'end it at once with 1, its handler processes too; nothing is given back, and the lease stands, on %s',
    async (store) => {
      const { hf, work, job } = await stage('twice', store)
      const { id, pid } = await job('process', 'loop')
      const run = work({ killGrace: '1h' })
      const child = await pid()
      expect(isAlive(child)).toBe(true)
      await twice(run, 'SIGTERM')
      expect(await run.ended).toMatchObject({ code: 1, stdout: '' })
      await eventually(() => !isAlive(child), 'the handler process is gone')
      expect((await hf.get(id))?.state).toBe('running')
    },
  )

  it('end it also while a thread is in a native call', async () => {
    const { work, job } = await stage('twice-native')
    const { pid } = await job('thread', 'sleep')
    const run = work({ killGrace: '1h' })
    await pid()
    await twice(run, 'SIGINT')
    expect(await run.ended).toMatchObject({ stdout: '' })
  })
})

it.each(STORES)(
  'F7 a worker whose slots are all lost ends, so that a fresh one can be started, on %s',
  async (store) => {
    const { hf, work, job } = await stage('stuck', store)
    const options = { timeout: 100, maxAttempts: 1 }
    const jobs = [await job('thread', 'sleep', options), await job('thread', 'sleep', options)]
    const run = work()
    await Promise.all(jobs.map(({ pid }) => pid()))
    const { code, stderr } = await within(run.ended, 'the process ends')
    expect(code).not.toBe(0)
    expect(stderr).toMatch(/the worker stops: .*2 handler threads or processes cannot be ended/)
    expect(stderr).toMatch(/[23] of its handlers cannot be ended/)
    for (const { id } of jobs)
      expect(await hf.get(id)).toMatchObject({ state: 'dlq', lastFailure: { code: 'TIMEOUT' } })
  },
)

it('F7 work --until-empty whose slots are all lost says so and ends, too', async () => {
  const { work, job } = await stage('stuck-until-empty')
  const options = { timeout: 100, maxAttempts: 1 }
  const jobs = [await job('thread', 'sleep', options), await job('thread', 'sleep', options)]
  const run = work({}, ['--until-empty'])
  await Promise.all(jobs.map(({ pid }) => pid()))
  const { code, stdout, stderr } = await within(run.ended, 'the process ends')
  expect({ isFailure: code !== 0, stdout }).toEqual({ isFailure: true, stdout: '' })
  expect(stderr).toMatch(/cannot be ended/)
})

it('a handler process dies with its parent, also in an endless loop', async () => {
  const { work, job } = await stage('orphan')
  const { pid } = await job('process', 'loop')
  const run = work()
  const child = await pid()
  run.child.kill('SIGKILL')
  await run.ended
  await eventually(() => !isAlive(child), 'the handler process is gone')
})

it.each([
  ['awaits it', 'waits'],
  ['ends its process as soon as it has no parent', 'leaves'],
])(
  'F10 a handler process dies with its parent and takes along a program, also when its handler %s',
  async (_name, act) => {
    const { work, job } = await stage(`orphan-${act}`)
    const { pid, file } = await job('process', act)
    const run = work()
    const child = await pid()
    const program = await writtenPid(`${file}.sleeper`)
    expect(await areGone([child, program])).toBe(false)
    run.child.kill('SIGKILL')
    await run.ended
    await eventually(() => areGone([child, program]), 'both are gone')
  },
)

it('F6 C010 a job that kills the whole process is dead after three deaths, and the others are done', async () => {
  const { hf, work, job } = await stage('poison')
  const poison = await job('thread', 'crash')
  const good = await Promise.all(Array.from({ length: 20 }, () => job('inline', 'end')))
  let deaths = 0
  let isOver = false
  // The supervisor: starts the worker again whenever it dies.
  const supervised = (async () => {
    while (!isOver) {
      const run = work({ lease: 300, reap: 50, poll: 20, prefetch: 0 })
      const { code } = await run.ended
      if (code !== 0) deaths += 1
    }
  })()
  await eventually(async () => (await hf.get(poison.id))?.state === 'dlq', 'the poison is dead', 30_000)
  // Whoever runs beside it when the process dies loses an attempt too, which its history shows as what it was, but not its last crash.
  await eventually(async () => (await hf.stats()).counts.completed === 20, 'the others are done', 30_000)
  isOver = true
  for (const { child } of started) if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
  await supervised
  expect(deaths).toBe(3)
  expect(await hf.get(poison.id)).toMatchObject({ dlqCode: 'CRASH_LOOP', attempts: 3 })
  const attempts = await hf.attempts(poison.id)
  expect(attempts.map(({ outcome, failure }) => [outcome, failure?.code])).toEqual(
    Array.from({ length: 3 }, () => ['crashed', 'LEASE_EXPIRED']),
  )
  for (const { id } of good) {
    const outcomes = (await hf.attempts(id)).map(({ outcome, failure }) => failure?.code ?? outcome)
    expect(new Set([...outcomes, 'LEASE_EXPIRED'])).toEqual(new Set(['succeeded', 'LEASE_EXPIRED']))
  }
}, 60_000)
