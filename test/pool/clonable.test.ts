/** The copy that leaves a thread, as the thread makes it before it sends. */
import { expect, it } from 'vitest'
import { sendable } from '#dist/workers/clonable.js'

/** Two references a level: 2^50 leaves when written out. */
function manyfold(leaf: unknown): unknown {
  let value: unknown = [leaf]
  for (let level = 0; level < 50; level += 1) value = [value, value]
  return value
}

function problemOf(value: unknown): string {
  try {
    sendable(value, 'output')
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('it may be sent')
}

it('a value that refers to its parts many times over is looked through in bounded time', () => {
  expect(sendable(manyfold(1), 'output')).toBeInstanceOf(Array)
  const million = new Array(1_000_000).fill(1)
  const many = sendable(new Array(10_000).fill(million), 'output') as unknown[]
  expect(many[0]).toEqual(million)
  expect(many[1]).toBe(many[9_999])
})

it('what cannot leave is found behind many objects', () => {
  const many = Array.from({ length: 20_000 }, () => ({}))
  expect(problemOf([many, many, { last: () => 1 }])).toBe('output[2].last: a function cannot leave the thread')
})

it('is equal to the value, shares nothing with it that can be changed, and runs no code of it', () => {
  const bytes = new Uint8Array([1, 2])
  const bare = Object.assign(Object.create(null), { a: 1 })
  const value = { at: new Date(5), bytes, big: 7n, none: undefined, not: Number.NaN, zero: -0, list: [[], null], bare }
  const copy = sendable(value, 'output') as typeof value
  expect(copy).toEqual({ ...value, bare: { a: 1 } })
  bytes[0] = 9
  expect(copy.bytes[0]).toBe(1)
  // A part of a large buffer is sent as that part.
  const part = sendable(Buffer.from('abc'), 'output') as Buffer
  expect([Buffer.isBuffer(part), part.toString(), part.buffer.byteLength]).toEqual([true, 'abc', 3])
})

it('reads each getter once', () => {
  let reads = 0
  const value = { get x() { reads += 1; return [reads] } } // biome-ignore format: one line says it
  expect([sendable(value, 'output'), reads]).toEqual([{ x: [1] }, 1])
})

it('names the place of what nobody could keep', () => {
  const self: { self?: unknown } = {}
  self.self = self
  const hostile = { get trap(): never { throw revoked() } } // biome-ignore format: one line says it
  expect(problemOf(self)).toMatch(/^output(\.self){64}: nested deeper than 64 levels, or refers to itself$/)
  expect(problemOf({ a: [1, new Array(2 ** 32 - 1)] })).toBe('output.a[1][0]: a hole in an array cannot be kept')
  expect(problemOf([{ [Symbol('s')]: 1 }])).toBe('output[0]: symbol keys cannot be kept')
  expect(problemOf({ a: JSON.parse('{"__proto__":1}') })).toContain('output.a.__proto__: the key __proto__')
  expect(problemOf({ a: new Float32Array(1) })).toContain('output.a: an instance of Float32Array')
  expect(problemOf({ a: revoked() })).toBe('output.a: cannot leave the thread: a Proxy')
  expect(problemOf({ a: hostile })).toContain('output.a.trap: cannot leave the thread')
})

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
