/** Whatever is thrown becomes bounded plain data, and none of its code runs (S15 of the threat model: errors are data). */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lineText } from '#dist/src/actors/log-line.js'
import { toFailure } from '#dist/src/failure.js'
import { boundedBytes, toPlain } from '#dist/src/plain-data.js'

const bytes = (text: string | undefined): number => Buffer.byteLength(text ?? '')

/** An object on which everything that could be called throws, and counts. */
function trapped(): { readonly value: object; readonly calls: () => number } {
  let calls = 0
  const trap = (): never => {
    calls += 1
    throw new Error('ran')
  }
  const value: object = {
    kept: 1,
    toJSON: trap,
    toString: trap,
    valueOf: trap,
    [Symbol.toPrimitive]: trap,
    [Symbol.iterator]: trap,
  }
  for (const key of ['name', 'message', 'code', 'stack', 'cause', 'permanent', 'delay', 'other'])
    Object.defineProperty(value, key, { get: trap, enumerable: true })
  return { value, calls: () => calls }
}

describe('S15 a failure', () => {
  it('is bounded: message, stack and name by bytes, causes by depth', () => {
    let error: Error = new Error('€'.repeat(10_000))
    for (let depth = 0; depth < 10; depth += 1) error = new Error('é'.repeat(5_000), { cause: error })
    error.stack = '€'.repeat(100_000)
    error.name = 'N'.repeat(1_000)
    const failure = toFailure(error)
    expect([bytes(failure.message) <= 2_000, bytes(failure.stack) <= 8_000, bytes(failure.name) <= 128]).toEqual([
      true,
      true,
      true,
    ])
    let depth = 0
    for (let each = failure as typeof failure | undefined; each !== undefined; each = each.cause) depth += 1
    expect(depth).toBe(4)
    expect(bytes(JSON.stringify(failure))).toBeLessThan(4 * 30_000)
  })

  it('runs no getter, toJSON, toString, iterator or trap of what was thrown', () => {
    const { value, calls } = trapped()
    expect(toFailure(value)).toMatchObject({ code: 'HANDLER_ERROR', message: expect.stringContaining('"kept":1') })
    expect(toFailure(Object.assign(new Error('x'), { cause: value }))).toMatchObject({
      message: 'x',
      cause: { code: 'HANDLER_ERROR' },
    })
    expect(calls()).toBe(0)
    const proxy = new Proxy(
      {},
      {
        get: () => {
          throw new Error('no')
        },
        getOwnPropertyDescriptor: () => {
          throw new Error('no')
        },
        ownKeys: () => {
          throw new Error('no')
        },
        getPrototypeOf: () => {
          throw new Error('no')
        },
      },
    )
    expect(toFailure(proxy).message).toBeTypeOf('string')
    const { proxy: revoked, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(toFailure(revoked).message).toBeTypeOf('string')
    expect(
      toFailure(
        Object.assign(() => 1, {
          toString: () => {
            throw new Error('no')
          },
        }),
      ).message,
    ).toBe('a function')
  })

  it('keeps what classes and the platform say of themselves', () => {
    class Named extends Error {
      override name = 'Named'
      code = 'E_NAMED'
    }
    expect(toFailure(new Named('x'))).toMatchObject({ name: 'Named', code: 'E_NAMED', message: 'x' })
    expect(toFailure(new DOMException('gone', 'AbortError'))).toMatchObject({ name: 'AbortError', message: 'gone' })
    expect(toFailure(new RangeError('y'))).toMatchObject({
      name: 'RangeError',
      stack: expect.stringContaining('failure.test'),
    })
    expect(toFailure(AbortSignal.abort().reason)).toMatchObject({ name: 'AbortError' })
  })

  it('is made of anything, always as data that JSON keeps', () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withTypedArray: true }),
        (value) => {
          const failure = toFailure(value)
          expect(JSON.parse(JSON.stringify(failure))).toEqual(failure)
          expect(failure.message.length).toBeGreaterThan(0)
          expect(bytes(failure.message)).toBeLessThanOrEqual(2_000)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

describe('plain data', () => {
  it('is a bounded copy, and runs nothing', () => {
    const { value, calls } = trapped()
    const limits = { depth: 3, parts: 50, chars: 10 }
    const circle: Record<string, unknown> = { n: 1 }
    circle.self = circle
    expect(toPlain(circle, limits)).toEqual({ n: 1, self: { n: 1, self: { n: 1, self: '[object]' } } })
    expect(
      toPlain({ value, list: [new Date(0), new Uint8Array(3), 2n, Number.NaN, () => 1, Symbol('s')] }, limits),
    ).toMatchObject({
      value: { kept: 1, other: '[getter]', toJSON: '[function]' },
      list: ['1970-01-01T00:00:00.000Z', '[3 bytes]', '2', 'NaN', '[function]', '[symbol]'],
    })
    expect(JSON.stringify(toPlain(Array(1_000_000).fill('x'), limits)).length).toBeLessThan(400)
    expect(
      JSON.stringify(toPlain(Object.fromEntries(Array.from({ length: 9_999 }, (_, n) => [n, n])), limits)).length,
    ).toBeLessThan(900)
    expect(calls()).toBe(0)
  })

  it('text is cut between characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.integer({ min: 8, max: 100 }), (text, limit) => {
        const cut = boundedBytes(text, limit)
        expect(bytes(cut)).toBeLessThanOrEqual(limit)
        if (bytes(text.toWellFormed()) <= limit) expect(cut).toBe(text.toWellFormed())
        else expect(text.toWellFormed().startsWith(cut.slice(0, -1))).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('a log line', () => {
  it('is at most 2 kB of JSON, whatever is logged', () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withMap: true }),
        fc.anything(),
        (fields, message) => {
          const text = lineText({ at: 1, level: 'info', attempt: 1, fields, message })
          expect(bytes(text)).toBeLessThanOrEqual(2_048)
          expect(text).not.toMatch(/[\r\n]/)
          expect(JSON.parse(text)).toMatchObject({
            at: 1,
            level: 'info',
            attempt: 1,
            msg: expect.any(String),
            fields: expect.any(Object),
          })
        },
      ),
      { numRuns: 2_000 },
    )
    const control = lineText({ at: 1, level: 'info', attempt: 1, fields: { a: 1 }, message: '\u0001'.repeat(5_000) })
    expect(bytes(control)).toBeLessThanOrEqual(2_048)
    expect(JSON.parse(control)).toMatchObject({ truncated: true })
  })
})
