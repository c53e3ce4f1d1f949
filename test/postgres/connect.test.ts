/** Opening a link: which server is taken of several, whom it believes, and how it ends when there is none to be had. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { PostgresLink } from '#dist/src/backends/postgres/link.js'
import { eventually } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { freePort } from '../support/free-port.ts'
import { PostgresServer, type PostgresServerOptions } from '../support/postgres-server.ts'
import { FaultProxy } from '../support/proxy.ts'
import { open, statement, type Warning } from './opening.ts'
import { openBackend } from './support.ts'

const servers: PostgresServer[] = []
async function start(options?: PostgresServerOptions): Promise<PostgresServer> {
  const server = await PostgresServer.start(options)
  servers.push(server)
  return server
}
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
})

/** As one that follows a primary is, until it is promoted. */
async function becomeStandby(server: PostgresServer): Promise<void> {
  await server.shutDown()
  await writeFile(join(server.folder, 'data', 'standby.signal'), '')
  await server.restart()
}

const portOf = async (link: PostgresLink): Promise<unknown> =>
  (await link.query(statement('SELECT current_setting($1)', { isClaiming: true }), ['port'], 'array')).rows[0]

describe('of several servers', () => {
  it('the first primary is taken, and after a failover the other one', async () => {
    const [first, second] = await Promise.all([start(), start()])
    const dead = await freePort()
    await becomeStandby(first)
    const link = await open(
      `postgres://holdfast@127.0.0.1:${dead},127.0.0.1:${first.port},127.0.0.1:${second.port}/postgres`,
    )
    expect(await portOf(link)).toEqual([String(second.port)])
    let told = 0
    link.onChange(async () => {
      told += 1
    })
    await second.kill()
    await first.query('SELECT pg_promote()')
    const port = await eventually(() => portOf(link).catch(() => null), 'the other server')
    expect(port).toEqual([String(first.port)])
    expect(told).toBe(1)
  })

  it('a standby alone is no server to be had', async () => {
    const server = await start()
    await becomeStandby(server)
    const failure = await failureOf(open(server.url, { openDeadlineMs: 500 }))
    expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
    expect(failure.message).toContain('is a standby')
  })

  it('a primary that became a standby is left', async () => {
    const [first, second] = await Promise.all([start(), start()])
    const link = await open(`postgres://holdfast@127.0.0.1:${first.port},127.0.0.1:${second.port}/postgres`)
    expect(await portOf(link)).toEqual([String(first.port)])
    await becomeStandby(first)
    expect(await eventually(() => portOf(link).catch(() => null), 'the other server')).toEqual([String(second.port)])
  })
})

describe('a connection that is lost while a store is opened', () => {
  /** Opens a store and loses the connection at that request, if it comes to it; resolves with how many there were. */
  async function openedThrough(proxy: FaultProxy, url: string, last: number): Promise<number> {
    let seen = 0
    const when = (): boolean => {
      seen += 1
      return seen === last
    }
    proxy.set({ mode: 'cutRequest', times: 1, when })
    const store = await openBackend(url, 'first')
    await store.close()
    return seen
  }

  it('is opened again, at whatever request it is lost, while its tables are made and when they are there', async () => {
    const server = await start()
    const proxy = await FaultProxy.start({ upstream: server.port })
    try {
      for (const last of [3, 5, 7]) {
        const parameters = { schema: `cut${last}` }
        await openedThrough(proxy, server.urlOf({ port: proxy.port, parameters }), last)
      }
      const url = server.urlOf({ port: proxy.port, parameters: { schema: 'cut3' } })
      const requests = await openedThrough(proxy, url, Number.POSITIVE_INFINITY)
      expect(requests).toBeGreaterThan(5)
      for (let last = 1; last <= requests; last += 1) await openedThrough(proxy, url, last)
    } finally {
      await proxy.close()
    }
  })
})

