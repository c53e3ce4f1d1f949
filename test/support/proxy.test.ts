/** Each fault of the proxy, between a plain socket and a real Redis: what the client sees, and what the server did. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually, rejection, within } from './event.ts'
import { FaultProxy } from './proxy.ts'
import { RedisServer } from './redis-server.ts'

let server: RedisServer
let proxy: FaultProxy
const sockets: Socket[] = []

beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())
beforeEach(async () => {
  proxy = await FaultProxy.start({ upstream: server.port, seed: 7 })
  await server.command('FLUSHALL')
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await proxy.close()
})

/** A connection through the proxy that has been answered once. */
async function open(): Promise<Socket> {
  const socket = dial()
  expect(await ask(socket, 'PING')).toBe('+PONG\r\n')
  return socket
}

function dial(): Socket {
  const socket = connect(proxy.port, '127.0.0.1')
  socket.on('error', () => {})
  sockets.push(socket)
  return socket
}

/** The next piece of text, or how the connection ended instead. */
function next(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('data', (piece) => resolve(String(piece)))
    socket.once('end', () => resolve('end'))
    socket.once('error', (error) => resolve('code' in error ? String(error.code) : error.message))
  })
}

function ask(socket: Socket, command: string): Promise<string> {
  const answer = next(socket)
  socket.write(`${command}\r\n`)
  return answer
}

const isSilent = async (answer: Promise<string>): Promise<boolean> =>
  (await rejection(within(answer, 'an answer', 100))).message.startsWith('an answer: not within')

const count = (): Promise<unknown> => server.command('GET', 'n')

describe('the fault proxy', () => {
  it('pass: hands on both ways and counts', async () => {
    const socket = await open()
    expect(await ask(socket, 'INCR n')).toBe(':1\r\n')
    expect(proxy.counters).toMatchObject({ accepted: 1, refused: 0, requests: 2, replies: 2 })
    expect(proxy.connections).toBe(1)
    socket.end()
    await eventually(() => proxy.connections === 0, 'the connection is closed on both sides')
  })

  it('blackhole: the connection stays open and mute, a later one works', async () => {
    const socket = await open()
    proxy.set('blackhole')
    expect(await isSilent(ask(socket, 'INCR n'))).toBe(true)
    proxy.set('pass')
    expect(await isSilent(ask(socket, 'INCR n'))).toBe(true)
    expect(socket.closed).toBe(false)
    expect(await ask(await open(), 'INCR n')).toBe(':1\r\n')
  })

  it('blackhole: neither side hears that the other has gone', async () => {
    const socket = await open()
    proxy.set('blackhole')
    const closed = once(socket, 'close')
    socket.destroy()
    await closed
    const clients = String(await server.command('CLIENT', 'LIST', 'TYPE', 'normal'))
    expect(clients.match(/cmd=ping/g)).toHaveLength(1)
    expect(proxy.connections).toBe(1)
    proxy.set('pass')
    await eventually(() => proxy.connections === 0, 'both sides are closed')
  })

  it('stall: what was sent arrives late', async () => {
    const socket = await open()
    proxy.set('stall')
    const answer = ask(socket, 'INCR n')
    expect(await isSilent(answer)).toBe(true)
    expect(await count()).toBeNull()
    proxy.set('pass')
    expect(await answer).toBe(':1\r\n')
  })

  it('dropRequests: the server never sees it; only those that are meant', async () => {
    const socket = await open()
    proxy.set({ mode: 'dropRequests', when: (request) => request.includes('INCR') })
    expect(await ask(socket, 'PING')).toBe('+PONG\r\n')
    expect(await isSilent(ask(socket, 'INCR n'))).toBe(true)
    expect(await count()).toBeNull()
    expect(proxy.counters.droppedRequests).toBe(1)
  })

  it('dropReplies: the server carries it out and the client hears nothing', async () => {
    const socket = await open()
    proxy.set('dropReplies')
    expect(await isSilent(ask(socket, 'INCR n'))).toBe(true)
    expect(await count()).toBe('1')
    expect(proxy.counters.droppedReplies).toBe(1)
  })

  it('cutReply: the server carries it out and the client sees a reset, as often as asked for', async () => {
    const [one, other] = [await open(), await open()]
    proxy.set({ mode: 'cutReply', times: 1 })
    expect(await ask(one, 'INCR n')).toBe('ECONNRESET')
    expect(await count()).toBe('1')
    expect(await ask(other, 'INCR n')).toBe(':2\r\n')
    expect(proxy.counters.cut).toBe(1)
  })

  it('refuse: new connections are reset, those that stand are not', async () => {
    const socket = await open()
    proxy.set('refuse')
    expect(await ask(dial(), 'PING')).toBe('ECONNRESET')
    expect(await ask(socket, 'INCR n')).toBe(':1\r\n')
    expect(proxy.counters.refused).toBe(1)
  })

  it('halfClose: the reply comes, then the end', async () => {
    const socket = await open()
    proxy.set('halfClose')
    const ended = once(socket, 'end')
    expect(await ask(socket, 'INCR n')).toBe(':1\r\n')
    await within(ended, 'the end')
  })

  it('slow: takes its time by the byte', async () => {
    const socket = await open()
    proxy.set({ mode: 'slow', bytesPerSecond: 200 })
    const start = performance.now()
    expect(await ask(socket, 'PING')).toBe('+PONG\r\n')
    // 6 bytes there and 7 back, at 5 ms each.
    expect(performance.now() - start).toBeGreaterThanOrEqual(60)
  })

  it('delay: holds back each piece, and none overtakes another', async () => {
    const socket = await open()
    proxy.set({ mode: 'delay', ms: 20, jitterMs: 20 })
    const start = performance.now()
    let said = ''
    socket.on('data', (piece) => {
      said += String(piece)
    })
    for (let n = 0; n < 20; n += 1) {
      socket.write('INCR n\r\n')
      await new Promise(setImmediate)
    }
    const expected = Array.from({ length: 20 }, (_, n) => `:${n + 1}\r\n`).join('')
    await eventually(() => said.length >= expected.length, 'all answers')
    expect(said).toBe(expected)
    expect(performance.now() - start).toBeGreaterThanOrEqual(39)
  })

  it('flapping: resets and refuses by turns, and works between', async () => {
    const socket = await open()
    proxy.set({ mode: 'flapping', upMs: 30, downMs: 30 })
    expect(await within(next(socket), 'the reset')).toBe('ECONNRESET')
    expect(await ask(dial(), 'PING')).toBe('ECONNRESET')
    await eventually(async () => (await ask(dial(), 'PING')) === '+PONG\r\n', 'it is up again')
  })

  it('reset: ends every connection that stands', async () => {
    const socket = await open()
    const ended = next(socket)
    proxy.reset()
    expect(await ended).toBe('ECONNRESET')
    await eventually(() => proxy.connections === 0, 'no connection is left')
  })
})
