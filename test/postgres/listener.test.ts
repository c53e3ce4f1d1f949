/** Hints between processes: heard at once, not believed where nothing comes, and back by themselves after any loss. */
import { Pool } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { HintSubscription } from '#dist/src/backends/backend.js'
import { locationOfPool } from '#dist/src/backends/postgres/caller-pool.js'
import { channelOf } from '#dist/src/backends/postgres/channel.js'
import type { LinkOptions } from '#dist/src/backends/postgres/connect.js'
import type { PostgresLocation } from '#dist/src/backends/postgres/location.js'
import { openWake } from '#dist/src/backends/postgres/open-wake.js'
import { parsePostgresUrl } from '#dist/src/backends/postgres/url.js'
import type { Wake } from '#dist/src/backends/postgres/wake.js'
import { eventually } from '../support/event.ts'
import { lookFor } from '../support/look.ts'
import { TransactionPooler } from '../support/pooler.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { FaultProxy } from '../support/proxy.ts'
import { open, optionsOf, type Warning } from './opening.ts'

let server: PostgresServer
let proxy: FaultProxy
const wakes: Wake[] = []
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.stop())
beforeEach(async () => {
  proxy = await FaultProxy.start({ upstream: server.port })
})
afterEach(async () => {
  await Promise.all(wakes.splice(0).map((wake) => wake.close()))
  await proxy.close()
})

async function openAt(
  where: string | PostgresLocation,
  options: Partial<LinkOptions> = {},
  warnings: Warning[] = [],
): Promise<Wake> {
  const location = typeof where === 'string' ? parsePostgresUrl(where) : where
  const { wake } = await openWake(await open(location, options), { ...optionsOf(options, warnings), location })
  wakes.push(wake)
  return wake
}

interface Ear {
  readonly heard: (string | null)[]
  readonly subscription: HintSubscription
}

function listenTo(wake: Wake, ...lanes: string[]): Ear {
  const heard: (string | null)[] = []
  const subscription = wake.subscribe(lanes, (lane) => heard.push(lane))
  subscription.want(true)
  return { heard, subscription }
}

/** Once it relies on what it hears. */
async function reliable({ heard, subscription }: Ear): Promise<void> {
  await eventually(() => subscription.isReliable, 'a listener that hears')
  heard.length = 0
}

const LISTENING =
  "SELECT pid FROM pg_stat_activity WHERE query ~ '^LISTEN|pg_listening_channels' AND pid <> pg_backend_pid()"
const viaProxy = (parameters = {}): string => server.urlOf({ port: proxy.port, parameters })

describe('a process', () => {
  it('hears of jobs of another one, in its lanes', async () => {
    const [one, other] = [await openAt(server.url), await openAt(server.url)]
    const ear = listenTo(other, 'a', 'b')
    await reliable(ear)
    one.ready('c')
    one.ready('a')
    await eventually(() => ear.heard.length > 0, 'a hint')
    expect(ear.heard).toEqual(['a'])
    one.ready(null)
    await eventually(() => ear.heard.length > 1, 'a hint')
    expect(ear.heard).toEqual(['a', null])
  })

  it('hears nothing of another namespace or schema', async () => {
    const ear = listenTo(await openAt(server.url), 'a')
    await reliable(ear)
    for (const wake of [
      await openAt(server.url, { namespace: 'other' }),
      await openAt(server.urlOf({ parameters: { schema: 'other' } })),
    ]) {
      wake.ready('a')
      wake.ready(null)
    }
    const same = await openAt(server.url)
    same.ready('a')
    await eventually(() => ear.heard.length > 0, 'a hint')
    expect(ear.heard).toEqual(['a'])
  })

  it('has no connection for it until somebody waits, and one then', async () => {
    const wake = await openAt(server.url)
    expect((await server.query(LISTENING)).length).toBe(0)
    for (const lane of ['a', 'b', 'c']) await reliable(listenTo(wake, lane))
    expect((await server.query(LISTENING)).length).toBe(1)
    await wake.close()
    await lookFor('its end', async () => ((await server.query(LISTENING)).length === 0 ? true : undefined))
  })

  it('notifies less often than jobs come', async () => {
    const wake = await openAt(server.url)
    const ear = listenTo(await openAt(server.url), 'a')
    await reliable(ear)
    for (let round = 0; round < 1000; round += 1) wake.ready('a')
    await eventually(() => ear.heard.length >= 2, 'the first and the last')
    expect(ear.heard.length).toBe(2)
  })

  it("takes the caller's pool for what it says, and a connection of its own to hear", async () => {
    const pool = new Pool({ connectionString: server.url, max: 1 })
    const wake = await openAt(locationOfPool(pool))
    const ear = listenTo(wake, 'a')
    await reliable(ear)
    expect(pool.totalCount).toBe(1)
    ;(await openAt(server.url)).ready('a')
    await eventually(() => ear.heard.length > 0, 'a hint')
    await wake.close()
    await pool.end()
  })

  it('C066 that was told not to, neither tells nor hears', async () => {
    for (const parameters of [{ notify: 'off' }, { listen: 'off' }]) {
      const ear = listenTo(await openAt(server.urlOf({ parameters })), 'a')
      expect(ear.subscription.isReliable).toBe(false)
    }
    expect((await server.query(LISTENING)).length).toBe(0)
  })
})