describe('a server that cannot be had', () => {
  it('is waited for, until the time is up', async () => {
    const port = await freePort()
    const failure = await failureOf(open(`postgres://h4x:s3cr3t@127.0.0.1:${port}/db`, { openDeadlineMs: 300 }))
    expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
    expect(failure.message).toMatch(/no connection within 300 ms: .*ECONNREFUSED/)
    expect(failure.message).not.toContain('s3cr3t')
  })

  it('is taken when it comes in time', async () => {
    const server = await start()
    await server.shutDown()
    const opening = open(server.url)
    await server.restart()
    expect(await portOf(await opening)).toEqual([String(server.port)])
  })

  it('by its password is no matter of time', async () => {
    const server = await start({ password: 's3cr3t' })
    const refused = { code: 'STORE_DENIED', outcome: 'refused' }
    expect(await failureOf(open(server.urlOf({ password: 'sesame' })))).toMatchObject({ ...refused, sqlState: '28P01' })
    const plain = `postgres://holdfast@127.0.0.1:${server.port}/postgres`
    expect(await failureOf(open(plain))).toMatchObject(refused)
    expect(await failureOf(open(server.urlOf({ database: 'nowhere' })))).toMatchObject({
      code: 'INVALID_URL',
      outcome: 'refused',
      sqlState: '3D000',
    })
    expect(await portOf(await open(server.url))).toEqual([String(server.port)])
  })

  it('by its encoding is refused', async () => {
    const server = await start()
    await server.query("CREATE DATABASE latin ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    const failure = await failureOf(open(server.urlOf({ database: 'latin' })))
    expect(failure).toMatchObject({ code: 'UNSUPPORTED', outcome: 'refused' })
    expect(failure.message).toContain("ENCODING 'UTF8'")
  })
})

describe('TLS', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start({ tls: 'required', password: 's3cr3t' })
  })
  afterAll(() => server.stop())
  const opening = (parameters: Readonly<Record<string, string>>) => open(server.urlOf({ parameters }))
  const isEncrypted = async (link: PostgresLink): Promise<unknown> =>
    (await link.query(statement('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'), [], 'array')).rows[0]

  it.each(['require', 'verify-ca', 'verify-full'])('with sslmode=%s', async (sslmode) => {
    const link = await opening({ sslmode, ...(sslmode === 'require' ? {} : { sslrootcert: server.certificatePath }) })
    expect(await isEncrypted(link)).toEqual([true])
  })

  it('that is missing is refused by the server', async () => {
    const failure = await failureOf(opening({}))
    expect(failure).toMatchObject({ code: 'STORE_DENIED', outcome: 'refused', sqlState: '28000' })
    expect(failure.message).toContain('sslmode=verify-full')
  })

  it('by somebody unknown is not believed', async () => {
    for (const sslmode of ['verify-ca', 'verify-full'])
      expect(await failureOf(opening({ sslmode }))).toMatchObject({ code: 'STORE_DENIED', outcome: 'refused' })
  })

  it('by another name is believed only where the name does not matter', async () => {
    const query = `sslrootcert=${encodeURIComponent(server.certificatePath)}`
    const url = `postgres://holdfast:s3cr3t@127.0.0.1:${server.port}/postgres?${query}`
    expect(await isEncrypted(await open(`${url}&sslmode=verify-ca`))).toEqual([true])
    expect(await failureOf(open(`${url}&sslmode=verify-full`))).toMatchObject({ code: 'STORE_DENIED' })
  })

  it('with a file that is not there is an error of the URL', async () => {
    const failure = await failureOf(opening({ sslmode: 'verify-full', sslrootcert: '/nowhere' }))
    expect(failure).toMatchObject({ code: 'INVALID_URL' })
    expect(failure.message).toContain('sslrootcert')
  })

  it('is refused where the server has none', async () => {
    const plain = await start()
    const failure = await failureOf(open(plain.urlOf({ parameters: { sslmode: 'require' } })))
    expect(failure).toMatchObject({ code: 'STORE_DENIED', outcome: 'refused' })
  })
})

describe('the settings of a server', () => {
  it('that may lose jobs are warned of once, and told in the facts', async () => {
    const server = await start({ settings: { fsync: 'off', synchronous_commit: 'off' } })
    const warnings: Warning[] = []
    const link = await open(server.url, {}, warnings)
    expect(warnings.map(({ code }) => code)).toEqual(['NO_FSYNC', 'ASYNCHRONOUS_COMMIT'])
    expect(link.facts).toMatchObject({
      isFsync: false,
      synchronousCommit: 'off',
      version: expect.stringMatching(/^\d+\.\d+$/),
    })
    await server.restart()
    await eventually(() => portOf(link).catch(() => null), 'the server')
    expect(warnings.length).toBe(2)
  })
})
