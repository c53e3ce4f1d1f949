/** What a link makes of a server that fails: what is said of the outcome is true, and nothing needs a restart of the process. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { PostgresLink } from '#dist/src/backends/postgres/link.js'
import { eventually } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { lookFor } from '../support/look.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { FaultProxy } from '../support/proxy.ts'
import { open, statement } from './opening.ts'

let server: PostgresServer
let proxy: FaultProxy
beforeAll(async () => {
  server = await PostgresServer.start({ settings: { max_connections: 20 } })
})
afterAll(() => server.stop())
beforeEach(async () => {
  proxy = await FaultProxy.start({ upstream: server.port })
  await server.query('DROP TABLE IF EXISTS t; CREATE TABLE t (n int)')
})
afterEach(() => proxy.close())

const ADD = statement('INSERT INTO t VALUES ($1)')
const SLOW = statement('INSERT INTO t SELECT 1 FROM pg_sleep(60)')
const CLAIM = statement('SELECT 1 AS claimed', { isClaiming: true })
const count = async (): Promise<number> => Number((await server.query('SELECT count(*) AS n FROM t'))[0]?.n)
const has = (text: string) => (request: Buffer) => request.includes(text)
const openProxied = (limits = {}): Promise<PostgresLink> =>
  open(`${server.urlOf({ port: proxy.port })}?connections=1`, { limits })

/** Pids of the connections of links. */
async function backends(): Promise<number[]> {
  const rows = await server.query<{ pid: number }>(
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'holdfast'",
  )
  return rows.map(({ pid }) => pid)
}

describe('the network', () => {
  it('cuts the reply of a statement: nobody knows, and it was done', async () => {
    const link = await openProxied()
    proxy.set({ mode: 'cutReply', when: has('INSERT'), times: 1 })
    expect(await failureOf(link.query(ADD, [1]))).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'unknown' })
    expect(await count()).toBe(1)
    expect((await link.query(ADD, [2])).count).toBe(1)
  })

  it('cuts the reply of a COMMIT: nobody knows, and it was done', async () => {
    const link = await openProxied()
    proxy.set({ mode: 'cutReply', when: has('COMMIT\0'), times: 1 })
    expect(await failureOf(link.transaction((query) => query(ADD, [1])))).toMatchObject({ outcome: 'unknown' })
    expect(await count()).toBe(1)
  })

  it('cuts a reply before the COMMIT: nothing was done', async () => {
    const link = await openProxied()
    proxy.set({ mode: 'cutReply', when: has('INSERT'), times: 1 })
    expect(await failureOf(link.transaction((query) => query(ADD, [1])))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      outcome: 'notDone',
    })
    expect(await count()).toBe(0)
  })

  it('swallows everything: the call ends at its deadline, and the connection with it', async () => {
    const link = await openProxied({ answerMs: 100, connectMs: 100 })
    await link.query(ADD, [1])
    const [pid] = await backends()
    proxy.set('blackhole')
    expect(await failureOf(link.query(ADD, [2]))).toMatchObject({ code: 'STORE_TIMEOUT', outcome: 'unknown' })
    expect(await failureOf(link.query(ADD, [3]))).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
    proxy.set('pass')
    expect((await link.query(statement('SELECT pg_backend_pid() AS pid'), [])).rows).not.toEqual([{ pid }])
    expect(await count()).toBe(1)
  })

  it('swallows everything before the COMMIT: nothing was done', async () => {
    const link = await openProxied({ answerMs: 100 })
    const failing = link.transaction(async (query) => {
      await query(ADD, [1])
      proxy.set('blackhole')
      await query(ADD, [2])
    })
    expect(await failureOf(failing)).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
    expect(await count()).toBe(0)
  })

  it('refuses connections: nothing was done, and later it is', async () => {
    const link = await openProxied()
    proxy.set('refuse')
    proxy.reset()
    await eventually(async () => (await failureOf(link.query(ADD, [1]))).outcome === 'notDone', 'a refusal')
    proxy.set('pass')
    const before = await count()
    expect((await link.query(ADD, [2])).count).toBe(1)
    expect(await count()).toBe(before + 1)
  })

  it('is away while the link is closed: that does not wait for it', async () => {
    const link = await openProxied({ answerMs: 60_000 })
    proxy.set('blackhole')
    const lost = failureOf(link.query(ADD, [1]))
    await eventually(() => proxy.counters.droppedRequests > 0, 'the statement')
    const waiting = failureOf(link.query(ADD, [2]))
    await link.close()
    expect(await waiting).toMatchObject({ code: 'CLOSED', outcome: 'notDone' })
    expect(await lost).toMatchObject({ outcome: 'unknown' })
    expect(await failureOf(link.query(ADD, [2]))).toMatchObject({ code: 'CLOSED', outcome: 'notDone' })
  })
})

