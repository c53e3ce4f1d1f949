/** What a client and its workers cost a server that has nothing for them, and what they do while it is away. */
import { connect as connectSocket } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { connect, defineJob, handle } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { Child } from '../support/child.ts'
import { freePort } from '../support/free-port.ts'
import { LINGER_MS, lingeredMs, stopsWhileAway, WAYS_AWAY } from '../support/leaver.ts'
import { lookFor } from '../support/look.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { QUICK, RedisStage } from './stage.ts'

const stage = new RedisStage()
afterEach(() => stage.clear())

const task = defineJob<null>('task')
const AWAY_S = process.env.HOLDFAST_LONG_OUTAGE === undefined ? [3, 10] : [3, 10, 40]

describe('C031 an idle worker whose server goes away', () => {
  it.each(AWAY_S)('for %d s: says so, and runs a job within 3 s of the return', async (seconds) => {
    const server = await stage.server()
    const hf = await stage.client(server.url)
    const ran = new Set<string>()
    await hf.worker({ handlers: [handle(task, (_, { jobId }) => void ran.add(jobId))] })
    await lookFor('it waits', async () =>
      String(await server.command('CLIENT', 'LIST')).includes('cmd=blpop') ? true : undefined,
    )
    await server.kill()
    const away = setTimeout(seconds * 1_000)
    const health = await hf.health()
    expect(health).toMatchObject({ ok: false, store: { ok: false } })
    await away
    await server.restart()
    const readyAt = performance.now()
    const producer = await stage.client(server.url)
    const { id } = await producer.enqueue(task, null)
    await lookFor('it ran', async () => (ran.has(id) ? true : undefined))
    expect(performance.now() - readyAt).toBeLessThan(3_000)
    expect((await hf.health()).ok).toBe(true)
  })
})

describe('C022 C023 C024 C035 C036 processes', () => {
  it('C035 nobody listens: one typed rejection that names the address, nothing unhandled, the process ends', async () => {
    const port = await freePort()
    const child = stage.child('leaver.mjs', `redis://127.0.0.1:${port}`, 'absent')
    const line = await child.line('rejected')
    expect(line).toMatch(/^rejected STORE_UNAVAILABLE true /)
    expect(line).toContain(`127.0.0.1:${port}`)
    expect(await lingeredMs(child)).toBeLessThan(LINGER_MS)
  })

  it('C023 an idle worker that is closed lets its process end', async () => {
    const server = await stage.server()
    const child = stage.child('leaver.mjs', server.url, 'worker')
    await child.line('ready')
    child.tell('stop')
    expect(await lingeredMs(child)).toBeLessThan(LINGER_MS)
  })

  it('C024 a producer that is closed lets its process end, and its job is there', async () => {
    const server = await stage.server()
    const child = stage.child('leaver.mjs', server.url, 'producer')
    const [, id = ''] = (await child.line('enqueued')).split(' ')
    expect(await lingeredMs(child)).toBeLessThan(LINGER_MS)
    expect((await (await stage.client(server.url)).get(id))?.state).toBe('queued')
  })

  it.each(WAYS_AWAY)(
    'C022 a worker stops within its deadline and its process ends while the server is away: %s',
    async (how) => {
      const proxy = await stage.proxy(await stage.server())
      await stopsWhileAway(stage.child('leaver.mjs', proxy.url, 'worker'), proxy, how)
    },
  )

  it('C036 a worker without listeners outlives an outage of 4 s, warns at most once a second, and goes on', async () => {
    const server = await stage.server()
    const proxy = await stage.proxy(server)
    const path = await stage.file('ledger')
    const args = [proxy.url, stage.namespace, path, JSON.stringify(QUICK)]
    const child = new Child('crew.mjs', args, { HOLDFAST_LOG: 'warn' })
    stage.defer(() => child.kill())
    await child.line('ready')
    proxy.set('refuse')
    proxy.reset()
    await setTimeout(4_000)
    proxy.set('pass')
    const hf = await stage.client(server.url)
    const { id } = await hf.enqueue('task', {})
    await lookFor('the job ran', async () => ((await hf.get(id))?.state === 'completed' ? true : undefined))
    const warnings = child.errors.split('\n').filter((line) => line.includes('"code":"STORE_UNAVAILABLE"'))
    expect(warnings.length).toBeLessThanOrEqual(8)
  })
})

