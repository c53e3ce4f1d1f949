/** A power cut takes what was not synced and nothing else; a lying disk loses even that. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { ServerClock } from '../clock/server-clock.ts'
import { preloadEnvironment } from '../preload.ts'
import { RedisServer, type RedisServerOptions } from '../redis-server.ts'
import { type Disk, type Loss, PowerCut } from './power-cut.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function makePower(disk?: Disk): Promise<PowerCut> {
  const power = await PowerCut.make(disk)
  closers.push(() => power.remove())
  return power
}

/** A process that runs `code` with the file open as `fd`, and then is killed. */
async function writeAndDie(power: PowerCut, code: string): Promise<{ folder: string; path: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-power-test-'))
  closers.push(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'file')
  const script = `
    const fs = require('node:fs')
    const fd = fs.openSync(${JSON.stringify(path)}, 'w+')
    ${code}
    process.kill(process.pid, 'SIGKILL')`
  const child = spawn(process.execPath, ['-e', script], { env: { ...process.env, ...power.env }, stdio: 'inherit' })
  expect((await once(child, 'exit'))[1]).toBe('SIGKILL')
  return { folder, path }
}

const APPENDS = `
  fs.writeSync(fd, 'synced ')
  fs.fsyncSync(fd)
  for (const word of ['one ', 'two ', 'three ', 'four ']) fs.writeSync(fd, word)`
const WRITTEN = 'synced one two three four '

async function cutAppends(loss: Loss, seed: number): Promise<string> {
  const power = await makePower()
  const { folder, path } = await writeAndDie(power, APPENDS)
  expect(await readFile(path, 'utf8')).toBe(WRITTEN)
  await power.cut(folder, loss, seed)
  return readFile(path, 'utf8')
}

describe('a power cut', () => {
  it('takes back all that was appended after the last sync', async () => {
    expect(await cutAppends('all', 1)).toBe('synced ')
  })

  it('takes back the last part, torn anywhere', async () => {
    const left = new Set<string>()
    for (const seed of [1, 2, 3, 4, 5]) {
      const text = await cutAppends('suffix', seed)
      expect(WRITTEN.startsWith(text) && text.startsWith('synced ')).toBe(true)
      left.add(text)
    }
    expect(left.size).toBeGreaterThan(2)
  })

  it('takes back some and leaves others where they were', async () => {
    const left = new Set<string>()
    for (const seed of [1, 2, 3, 4, 5]) {
      const text = await cutAppends('scattered', seed)
      expect(text).toMatch(/^synced (one |\0{4})?(two |\0{4})?(three |\0{6})?(four )?$/)
      left.add(text)
    }
    expect(left.size).toBeGreaterThan(2)
  })

  it('brings back what was overwritten or cut off', async () => {
    const power = await makePower()
    const code = `
      fs.writeSync(fd, 'abcdefgh')
      fs.fdatasyncSync(fd)
      fs.writeSync(fd, 'XY', 2)
      fs.ftruncateSync(fd, 3)
      fs.writeSync(fd, 'Z', 1)`
    const { folder, path } = await writeAndDie(power, code)
    expect(await readFile(path, 'utf8')).toBe('aZX')
    expect(await power.cut(folder)).toEqual({ changes: 4, unsynced: 3, lost: 3 })
    expect(await readFile(path, 'utf8')).toBe('abcdefgh')
  })
})

async function lives(power: PowerCut, options: RedisServerOptions): Promise<boolean> {
  const server = await RedisServer.start({ appendOnly: true, env: power.env, ...options })
  closers.push(() => server.stop())
  power.checkpoint()
  await server.command('SET', 'k', 'v')
  await server.kill()
  await power.cut(server.folder)
  await server.restart()
  return (await server.command('GET', 'k')) === 'v'
}

describe('a power cut of Redis', () => {
  it('spares what appendfsync always has written', async () => {
    expect(await lives(await makePower(), { appendFsync: 'always' })).toBe(true)
  })

  it('takes what appendfsync no has not', async () => {
    expect(await lives(await makePower(), { appendFsync: 'no' })).toBe(false)
  })

  it('takes even what was synced when the disk lies', async () => {
    expect(await lives(await makePower('lying'), { appendFsync: 'always' })).toBe(false)
  })

  it('goes with a clock', async () => {
    const clock = await ServerClock.make()
    closers.push(() => clock.remove())
    clock.set(3_600_000)
    const power = await makePower()
    expect(await lives(power, { appendFsync: 'no', env: preloadEnvironment(clock, power) })).toBe(false)
  })
})
