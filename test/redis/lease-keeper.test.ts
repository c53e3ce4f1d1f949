/** The thread that renews leases of a Redis store: its connection, its end, and clients whose options cannot cross to it. */
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, expect, it } from 'vitest'
import { connectionIsCut, type KeeperStage, keeperOf, threadDies } from '../support/keeper-scene.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { RedisStage } from './stage.ts'

const stage = new RedisStage()
afterEach(() => stage.clear())

async function scene(): Promise<{ readonly server: RedisServer; readonly on: KeeperStage }> {
  const server = await stage.server()
  return {
    server,
    on: {
      client: () => stage.client(server.url),
      child: (script, ...args) => stage.child(script, server.url, ...args),
    },
  }
}

const connectionsOf = async (server: RedisServer): Promise<readonly { readonly id: string; readonly name: string }[]> =>
  String(await server.command('CLIENT', 'LIST'))
    .split('\n')
    .flatMap((line) => {
      const [, id = '', name = ''] = /^id=(\d+) .*? name=(\S*)/.exec(line) ?? []
      return name.startsWith(`holdfast:${stage.namespace}`) ? [{ id, name }] : []
    })

it('F5 the thread is terminated: it is replaced, and meanwhile the main loop renews', async () => {
  await threadDies((await scene()).on)
})

it('F17 the connection of the thread is cut while the main loop is blocked: it renews over the next one', async () => {
  const { server, on } = await scene()
  await connectionIsCut(on, async () => {
    const own = (await connectionsOf(server)).filter(({ name }) => name.endsWith(':leases'))
    expect(own).toHaveLength(1)
    await server.command('CLIENT', 'KILL', 'ID', own[0]?.id ?? '')
  })
})

it('a worker process holds three connections, one of them for its leases, and none once it is closed', async () => {
  const { server, on } = await scene()
  const child = on.child('keeper.mjs', 'spin', '0', '{}')
  await child.line('ready')
  const names = (await connectionsOf(server)).map(({ name }) => name.replace(/^holdfast:[^:]+/, ''))
  expect(names.sort()).toEqual(['', '', ':leases'])
  child.tell('stop')
  expect(await child.line('threads')).toBe('threads 0')
  expect(await connectionsOf(server)).toEqual([])
})

it("a caller's client in plain data has its thread; one with a function in it is renewed on the main loop, and it is said", async () => {
  const { server } = await scene()
  const warned: string[] = []
  const logger = pino(
    { level: 'warn' },
    { write: (line: string) => warned.push((JSON.parse(line) as { code: string }).code) },
  )
  const own = { port: server.port, lazyConnect: true }
  const plain = new Redis(own)
  const plainClient = await stage.client(plain as never, { logger })
  expect(await keeperOf(plainClient)).toEqual(['thread', 'thread'])
  expect(warned).toEqual([])
  const lively = new Redis({ ...own, natMap: () => null } as never)
  const livelyClient = await stage.client(lively as never, { logger })
  expect(await keeperOf(livelyClient)).toEqual(['main', 'main'])
  expect(warned).toEqual(['LEASE_KEEPER'])
})