/** Counts what clients send, not what scripts do inside. */
async function commandsOf(server: RedisServer): Promise<{ readonly commands: string[]; end(): void }> {
  const socket = connectSocket(server.port, '127.0.0.1')
  const lines = createInterface({ input: socket })
  const commands: string[] = []
  await new Promise<void>((resolve) => {
    lines.once('line', () => {
      lines.on('line', (line) => {
        if (!line.includes(' lua]')) commands.push(line)
      })
      resolve()
    })
    socket.write('MONITOR\r\n')
  })
  return { commands, end: () => socket.destroy() }
}

describe('C042 the price of idleness', () => {
  const WINDOW_MS = 20_000
  /** Sixty a minute; what is done every few seconds (claims, looks for expired leases, beats) may fall into the window once more. */
  const COMMANDS_MAX = (60 * WINDOW_MS) / 60_000 + 3

  async function idle(laneCount: number): Promise<number> {
    const server = await stage.server()
    const hf = await connect(server.url, { namespace: stage.namespace })
    stage.defer(() => hf.close())
    const lanes = Array.from({ length: laneCount }, (_, index) => `lane-${index}`)
    // Lanes that have held something are looked at, those that never did need not be.
    await hf.enqueueMany(lanes.map((queue) => ({ job: task, input: null, options: { queue } })))
    await hf.worker({ handlers: [handle(task, () => {})], lanes })
    await lookFor('nothing is left', async () => {
      const { counts, total } = await hf.stats()
      return counts.completed === total ? true : undefined
    })
    await lookFor('no wake-up is left', async () => {
      const lists = (await server.command('KEYS', `hf:{${stage.namespace}}:wake:*`)) as readonly string[]
      return lists.length === 0 ? true : undefined
    })
    const { commands, end } = await commandsOf(server)
    await setTimeout(WINDOW_MS)
    end()
    const kinds = new Map<string, number>()
    for (const line of commands) {
      const kind = line.split('"')[1]?.toLowerCase() ?? line
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
    }
    const perMinute = (commands.length * 60_000) / WINDOW_MS
    console.log(`${laneCount} lanes: ${perMinute} commands a minute, ${JSON.stringify(Object.fromEntries(kinds))}`)
    return commands.length
  }

  it('of a worker with one lane and of one with twenty is at most 60 commands a minute', async () => {
    const [one = 0, twenty = 0] = await Promise.all([idle(1), idle(20)])
    expect(one).toBeLessThanOrEqual(COMMANDS_MAX)
    expect(twenty).toBeLessThanOrEqual(COMMANDS_MAX)
  }, 60_000)
})

describe('C043 connections', () => {
  const connections = async (server: RedisServer): Promise<number> =>
    String(await server.command('CLIENT', 'LIST'))
      .split('\n')
      .filter((line) => line.includes('name=holdfast')).length

  it('of a process with a worker on 200 lanes are five at most', async () => {
    const server = await stage.server()
    const hf = await stage.client(server.url)
    const lanes = Array.from({ length: 200 }, (_, index) => `lane-${index}`)
    await hf.worker({ handlers: [handle(task, () => {})], lanes })
    await hf.enqueueMany(lanes.map((queue) => ({ job: task, input: null, options: { queue } })))
    await lookFor('all have run', async () => ((await hf.stats()).counts.completed === 200 ? true : undefined))
    expect(await connections(server)).toBeLessThanOrEqual(5)
  })

  it('of a thousand clients that were opened and closed are gone', async () => {
    const server = await stage.server()
    for (let round = 0; round < 40; round += 1) {
      const clients = await Promise.all(
        Array.from({ length: 25 }, () => connect(server.url, { namespace: stage.namespace })),
      )
      await Promise.all(clients.map((hf) => hf.close()))
    }
    await lookFor('none is left', async () => ((await connections(server)) === 0 ? true : undefined))
  })
})
