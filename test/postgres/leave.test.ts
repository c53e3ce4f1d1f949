/** Processes that are done with the store, or find it gone, end by themselves. C022, C023, C024. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LINGER_MS, lingeredMs, stopsWhileAway, WAYS_AWAY } from '../support/leaver.ts'
import type { PostgresServer } from '../support/postgres-server.ts'
import { PostgresStage } from './stage.ts'

const stage = new PostgresStage()
let server: PostgresServer
beforeEach(async () => {
  server = await stage.server()
})
afterEach(() => stage.clear())

describe('a process that leaves PostgreSQL', () => {
  it('C023 after an idle worker', async () => {
    const child = stage.child('leaver.mjs', server.url, 'worker')
    await child.line('ready')
    child.tell('stop')
    expect(await lingeredMs(child)).toBeLessThan(LINGER_MS)
  })

  it('C024 after one job, which is there', async () => {
    const child = stage.child('leaver.mjs', server.url, 'producer')
    const [, id = ''] = (await child.line('enqueued')).split(' ')
    expect(await lingeredMs(child)).toBeLessThan(LINGER_MS)
    expect((await (await stage.client(server.url)).get(id))?.state).toBe('queued')
  })

  it.each(WAYS_AWAY)('C022 within its deadline while the server is away: %s', async (how) => {
    const proxy = await stage.proxy(server)
    await stopsWhileAway(stage.child('leaver.mjs', server.urlOf({ port: proxy.port }), 'worker'), proxy, how)
  })
})
