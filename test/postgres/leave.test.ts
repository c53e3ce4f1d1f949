/** Processes that are done with the store, or find it gone, end by themselves. C022, C023, C024. */
import { connect } from 'holdfast'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Child } from '../support/child.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { FaultProxy } from '../support/proxy.ts'
import { silent } from '../support/silent.ts'

/** From the last word of the script to the end of its process; a clean close is given a second. */
const LINGER_MS = 1_000

let server: PostgresServer
const children: Child[] = []
const proxies: FaultProxy[] = []
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.stop())
afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()))
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()))
})

function leaver(url: string, how: string): Child {
  const child = new Child('leaver.mjs', [url, 'leave', how])
  children.push(child)
  return child
}

async function lingeredMs(child: Child): Promise<number> {
  const at = async (word: string): Promise<number> => Number((await child.line(word)).split(' ')[1])
  const [closed, exit] = [await at('closed'), await at('exit')]
  await child.exited
  expect(child.lines.filter((line) => line.startsWith('unhandled'))).toEqual([])
  return exit - closed
}

describe('a process that leaves PostgreSQL', () => {
  it('C023 after an idle worker', async () => {
    const child = leaver(server.url, 'worker')
    await child.line('ready')
    child.tell('stop')
    expect(await lingeredMs(child)).toBeLessThan(LINGER_MS)
  })

  it('C024 after one job, which is there', async () => {
    const child = leaver(server.url, 'producer')
    const [, id = ''] = (await child.line('enqueued')).split(' ')
    expect(await lingeredMs(child)).toBeLessThan(LINGER_MS)
    const hf = await connect(server.url, { namespace: 'leave', logger: silent })
    expect((await hf.get(id))?.state).toBe('queued')
    await hf.close()
  })

  it.each(['cut', 'blackhole'])('C022 within its deadline while the server is away: %s', async (how) => {
    const proxy = await FaultProxy.start({ upstream: server.port })
    proxies.push(proxy)
    const child = leaver(server.urlOf({ port: proxy.port }), 'worker')
    await child.line('ready')
    if (how === 'cut') {
      proxy.set('refuse')
      proxy.reset()
    } else proxy.set('blackhole')
    child.tell('stop')
    const [, stopMs] = (await child.line('stopped')).split(' ')
    // Its deadline of 2 s and the silence after it; the rest is for a busy machine.
    expect(Number(stopMs)).toBeLessThan(4_000)
    expect(await lingeredMs(child)).toBeLessThan(LINGER_MS)
  })
})
