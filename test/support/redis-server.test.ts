/** The private Redis server of tests: starts, freezes, dies and comes back with what it kept, and leaves nothing behind. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually, rejection, within } from './event.ts'
import { RedisServer, type RedisServerOptions } from './redis-server.ts'

const servers: RedisServer[] = []
async function start(options?: RedisServerOptions): Promise<RedisServer> {
  const server = await RedisServer.start(options)
  servers.push(server)
  return server
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
})

const runs = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('a private redis-server', () => {
  it('answers on a port of its own and is gone with its folder after stop', async () => {
    const [one, other] = await Promise.all([start(), start()])
    expect(one.port).not.toBe(other.port)
    expect(one.port).toBeGreaterThanOrEqual(7000)
    expect(await one.command('SET', 'k', 'v')).toBe('OK')
    expect(await other.command('GET', 'k')).toBeNull()
    const { pid, folder } = one
    expect(pid !== null && runs(pid)).toBe(true)
    await one.stop()
    expect(one.pid).toBeNull()
    expect(pid !== null && runs(pid)).toBe(false)
    expect(existsSync(folder)).toBe(false)
  })

  it('keeps what it wrote to its log through a kill, and only that', async () => {
    const kept = await start({ appendOnly: true, appendFsync: 'always' })
    const lost = await start()
    for (const server of [kept, lost]) {
      await server.command('SET', 'k', 'v')
      await server.kill()
      expect(server.pid).toBeNull()
      await server.restart()
    }
    expect(await kept.command('GET', 'k')).toBe('v')
    expect(await lost.command('GET', 'k')).toBeNull()
  })

  it('restarts in order as another process on the same port', async () => {
    const server = await start({ appendOnly: true })
    const { pid, port } = server
    await server.command('SET', 'k', 'v')
    await server.restart()
    expect(server.port).toBe(port)
    expect(server.pid).not.toBe(pid)
    expect(await server.command('GET', 'k')).toBe('v')
    expect(await server.log()).toContain('User requested shutdown')
  })

  it('says nothing while it is paused', async () => {
    const server = await start()
    await server.pause()
    const answer = server.command('PING')
    expect((await rejection(within(answer, 'an answer', 200))).message).toMatch(/^an answer: not within/)
    await server.resume()
    expect(await answer).toBe('PONG')
  })

  it('takes limits, passwords, users and further settings', async () => {
    const server = await start({
      maxMemory: '8mb',
      policy: 'noeviction',
      password: 'a secret',
      users: ['reader on >pw ~* -@all +get'],
      config: ['hz 50'],
      args: ['--enable-debug-command', 'local'],
    })
    expect(server.url).toBe(`redis://:a%20secret@127.0.0.1:${server.port}`)
    expect(await server.command('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', String(8 * 1024 * 1024)])
    expect(await server.command('CONFIG', 'GET', 'hz')).toEqual(['hz', '50'])
    expect(await server.command('ACL', 'USERS')).toEqual(['default', 'reader'])
    expect(await server.command('DEBUG', 'SLEEP', '0')).toBe('OK')
  })

  it('follows another as its replica', async () => {
    const master = await start()
    const replica = await start({ replicaOf: master })
    await master.command('SET', 'k', 'v')
    await eventually(async () => (await replica.command('GET', 'k')) === 'v', 'the write is at the replica')
    expect((await rejection(replica.command('SET', 'k', 'w'))).message).toMatch(/^READONLY/)
  })

  it('says what the server said when it does not start', async () => {
    const error = await rejection(RedisServer.start({ config: ['no-such-setting 1'] }))
    expect(error.message).toContain('no-such-setting')
  })

  it('goes when the process that started it is killed', async () => {
    const script = `
      import { runnerImport } from 'vite'
      const { module } = await runnerImport(${JSON.stringify(fileURLToPath(new URL('./redis-server.ts', import.meta.url)))})
      const server = await module.RedisServer.start()
      console.log(server.pid + ' ' + server.folder)
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = await once(createInterface({ input: child.stdout }), 'line')
    const [pid, folder] = String(line).split(' ')
    expect(runs(Number(pid))).toBe(true)
    child.kill('SIGKILL')
    // A container is ended by the one that watches over them, which gives it ten seconds.
    await eventually(() => !runs(Number(pid)) && !existsSync(String(folder)), 'server and folder are gone', 30_000)
  }, 60_000)
})