describe('the server', () => {
  it('ends idle connections: the next call does not notice', async () => {
    const link = await open(server.url)
    for (let round = 0; round < 5; round += 1) {
      await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'")
      await lookFor('the end of the connections', async () => ((await backends()).length === 0 ? true : undefined))
      await eventually(
        () =>
          link.query(ADD, [round]).then(
            () => true,
            () => false,
          ),
        'a call that is done',
      )
    }
    expect(await count()).toBeGreaterThanOrEqual(5)
    expect(link.facts.changes).toBe(0)
  })

  it('ends a connection at work: nobody knows', async () => {
    const link = await open(server.url)
    const ended = failureOf(link.query(SLOW, []))
    const pid = await lookFor('the statement', async () => {
      const [row] = await server.query<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE query LIKE 'INSERT%sleep%' AND state = 'active'",
      )
      return row?.pid
    })
    await server.query('SELECT pg_terminate_backend($1)', [pid])
    expect(await ended).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'unknown', sqlState: '57P01' })
  })

  it('has no connection left: nothing was done, and later it is', async () => {
    const link = await open(server.url)
    const [pid] = await backends()
    const greedy = []
    for (;;) {
      const client = await server.connect().catch(() => null)
      if (client === null) break
      greedy.push(client)
    }
    await greedy[0]?.query('SELECT pg_terminate_backend($1)', [pid])
    const last = await lookFor('a free place that is taken', () => server.connect())
    expect(
      await eventually(async () => {
        const failure = await failureOf(link.query(ADD, [1]))
        return failure.sqlState === '53300' ? failure : null
      }, 'a refusal'),
    ).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
    await Promise.all([...greedy, last].map((client) => client.end()))
    expect((await link.query(ADD, [1])).count).toBe(1)
  })

  it('restarts: whoever must know is told before anything is claimed', async () => {
    const link = await open(server.url)
    await link.query(CLAIM, [])
    const order: string[] = []
    link.onChange(async () => {
      order.push('told')
      await link.query(ADD, [1])
      order.push('renewed')
    })
    await server.restart()
    await eventually(
      () =>
        link.query(CLAIM, []).then(
          () => order.push('claimed'),
          () => false,
        ),
      'a claim',
    )
    expect(order).toEqual(['told', 'renewed', 'claimed'])
    expect(link.facts.changes).toBe(1)
    await link.query(CLAIM, [])
    expect(link.facts.changes).toBe(1)
  })

  it('is killed and comes back: the same', async () => {
    const link = await open(server.url)
    let told = 0
    link.onChange(async () => {
      told += 1
    })
    await server.kill()
    expect(await failureOf(link.query(ADD, [1]))).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await server.restart()
    await eventually(
      () =>
        link.query(CLAIM, []).then(
          () => true,
          () => false,
        ),
      'a claim',
    )
    expect(told).toBe(1)
  })

  it('loses one process and ends all others: the same, though it was never away', async () => {
    const link = await open(server.url)
    let told = 0
    link.onChange(async () => {
      told += 1
    })
    const victim = await server.connect()
    const { rows } = await victim.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    await server.killBackend(Number(rows[0]?.pid))
    await eventually(
      () =>
        told > 0 ||
        link.query(CLAIM, []).then(
          () => false,
          () => false,
        ),
      'the news',
    )
    expect(told).toBe(1)
    await link.query(CLAIM, [])
    expect(told).toBe(1)
  })

  it('freezes: calls end at their deadline, and go on when it thaws', async () => {
    const link = await open(server.url, { limits: { answerMs: 100, connectMs: 100 } })
    await server.pause()
    try {
      expect(await failureOf(link.query(ADD, [1]))).toMatchObject({ code: 'STORE_TIMEOUT', outcome: 'unknown' })
      expect(await failureOf(link.query(ADD, [2]))).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
    } finally {
      await server.resume()
    }
    await eventually(
      () =>
        link.query(ADD, [3]).then(
          () => true,
          () => false,
        ),
      'a call that is done',
    )
  })
})
