/** A primary that is found through Sentinels, before and after a failover, and servers behind TLS. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { freePort } from '../support/free-port.ts'
import { RedisServer } from '../support/redis-server.ts'
import { INCREMENT, open } from './opening.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-redis-'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

/** One Sentinel that watches one primary; it is the same program in another mode. */
async function startSentinel(primary: RedisServer): Promise<{ port: number; process: ChildProcess }> {
  const port = await freePort()
  const path = join(folder, `sentinel-${port}.conf`)
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor main 127.0.0.1 ${primary.port} 1`,
    'sentinel down-after-milliseconds main 500',
    'sentinel failover-timeout main 2000',
  ]
  await writeFile(path, `${lines.join('\n')}\n`)
  const child = spawn('redis-server', [path, '--sentinel'], { stdio: 'ignore' })
  return { port, process: child }
}

describe('a primary behind Sentinels', () => {
  test('is found, also past a dead Sentinel, and found again after a failover', async () => {
    const primary = await RedisServer.start()
    const replica = await RedisServer.start({ replicaOf: primary })
    await eventually(
      async () => String(await primary.command('INFO', 'replication')).includes('state=online'),
      'the replica',
    )
    const sentinel = await startSentinel(primary)
    try {
      const store = await open(`redis+sentinel://127.0.0.1:1,127.0.0.1:${sentinel.port}/main`)
      let changes = 0
      store.onChange(async () => {
        changes += 1
      })
      expect(await store.run(INCREMENT, ['n'], [])).toBe(1)
      await eventually(async () => (await replica.command('GET', 'n')) === '1', 'the copy')
      await knowsReplica(sentinel.port)
      await primary.kill()
      // Nothing needs to be called for that.
      await eventually(() => changes === 1, 'the change', 15_000)
      await store.settled()
      const count = await eventually(() => store.run(INCREMENT, ['n'], []).catch(() => null), 'the new primary')
      expect(Number(count)).toBe(2)
      expect(await replica.command('GET', 'n')).toBe('2')
      await store.close()
    } finally {
      sentinel.process.kill('SIGKILL')
      await Promise.all([primary.stop(), replica.stop()])
    }
  })

  test('that no Sentinel knows is told, with the Sentinels', async () => {
    const failure = await failureOf(
      open('redis+sentinel://:secret@127.0.0.1:1,127.0.0.1:2/main', { openDeadlineMs: 300 }),
    )
    expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
    expect(failure.message).toMatch(/main \(by Sentinel 127\.0\.0\.1:1, 127\.0\.0\.1:2\)/)
    expect(failure.message).not.toContain('secret')
  })
})

async function ask(port: number, ...args: string[]): Promise<unknown> {
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: null, enableReadyCheck: false })
  client.on('error', () => {}) // The command rejects with it.
  try {
    await client.connect()
    return await client.call('SENTINEL', ...args)
  } finally {
    client.disconnect()
  }
}

async function knowsReplica(port: number): Promise<void> {
  await eventually(
    async () => ((await ask(port, 'REPLICAS', 'main')) as unknown[]).length === 1,
    'the replica that Sentinel knows',
    15_000,
  )
}

describe('a server behind TLS', () => {
  test('is taken by a certificate that is trusted, and by no other', async () => {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    await promisify(execFile)('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert],
    ])
    const port = await freePort()
    const server = await RedisServer.start({
      config: [`tls-port ${port}`, `tls-cert-file ${cert}`, `tls-key-file ${key}`, 'tls-auth-clients no'],
    })
    try {
      const url = `rediss://localhost:${port}?ca=${encodeURIComponent(cert)}`
      expect(await (await open(url)).run(INCREMENT, ['n'], [])).toBe(1)
      const untrusted = await failureOf(open(`rediss://localhost:${port}`, { openDeadlineMs: 300 }))
      expect(untrusted).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
      expect(untrusted.message).toMatch(/certificate/)
      const otherName = url.replace('localhost', '127.0.0.1')
      expect((await failureOf(open(otherName, { openDeadlineMs: 300 }))).message).toMatch(/altnames|IP/)
      expect(await failureOf(open(`rediss://h?ca=${folder}/none`))).toMatchObject({ code: 'INVALID_URL' })
    } finally {
      await server.stop()
    }
  })
})
