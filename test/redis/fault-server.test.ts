/** One thing at a time goes wrong with the server, and one worker and one producer live through it. */
import { appendFile } from 'node:fs/promises'
import { connect as connectSocket } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { defineJob, type Holdfast, handle, type Worker } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { eventsOf, rejection } from '../support/event.ts'
import { lookFor } from '../support/look.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { miscounts, QUICK, RedisStage, unexplained } from './stage.ts'

const stage = new RedisStage()
afterEach(() => stage.clear())

const task = defineJob<{ workMs?: number }>('task', { maxCrashes: 100 })
const DEBUG = ['--enable-debug-command', 'local']

interface Crew {
  readonly port: number
  readonly hf: Holdfast
  readonly worker: Worker
  readonly ran: string[]
}

async function start(url: string, more: Readonly<Record<string, number>> = {}): Promise<Crew> {
  const hf = await stage.client(url)
  const ran: string[] = []
  const handler = handle(task, async ({ workMs }, { jobId }) => {
    ran.push(jobId)
    if (workMs !== undefined) await setTimeout(workMs)
  })
  const worker = await hf.worker({ handlers: [handler], ...QUICK, ...more })
  return { port: Number(new URL(url).port), hf, worker, ran }
}

async function enqueue(hf: Holdfast, count: number, workMs?: number): Promise<readonly string[]> {
  const input = workMs === undefined ? {} : { workMs }
  const jobs = await hf.enqueueMany(Array.from({ length: count }, () => ({ job: task, input })))
  return jobs.map(({ id }) => id)
}

const allDone = (hf: Holdfast): Promise<true> =>
  lookFor('all jobs are done', async () => {
    const { counts, total } = await hf.stats()
    return counts.completed === total ? true : undefined
  })

/** Jobs in small batches while `disturb` goes on; then nothing is missing and nothing ran without a grant. */
async function live(crew: Crew, rounds: number, disturb: () => Promise<unknown>): Promise<void> {
  const ids: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    const [some] = await Promise.all([enqueue(crew.hf, 10, 5), disturb()])
    ids.push(...some)
  }
  await allDone(crew.hf)
  expect(await unexplained(crew.hf, ids, crew.ran)).toEqual([])
  expect(await miscounts(crew, stage.namespace)).toEqual([])
}

it('F17 CLIENT KILL TYPE normal again and again', async () => {
  const server = await stage.server()
  const crew = await start(server.url)
  await live(crew, 10, () => server.command('CLIENT', 'KILL', 'TYPE', 'normal'))
})

it('F17 CLIENT PAUSE 2000 WRITE', async () => {
  const server = await stage.server()
  const crew = await start(server.url)
  await server.command('CLIENT', 'PAUSE', 2000, 'WRITE')
  await live(crew, 2, () => Promise.resolve())
})

