/** Values come back as they went in, what cannot is refused by the name of its place, and damage is an error of ours. */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeValue, encodeValue, OBJECT_KEYS_MAX, VALUE_DEPTH_MAX } from '#dist/src/backends/codec.js'
import { type HoldfastError, isHoldfastError } from '#dist/src/errors.js'

const LONE = fc.constantFrom('\ud800', 'a\udfff', '\udc00\ud800', 'x\ud83d')
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('', '\u0000', 'a\u0000b', '\u2028'),
)
const key = fc
  .oneof(fc.string(), fc.constantFrom('', 'constructor', 'toString', 'a b', '0', '\u0000', 'length'))
  .filter((name) => name !== '__proto__')
const leaf = fc.oneof(
  ...[text, LONE, fc.boolean(), fc.constant(null), fc.constant(undefined), fc.bigInt()],
  ...[
    fc.double(),
    fc.integer(),
    fc.constantFrom(-0, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53 + 2, 5e-324, 2 ** 32),
  ],
  fc.date({ noInvalidDate: true }),
  fc.uint8Array({ maxLength: 40 }),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
)
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 6 }),
    fc.dictionary(key, tie('value'), { maxKeys: 6, noNullPrototype: true }),
  ),
}))

const nested = (depth: number, bottom: unknown): unknown =>
  Array.from({ length: depth }).reduce((inner, _, index) => (index % 2 === 0 ? [inner] : { in: inner }), bottom)

function refusal(given: unknown): HoldfastError {
  try {
    encodeValue(given, 'input')
  } catch (error) {
    if (isHoldfastError(error)) return error
    throw error
  }
  throw new Error('was not refused')
}

const roundTrip = (given: unknown): unknown => decodeValue(encodeValue(given, 'input'))

describe('round trip', () => {
  test('every value comes back the same', () => {
    fc.assert(
      fc.property(value, (given) => {
        // Vitest's own strict equality is misled by a key named `constructor`.
        expect(isDeepStrictEqual(roundTrip(given), given)).toBe(true)
      }),
      { numRuns: 5_000 },
    )
  })

  test('pure JSON is stored as the very JSON text', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (given) => {
        const negativeZero =
          JSON.stringify(given, (_, item) => (Object.is(item, -0) ? '-0' : item)) !== JSON.stringify(given)
        fc.pre(!negativeZero)
        // Refused by name, as another test shows.
        fc.pre(!JSON.stringify(given).includes('"__proto__":'))
        const payload = encodeValue(given, 'input')
        if (typeof payload === 'string') expect(payload).toBe(JSON.stringify(given))
        expect(roundTrip(given)).toStrictEqual(given)
      }),
    )
    expect(encodeValue({ a: [1, 'x', null] }, 'input')).toBe('{"a":[1,"x",null]}')
    expect(encodeValue(undefined, 'input')).toBe('')
  })

  test('undefined stays where it is, in objects and in arrays', () => {
    expect(roundTrip({ a: undefined, b: [undefined, 1] })).toStrictEqual({ a: undefined, b: [undefined, 1] })
    expect(Object.keys(roundTrip({ a: undefined }) as object)).toEqual(['a'])
    expect(roundTrip(undefined)).toBeUndefined()
  })

  test('bytes are a copy of their own, and a Buffer stays a Buffer', () => {
    const bytes = Uint8Array.of(1, 2, 3)
    const back = roundTrip({ bytes, buffer: Buffer.from(bytes) }) as { bytes: Uint8Array; buffer: Buffer }
    bytes[0] = 9
    expect(back.bytes).toStrictEqual(Uint8Array.of(1, 2, 3))
    expect(Buffer.isBuffer(back.buffer)).toBe(true)
    expect(Buffer.isBuffer(back.bytes)).toBe(false)
  })

  test('values nest up to the limit, with leaves that JSON lacks as well', () => {
    for (const bottom of ['x', 1n, new Date(0)]) {
      // A Date is an object too, so it takes the last level itself.
      const allowed = nested(typeof bottom === 'object' ? VALUE_DEPTH_MAX - 1 : VALUE_DEPTH_MAX, bottom)
      expect(roundTrip(allowed)).toStrictEqual(allowed)
    }
  })
})