describe('a listener', () => {
  it('is back after its connection was ended, and says that something may have come meanwhile', async () => {
    const ear = listenTo(await openAt(server.url), 'a')
    for (let round = 0; round < 3; round += 1) {
      await reliable(ear)
      await server.query(LISTENING.replace('SELECT pid', 'SELECT pg_terminate_backend(pid)'))
      await eventually(() => ear.heard.includes(null), 'the hint of a new connection')
    }
  })

  it('F39 is back after a time without connections', async () => {
    const listen = viaProxy()
    const ear = listenTo(await openAt(server.urlOf({ parameters: { listen } })), 'a')
    await reliable(ear)
    proxy.set('refuse')
    proxy.reset()
    await eventually(() => !ear.subscription.isReliable, 'the loss')
    const { refused } = proxy.counters
    await eventually(() => proxy.counters.refused > refused + 3, 'some tries')
    proxy.set('pass')
    await reliable(ear)
    ;(await openAt(server.url)).ready('a')
    await eventually(() => ear.heard.length > 0, 'a hint')
    expect(ear.heard).toEqual(['a'])
  })

  it('is back after a restart of the server', async () => {
    const ear = listenTo(await openAt(server.url), 'a')
    await reliable(ear)
    await server.restart()
    await reliable(ear)
  })

  it('that hears nothing more, though its socket stands, is replaced', async () => {
    const { Listener } = await import('#dist/src/backends/postgres/listener.js')
    const { wiringOf } = await import('#dist/src/backends/postgres/connect.js')
    const link = await open(server.url)
    const { Client } = await import('pg')
    const channel = channelOf('holdfast', 'alive')
    const listener = new Listener({
      server: 'h',
      channel,
      wiring: wiringOf(optionsOf({ limits: { answerMs: 200, connectMs: 200 } })),
      makeClient: () => new Client(viaProxy()),
      say: (payload) => link.query({ name: 'say', text: 'SELECT pg_notify($1, $2)' }, [channel, payload]),
      onHint: () => {},
      onCancelled: () => {},
      aliveEveryMs: 20,
    })
    listener.start()
    await eventually(() => listener.isReliable, 'a listener that hears')
    proxy.set('blackhole')
    await eventually(() => !listener.isReliable, 'the discovery')
    proxy.set('pass')
    await eventually(() => listener.isReliable, 'a listener that hears again')
    await listener.close()
    expect(listener.isReliable).toBe(false)
  })

  it('behind a transaction pooler is not believed, and that is warned of once', async () => {
    const pooler = await TransactionPooler.start({ upstream: server.port, connections: 2 })
    const warnings: Warning[] = []
    const parameters = { listen: server.urlOf({ port: pooler.port }) }
    const limits = { answerMs: 300 }
    const ear = listenTo(await openAt(server.urlOf({ parameters }), { limits }, warnings), 'a')
    await eventually(() => warnings.length > 0, 'a warning')
    expect(ear.subscription.isReliable).toBe(false)
    expect(warnings).toEqual([{ code: 'LISTEN', message: expect.stringContaining('listen=URL') }])
    await Promise.all(wakes.splice(0).map((wake) => wake.close()))
    await pooler.close()
  })

  it('behind a pooler that is known is not made, but one at a direct URL is', async () => {
    const pooler = await TransactionPooler.start({ upstream: server.port, connections: 2 })
    const at = (parameters = {}) => openAt(server.urlOf({ port: pooler.port, parameters }))
    const deaf = listenTo(await at(), 'a')
    expect(deaf.subscription.isReliable).toBe(false)
    const wake = await at({ pooler: 'transaction', listen: server.url })
    const ear = listenTo(wake, 'a')
    await reliable(ear)
    ;(await openAt(server.url)).ready('a')
    await eventually(() => ear.heard.length > 0, 'a hint')
    await pooler.close()
  })
})
