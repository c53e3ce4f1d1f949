/** Ends of jobs on Redis: nothing is said while nobody waits, one word for many ends while somebody does. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RedisBackend } from '#dist/src/backends/redis/backend.js'
import { eventually } from '../support/event.ts'
import { claimOne, complete, put, settle } from '../support/protocol.ts'
import { RedisServer } from '../support/redis-server.ts'
import { openBackend } from './support.ts'

let server: RedisServer
const opened: RedisBackend[] = []

beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(async () => {
  await Promise.all(opened.map((backend) => backend.close()))
  await server.stop()
})

async function open(namespace: string): Promise<RedisBackend> {
  const backend = await openBackend(server.url, namespace)
  opened.push(backend)
  return backend
}

const fresh = (): string => `test-${randomBytes(6).toString('hex')}`

/** How often the server ran a command, within scripts too. */
async function calls(name: string): Promise<number> {
  const stats = String(await server.command('INFO', 'commandstats'))
  return Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
}

let jobs = 0
async function endOne(backend: RedisBackend): Promise<void> {
  jobs += 1
  await put(backend, { id: `mail/${jobs}`, lane: 'mail' })
  await settle(backend, complete(await claimOne(backend, { lanes: ['mail'] })))
}

describe('ends', () => {
  test('are told to nobody while nobody waits, and a connection for them is opened by who waits alone', async () => {
    const namespace = fresh()
    const backend = await open(namespace)
    const before = [await calls('publish'), await calls('subscribe')]
    for (let round = 0; round < 20; round += 1) await endOne(backend)
    expect([await calls('publish'), await calls('subscribe')]).toEqual(before)
  })

  test('are told to every process that waits in the lane, those of a moment together', async () => {
    const namespace = fresh()
    const [telling, one, two] = [await open(namespace), await open(namespace), await open(namespace)]
    const heard = [0, 0]
    const stops = [one, two].map((backend, index) =>
      backend.awaitEnds('mail', () => {
        heard[index] = (heard[index] ?? 0) + 1
      }),
    )
    const other = { heard: 0 }
    const stopOther = one.awaitEnds('other', () => {
      other.heard += 1
    })
    await eventually(() => heard.every((count) => count > 0), 'both listen')
    await eventually(async () => {
      await endOne(telling)
      return heard.every((count) => count > 1)
    }, 'both hear of an end')
    expect(other.heard).toBe(1)
    const before = await calls('publish')
    const startedAt = performance.now()
    for (let round = 0; round < 200; round += 1) await endOne(telling)
    const said = (await calls('publish')) - before
    expect(said).toBeGreaterThan(0)
    expect(said).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 20)
    for (const stop of [...stops, stopOther]) stop()
    const last = [...heard]
    await endOne(telling)
    expect(heard).toEqual(last)
  })

  test('are heard again after the connection was lost', async () => {
    const namespace = fresh()
    const [telling, waiting] = [await open(namespace), await open(namespace)]
    let heard = 0
    waiting.awaitEnds('mail', () => {
      heard += 1
    })
    await eventually(() => heard > 0, 'it listens')
    await server.command('CLIENT', 'KILL', 'TYPE', 'PUBSUB')
    heard = 0
    await eventually(async () => {
      await endOne(telling)
      return heard > 1
    }, 'it hears again')
  })

  test('cost a user who may not subscribe nothing but the hints', async () => {
    const namespace = fresh()
    await server.command('ACL', 'SETUSER', 'deaf', 'on', '>secret', '~*', '+@all', '-subscribe', 'resetchannels')
    const backend = await openBackend(`redis://deaf:secret@127.0.0.1:${server.port}`, namespace)
    opened.push(backend)
    const stop = backend.awaitEnds('mail', () => {})
    await eventually(async () => String(await server.command('ACL', 'LOG')).includes('subscribe'), 'a refusal')
    for (let round = 0; round < 3; round += 1) await endOne(backend)
    stop()
  })
})