describe('refusal', () => {
  test.each([
    ['a function', { a: [{ b: () => 1 }] }, 'input.a[0].b'],
    ['a symbol', [Symbol('s')], 'input[0]'],
    ['a Map', { 'odd key': new Map() }, 'input["odd key"]'],
    ['a Set', new Set(), 'input'],
    ['an instance of a class', { error: new Error('x') }, 'input.error'],
    ['an invalid Date', { when: new Date(Number.NaN) }, 'input.when'],
    ['a hole in an array', { list: Object.assign(new Array(3), { 0: 1, 2: 3 }) }, 'input.list[1]'],
    ['a key __proto__', JSON.parse('{"a":{"__proto__":{"x":1}}}'), 'input.a'],
    ['a symbol key', { a: { [Symbol('s')]: 1 } }, 'input.a'],
  ])('%s is refused by the name of its place', (_name, given, path) => {
    const error = refusal(given)
    expect(error.code).toBe('INVALID_PAYLOAD')
    expect(error.details.path).toBe(path)
    expect(error.message).toContain(path)
  })

  test('a bad leaf anywhere is refused by its own path', () => {
    const step = fc.oneof(fc.nat(3), fc.constantFrom('a', 'b1', '_c'))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const wrapped = steps.reduceRight<unknown>(
          (inner, at) =>
            typeof at === 'number' ? [...Array.from({ length: at }, () => 0), inner] : { z: 1, [at]: inner },
          () => {},
        )
        const path = steps.reduce<string>(
          (before, at) => (typeof at === 'number' ? `${before}[${at}]` : `${before}.${at}`),
          'input',
        )
        expect(refusal(wrapped).details.path).toBe(path)
      }),
    )
  })

  test('depth beyond the limit and a value that refers to itself are refused, not followed', () => {
    expect(refusal(nested(VALUE_DEPTH_MAX + 1, 1)).code).toBe('INVALID_PAYLOAD')
    expect(refusal(nested(10_000, 1)).code).toBe('INVALID_PAYLOAD')
    const circle: unknown[] = []
    circle.push(circle)
    expect(refusal(circle).code).toBe('INVALID_PAYLOAD')
  })

  test('too many keys and too many bytes are refused with the limit', () => {
    const keys = Object.fromEntries(Array.from({ length: OBJECT_KEYS_MAX + 1 }, (_, index) => [`k${index}`, 1]))
    expect(refusal(keys).message).toContain(String(OBJECT_KEYS_MAX))
    expect(refusal('x'.repeat(1024 * 1024)).details).toMatchObject({
      field: 'input',
      bytes: 1024 * 1024 + 2,
      limit: 1024 * 1024,
    })
    expect(refusal(new Uint8Array(1024 * 1024)).code).toBe('PAYLOAD_TOO_LARGE')
    expect(roundTrip('x'.repeat(1024 * 1024 - 2))).toHaveLength(1024 * 1024 - 2)
  })

  test('the limit counts bytes as stored, not characters', () => {
    expect(() => encodeValue('é'.repeat(5), 'input', 12)).not.toThrow()
    expect(() => encodeValue('é'.repeat(5), 'input', 11)).toThrow(/12 bytes encoded; the limit is 11/)
  })
})

describe('damage', () => {
  /** A value, or STORE_CORRUPT: nothing else may come out. */
  const survives = (payload: string | Uint8Array): void => {
    try {
      decodeValue(payload)
    } catch (error) {
      expect(isHoldfastError(error) && error.code).toBe('STORE_CORRUPT')
    }
  }

  test('a value cut at any byte, or with any bit flipped, gives a value or STORE_CORRUPT', () => {
    fc.assert(
      fc.property(value, fc.nat(), fc.nat(7), (given, place, bit) => {
        const payload = encodeValue(given, 'input')
        const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
        for (let length = 0; length < Math.min(bytes.length, 40); length += 1) {
          survives(typeof payload === 'string' ? payload.slice(0, length) : bytes.slice(0, length))
        }
        const flipped = Uint8Array.from(bytes)
        const index = place % Math.max(1, flipped.length)
        flipped[index] = (flipped[index] ?? 0) ^ (1 << bit)
        survives(typeof payload === 'string' ? Buffer.from(flipped).toString() : flipped)
      }),
      { numRuns: 1_000 },
    )
  })

  test('any bytes and any text give a value or STORE_CORRUPT', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), survives), { numRuns: 5_000 })
    fc.assert(fc.property(text, survives), { numRuns: 2_000 })
  })

  test('lengths that lie, nesting that never ends and unknown extensions do not crash', () => {
    survives(Uint8Array.of(0xdd, 0xff, 0xff, 0xff, 0xff))
    survives(Uint8Array.of(0xdf, 0x7f, 0xff, 0xff, 0xff, 0xa0))
    survives(Uint8Array.of(0xc6, 0xff, 0xff, 0xff, 0xff))
    survives(new Uint8Array(200_000).fill(0x91))
    survives(Uint8Array.of(0xd4, 0x63, 0x00))
    survives(`${'['.repeat(200_000)}`)
    survives(Uint8Array.of(0x81, 0xa9, ...Buffer.from('__proto__'), 0x80))
  })

  test('a damaged value cannot reach the prototype of anything', () => {
    const back = decodeValue('{"__proto__":{"polluted":1},"a":1}')
    expect(Reflect.get({}, 'polluted')).toBeUndefined()
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype)
  })
})
