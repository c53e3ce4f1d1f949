/** Every state of a real server that refuses or hinders a call: what it becomes, and that work goes on when the state ends. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { eventually } from '../support/event.ts'
import { failureOf } from '../support/failure-of.ts'
import { RedisServer, type RedisServerOptions } from '../support/redis-server.ts'
import { ECHO, INCREMENT, open, scriptOf, type Warning } from './opening.ts'

const servers: RedisServer[] = []

async function start(options: RedisServerOptions = {}): Promise<RedisServer> {
  const server = await RedisServer.start(options)
  servers.push(server)
  return server
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
})

const quick = { callTimeoutMs: 1000, openDeadlineMs: 1000 }

describe('a reply', () => {
  test('is told by its kind', async () => {
    const server = await start({ config: ['maxmemory 4mb'], args: ['--enable-debug-command', 'local'] })
    const store = await open(server.url, quick)
    const increment = (): Promise<unknown> => store.run(INCREMENT, ['n'], [])

    await server.command('SET', 'text', 'x')
    const wrongType = store.run(scriptOf("return redis.call('LPUSH', KEYS[1], 'x')"), ['text'], [])
    expect(await failureOf(wrongType)).toMatchObject({ code: 'STORE_CORRUPT', outcome: 'refused' })

    const broken = store.run(scriptOf('return nil .. KEYS[1]'), ['n'], [])
    expect(await failureOf(broken)).toMatchObject({ code: 'INTERNAL', outcome: 'unknown' })
    expect(await failureOf(store.command('NOSUCH', 'n', []))).toMatchObject({ code: 'INTERNAL', outcome: 'unknown' })

    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '1')
    expect(await failureOf(increment())).toMatchObject({ reply: 'NOREPLICAS', outcome: 'notDone' })
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '0')

    await server.command('CONFIG', 'SET', 'maxmemory', '1')
    expect(await failureOf(increment())).toMatchObject({ code: 'STORE_FULL', reply: 'OOM', outcome: 'notDone' })
    await server.command('CONFIG', 'SET', 'maxmemory', '0')

    expect(await increment()).toBe(1)
  })

  test('of MISCONF is not done', async () => {
    const server = await start({ save: '3600 1' })
    const store = await open(server.url, quick)
    await server.command('SET', 'x', 'y')
    // A folder in place of its file makes the snapshot fail.
    await mkdir(join(server.folder, 'dump.rdb', 'full'), { recursive: true })
    await server.command('BGSAVE')
    await eventually(
      async () => String(await server.command('INFO', 'persistence')).includes('rdb_last_bgsave_status:err'),
      'the failed snapshot',
    )
    expect(await failureOf(store.run(INCREMENT, ['n'], []))).toMatchObject({ reply: 'MISCONF', outcome: 'notDone' })
  })

  test('of BUSY is not done', async () => {
    const server = await start({ config: ['busy-reply-threshold 50'] })
    const store = await open(server.url, quick)
    const other = await open(server.url, quick)
    const loop = failureOf(other.run(scriptOf('while true do end', false), ['n'], []))
    await eventually(
      async () =>
        (await failureOf(store.run(INCREMENT, ['n'], []).then(() => Promise.reject(new Error('ran'))))).reply ===
        'BUSY',
      'BUSY',
    )
    await server.command('SCRIPT', 'KILL')
    await loop
    await eventually(() => store.run(ECHO, ['n'], ['x']).catch(() => null), 'a call after the script')
  })

  test('of NOSCRIPT is met with the source, once', async () => {
    const server = await start()
    const store = await open(server.url, quick)
    for (let run = 1; run <= 3; run += 1) {
      await server.command('SCRIPT', 'FLUSH')
      expect(await store.run(INCREMENT, ['n'], [])).toBe(run)
    }
    const before = String(await server.command('INFO', 'commandstats'))
    await store.run(INCREMENT, ['n'], [])
    const after = String(await server.command('INFO', 'commandstats'))
    const evals = (stats: string): string => /cmdstat_eval:calls=(\d+)/.exec(stats)?.[1] ?? '0'
    expect(evals(after)).toBe(evals(before))
  })
})

describe('credentials', () => {
  test('that are wrong or missing are refused at once', async () => {
    const server = await start({ password: 'right', users: ['worker on >secret ~hf:* +@all -flushall'] })
    const url = `127.0.0.1:${server.port}`
    const startedMs = performance.now()
    expect(await failureOf(open(`redis://${url}`))).toMatchObject({ code: 'STORE_DENIED', reply: 'NOAUTH' })
    const wrong = await failureOf(open(`redis://:hunter2@${url}`))
    expect(wrong).toMatchObject({ code: 'STORE_DENIED', reply: 'WRONGPASS', outcome: 'refused' })
    expect(wrong.message).toContain(url)
    expect(wrong.message).not.toContain('hunter2')
    expect(performance.now() - startedMs).toBeLessThan(2000)

    const store = await open(`redis://worker:secret@${url}`)
    expect(await store.run(INCREMENT, ['hf:n'], [])).toBe(1)
    expect(await failureOf(store.run(INCREMENT, ['other'], []))).toMatchObject({
      code: 'STORE_DENIED',
      outcome: 'refused',
    })
    expect(await failureOf(store.command('FLUSHALL', '', []))).toMatchObject({
      code: 'STORE_DENIED',
      outcome: 'refused',
    })
  })

  test('that may not read the configuration leave appendfsync unknown', async () => {
    const server = await start({ appendOnly: true, users: ['worker on >secret ~* +@all -config'] })
    const store = await open(`redis://worker:secret@127.0.0.1:${server.port}`)
    expect(store.facts()).toMatchObject({ isAofEnabled: true, appendFsync: 'unknown' })
  })

  test('are not needed where given, and a database that is not there is a wrong URL', async () => {
    const server = await start()
    const store = await open(`redis://:any@127.0.0.1:${server.port}/5`)
    await store.run(INCREMENT, ['n'], [])
    expect(String(await server.command('INFO', 'keyspace'))).toContain('db5:keys=1')
    expect(await failureOf(open(`${server.url}/99`))).toMatchObject({ code: 'INVALID_URL' })
  })
})

test('facts and warnings tell the settings of the server', async () => {
  const server = await start({ appendOnly: true, appendFsync: 'always', maxMemory: '50mb', policy: 'volatile-ttl' })
  const warnings: Warning[] = []
  const store = await open(server.url, {}, warnings)
  expect(store.facts()).toEqual({
    version: expect.stringMatching(/^\d+\.\d+/),
    isCluster: false,
    maxmemoryPolicy: 'volatile-ttl',
    isAofEnabled: true,
    appendFsync: 'always',
    waitReplicas: 0,
  })
  expect(warnings.map(({ code }) => code)).toEqual(['EVICTION_POLICY'])
  await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
  expect(await failureOf(open(server.url))).toMatchObject({ code: 'UNSUPPORTED' })
})

describe('a server that is away', () => {
  test('is named when the time is up', async () => {
    const server = await start()
    await server.kill()
    const failure = await failureOf(open(server.url, { openDeadlineMs: 300 }))
    expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
    expect(failure.message).toMatch(new RegExp(`within 300 ms.*127.0.0.1:${server.port}.*ECONNREFUSED`))
  })

  test('that is silent is named too', async () => {
    const server = await start()
    await server.pause()
    const failure = await failureOf(open(server.url, { openDeadlineMs: 300, callTimeoutMs: 100 }))
    expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
    expect(failure.message).toContain(`127.0.0.1:${server.port}`)
  })

  test('is waited for while it starts', async () => {
    const server = await start()
    await server.kill()
    const opening = open(server.url, { openDeadlineMs: 5000 })
    await server.restart()
    expect(await (await opening).run(INCREMENT, ['n'], [])).toBe(1)
  })

  test('is used again after its restart, and told as changed', async () => {
    const server = await start()
    const store = await open(server.url)
    const calls: string[] = []
    let release = (): void => {}
    store.onChange(async () => {
      calls.push(String(await store.run(ECHO, ['n'], ['renewed'])))
      await new Promise<void>((resolve) => {
        release = resolve
      })
      calls.push('done')
    })
    store.onChange(() => Promise.reject(new Error('a listener that fails')))
    await store.settled()
    await server.restart()
    await eventually(() => calls.length === 1, 'the change')
    const settled = store.settled().then(() => calls.push('settled'))
    release()
    await settled
    expect(calls).toEqual(['renewed', 'done', 'settled'])
  })

  test('loses its connections without being another one', async () => {
    const server = await start()
    const store = await open(server.url)
    let changes = 0
    store.onChange(async () => {
      changes += 1
    })
    await server.command('CLIENT', 'KILL', 'TYPE', 'normal')
    await eventually(() => store.run(ECHO, ['n'], ['x']).catch(() => null), 'a call after the loss')
    expect(changes).toBe(0)
  })

  test('holds claims back for two seconds at most when a listener hangs', async () => {
    const server = await start()
    const store = await open(server.url)
    let isTold = false
    store.onChange(() => {
      isTold = true
      return new Promise(() => {})
    })
    await server.restart()
    await eventually(() => isTold, 'the change')
    const startedMs = performance.now()
    await store.settled()
    expect(performance.now() - startedMs).toBeGreaterThan(1000)
    expect(performance.now() - startedMs).toBeLessThan(3000)
  })
})

test('a server that loads its data is waited for', async () => {
  const server = await start({
    appendOnly: true,
    config: ['loading-process-events-interval-bytes 1024'],
    args: ['--enable-debug-command', 'local'],
  })
  await server.command('DEBUG', 'POPULATE', '20000', 'key', '10')
  await server.command('BGREWRITEAOF')
  await eventually(
    async () =>
      /aof_rewrite_in_progress:0[\s\S]*aof_last_bgrewrite_status:ok/.test(
        String(await server.command('INFO', 'persistence')),
      ),
    'the rewrite',
  )
  await server.command('CONFIG', 'SET', 'key-load-delay', '50')
  const store = await open(server.url, { callTimeoutMs: 500 })
  // Loads anew, slowly, while it says LOADING to all others.
  const loading = server.command('DEBUG', 'LOADAOF')
  expect(await eventually(() => loadingFailure(store.run(INCREMENT, ['n'], [])), 'LOADING')).toMatchObject({
    reply: 'LOADING',
    outcome: 'notDone',
  })
  const opening = open(server.url, { openDeadlineMs: 10_000 })
  expect(await Promise.race([opening.then(() => 'opened'), loading.then(() => 'loaded')])).toBe('loaded')
  expect(await (await opening).run(ECHO, ['n'], ['x'])).toEqual(Buffer.from('x'))
})

async function loadingFailure(work: Promise<unknown>): Promise<Readonly<Record<string, unknown>> | null> {
  const failure = await failureOf(work.then(() => Promise.reject(new Error('ran'))))
  return failure.reply === 'LOADING' ? failure : null
}

describe('a replica', () => {
  test('is not taken for a primary', async () => {
    const primary = await start()
    const replica = await start({ replicaOf: primary })
    expect(await failureOf(open(replica.url, { openDeadlineMs: 300 }))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      reply: 'READONLY',
    })
  })

  test('that was a primary makes the connection be sought again, and is told as changed when it is one once more', async () => {
    const primary = await start()
    const server = await start()
    const store = await open(server.url)
    let changes = 0
    store.onChange(async () => {
      changes += 1
    })
    await store.run(INCREMENT, ['n'], [])
    await server.command('REPLICAOF', '127.0.0.1', primary.port)
    expect(await failureOf(store.run(INCREMENT, ['n'], []))).toMatchObject({ reply: 'READONLY', outcome: 'notDone' })
    expect(await failureOf(store.run(INCREMENT, ['n'], []))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      outcome: 'notDone',
    })
    await server.command('REPLICAOF', 'NO', 'ONE')
    await eventually(() => store.run(INCREMENT, ['n'], []).catch(() => null), 'the primary')
    await store.settled()
    expect(changes).toBe(1)
  })

  test('confirms writes where asked for; too few leave the outcome open', async () => {
    const primary = await start()
    const store = await open(`${primary.url}?waitReplicas=1`, { callTimeoutMs: 600 })
    expect(store.facts().waitReplicas).toBe(1)
    expect(await failureOf(store.run(INCREMENT, ['n'], []))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      outcome: 'unknown',
      reply: 'WAIT',
    })
    await start({ replicaOf: primary })
    await eventually(() => store.run(INCREMENT, ['n'], []).catch(() => null), 'a confirmed write')
    expect(await store.run(ECHO, ['n'], ['reads need none'])).toEqual(Buffer.from('reads need none'))
  })
})

test('a server without a free connection is told as such', async () => {
  const server = await start({ config: ['maxclients 2'] })
  const store = await open(server.url)
  const hold = store.pop(['list'], 5000)
  hold.catch(() => {})
  await eventually(() => store.isWaiting, 'the wait')
  const failure = await failureOf(open(server.url, { openDeadlineMs: 300 }))
  expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', outcome: 'notDone' })
  expect(failure.message).toMatch(/^no connection within 300 ms: Redis at [^:]+:\d+ .*no connection left/)
})
