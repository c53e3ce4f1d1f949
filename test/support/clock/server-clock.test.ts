/** The clock of a server moves as it is told, forth and back, and the timers beside it do not. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { afterEach, describe, expect, it } from 'vitest'
import { RedisServer } from '../redis-server.ts'
import { ServerClock } from './server-clock.ts'

const HOUR = 3_600_000
const closers: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function makeClock(): Promise<ServerClock> {
  const clock = await ServerClock.make()
  closers.push(() => clock.remove())
  return clock
}

async function start(clock: ServerClock): Promise<RedisServer> {
  const server = await RedisServer.start({ env: clock.env })
  closers.push(() => server.stop())
  return server
}

/** How far the server's clock is from ours, in milliseconds. */
async function shiftOf(server: RedisServer): Promise<number> {
  const [seconds, micros] = (await server.command('TIME')) as [string, string]
  return Number(seconds) * 1000 + Number(micros) / 1000 - Date.now()
}

describe('the clock of a server', () => {
  it('moves TIME of Redis, in commands and in scripts', async () => {
    const clock = await makeClock()
    const server = await start(clock)
    expect(Math.abs(await shiftOf(server))).toBeLessThan(1000)
    clock.advance(HOUR)
    expect(Math.abs((await shiftOf(server)) - HOUR)).toBeLessThan(1000)
    clock.advance(HOUR)
    const [seconds] = (await server.command('EVAL', "return redis.call('TIME')", 0)) as [string]
    expect(Math.abs(Number(seconds) * 1000 - clock.now())).toBeLessThan(2000)
    clock.set(-HOUR)
    expect(Math.abs((await shiftOf(server)) + HOUR)).toBeLessThan(1000)
  })

  it('stands still where it is frozen', async () => {
    const clock = await makeClock()
    const server = await start(clock)
    clock.freeze(1_800_000_000_123)
    expect(await server.command('TIME')).toEqual(['1800000000', '123000'])
    clock.advance(-124)
    expect(clock.now()).toBe(1_799_999_999_999)
    expect(await server.command('EVAL', "return redis.call('TIME')", 0)).toEqual(['1799999999', '999000'])
    clock.set(0)
    expect(Math.abs(await shiftOf(server))).toBeLessThan(1000)
  })

  it('lets keys expire', async () => {
    const clock = await makeClock()
    const server = await start(clock)
    await server.command('SET', 'k', 'v', 'PX', HOUR)
    clock.advance(HOUR - 10_000)
    expect(await server.command('GET', 'k')).toBe('v')
    clock.advance(10_001)
    expect(await server.command('GET', 'k')).toBeNull()
  })

  it('is one for all servers that were given it, also after a restart', async () => {
    const clock = await makeClock()
    const [one, other] = await Promise.all([start(clock), start(clock)])
    clock.set(HOUR)
    await one.restart()
    for (const server of [one, other]) expect(Math.abs((await shiftOf(server)) - HOUR)).toBeLessThan(1000)
  })

  it('leaves monotonic time and the timers of the process alone', async () => {
    const clock = await makeClock()
    const script = `
      const say = () => console.log(JSON.stringify({ now: Date.now(), monotonic: performance.now(), hasFired }))
      let hasFired = false
      setTimeout(() => { hasFired = true }, 60_000)
      process.stdin.on('data', say)
      say()`
    const child = spawn(process.execPath, ['-e', script], {
      env: { ...process.env, ...clock.env },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const exited = new Promise((resolve) => child.once('exit', resolve))
    closers.push(async () => {
      child.kill('SIGKILL')
      await exited
    })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const read = async (): Promise<{ now: number; monotonic: number; hasFired: boolean }> =>
      JSON.parse(String((await lines.next()).value))
    const before = await read()
    clock.advance(HOUR)
    child.stdin.write('now\n')
    const after = await read()
    expect(after.now - before.now).toBeGreaterThanOrEqual(HOUR)
    expect(after.monotonic - before.monotonic).toBeLessThan(10_000)
    expect(after.hasFired).toBe(false)
  })
})