it('F17 maxclients reached: says so, and comes back when there is room', async () => {
  const server = await stage.server()
  const proxy = await stage.proxy(server)
  const { hf } = await start(proxy.url)
  const others = Array.from({ length: 6 }, () => connectSocket(server.port, '127.0.0.1'))
  await Promise.all(others.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
  await server.command('CONFIG', 'SET', 'maxclients', 4)
  proxy.reset()
  const { store } = await hf.health()
  expect(store.error).toMatch(/maxclients|max number of clients/)
  for (const socket of others) socket.destroy()
  await enqueue(hf, 3)
  await allDone(hf)
})

/** A restart that takes about two seconds to load, during which the server answers LOADING. */
async function slowToLoad(): Promise<RedisServer> {
  const server = await stage.server({ args: DEBUG, config: ['loading-process-events-interval-bytes 1024'] })
  await server.command('DEBUG', 'POPULATE', 10_000)
  await server.command('BGREWRITEAOF')
  await lookFor('the log is rewritten', async () =>
    String(await server.command('INFO', 'persistence')).includes('aof_rewrite_in_progress:0') ? true : undefined,
  )
  await appendFile(join(server.folder, 'redis.conf'), 'key-load-delay 200\n')
  return server
}

it('F18 C034 SIGKILL and a restart with LOADING: work goes on, and a client that starts meanwhile waits', async () => {
  const server = await slowToLoad()
  const crew = await start(server.url)
  const ids = await enqueue(crew.hf, 20, 5)
  await server.kill()
  const restarted = server.restart()
  await lookFor('it is loading', async () => {
    const error = await rejection(server.command('PING'))
    return error.message.startsWith('LOADING') ? true : undefined
  })
  const late = await stage.client(server.url)
  await restarted
  const more = await enqueue(late, 5)
  await allDone(crew.hf)
  expect(await unexplained(crew.hf, [...ids, ...more], crew.ran)).toEqual([])
})

it('F20 C041 SCRIPT FLUSH and FUNCTION FLUSH in a loop are not seen by anyone', async () => {
  const server = await stage.server()
  const crew = await start(server.url)
  const errors = eventsOf(crew.worker, 'error')
  await live(crew, 10, async () => {
    await server.command('SCRIPT', 'FLUSH')
    await server.command('FUNCTION', 'FLUSH')
  })
  expect(errors).toEqual([])
  expect(crew.ran.length).toBe(100)
})

it('F21 a busy script of somebody else for 1.5 s', async () => {
  const server = await stage.server({ config: ['busy-reply-threshold 100'] })
  const crew = await start(server.url)
  const script = `local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end
    local till = now() + 1500 while now() < till do end return 1`
  const busy = server.command('EVAL', script, 0)
  await live(crew, 2, () => Promise.resolve())
  expect(await busy).toBe(1)
})

it.each(['DEBUG SLEEP 2', 'SIGSTOP'])('F22 %s', async (how) => {
  const server = await stage.server({ args: DEBUG })
  const crew = await start(server.url)
  if (how === 'SIGSTOP') await server.pause()
  const stalled =
    how === 'SIGSTOP' ? setTimeout(2_500).then(() => server.resume()) : server.command('DEBUG', 'SLEEP', 2)
  await live(crew, 2, () => Promise.resolve())
  await stalled
})

type Command = readonly [string, ...string[]]

describe('F27 a server that refuses writes', () => {
  const refusals: Readonly<Record<string, { readonly begin: readonly Command[]; readonly end: readonly Command[] }>> = {
    READONLY: {
      begin: [['REPLICAOF', '127.0.0.1', '1']],
      end: [['REPLICAOF', 'NO', 'ONE']],
    },
    NOREPLICAS: {
      begin: [['CONFIG', 'SET', 'min-replicas-to-write', '1']],
      end: [['CONFIG', 'SET', 'min-replicas-to-write', '0']],
    },
    MASTERDOWN: {
      begin: [
        ['CONFIG', 'SET', 'replica-serve-stale-data', 'no'],
        ['REPLICAOF', '127.0.0.1', '1'],
      ],
      end: [['REPLICAOF', 'NO', 'ONE']],
    },
  }

  it.each(Object.entries(refusals))(
    '%s: an enqueue fails as not done, and all goes on afterwards',
    async (_, { begin, end }) => {
      const server = await stage.server()
      const { hf, ran } = await start(server.url)
      const [underWay = ''] = await enqueue(hf, 1, 500)
      await lookFor('it runs', async () => (ran.length === 1 ? true : undefined))
      const hasty = await stage.client(server.url, { callDeadline: 300 })
      for (const command of begin) await server.command(...command)
      expect(await rejection(hasty.enqueue(task, {}))).toMatchObject({
        code: 'STORE_UNAVAILABLE',
        retryable: true,
        details: { outcome: 'notDone' },
      })
      await lookFor('health() says so', async () => ((await hf.health()).ok ? undefined : true))
      for (const command of end) await server.command(...command)
      const ids = [underWay, ...(await enqueue(hf, 5))]
      await allDone(hf)
      expect(await unexplained(hf, ids, ran)).toEqual([])
      expect((await hf.stats()).total).toBe(6)
    },
  )
})

describe('F30 lost wake-ups cost no more than the poll', () => {
  it('the wake lists are deleted, the blocking connections are killed', async () => {
    const server = await stage.server()
    const { hf, ran } = await start(server.url, { poll: 300 })
    const other = await stage.client(server.url)
    const lateness: number[] = []
    for (let round = 0; round < 6; round += 1) {
      const before = performance.now()
      const [id = ''] = await enqueue(other, 1)
      await server.command('DEL', `hf:{${stage.namespace}}:wake:default`)
      const clients = String(await server.command('CLIENT', 'LIST')).split('\n')
      const blocked = clients
        .filter((line) => line.includes('cmd=blpop'))
        .map((line) => /id=(\d+)/.exec(line)?.[1] ?? '')
      for (const each of blocked) await server.command('CLIENT', 'KILL', 'ID', each)
      await lookFor('it ran', async () => (ran.includes(id) ? true : undefined))
      lateness.push(performance.now() - before)
    }
    await allDone(hf)
    expect(Math.max(...lateness)).toBeLessThan(2_000)
  })
})
