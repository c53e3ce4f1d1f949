/** What users write is read right or refused by one clear error that names the field: never half, never silently. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  LIMITS,
  parseDuration,
  parseInstant,
  parseInteger,
  parseJobType,
  parseName,
  parseNumber,
  parseText,
  refuseUnknown,
  show,
} from '#dist/src/config.js'
import { isHoldfastError } from '#dist/src/errors.js'

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const anything = fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, withSparseArray: true })

/** The value, or the code of the error, which must be ours and must name the field. */
function read<T>(parse: () => T, field = 'field'): T | string {
  try {
    return parse()
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    expect(error.details.field).toBe(field)
    expect(error.message).toContain(field)
    expect(error.message.length).toBeLessThan(400)
    expect(error.category).toBe('caller')
    return error.code
  }
}

describe('durations', () => {
  test('text of a number and a unit is that many milliseconds', () => {
    const unit = fc.constantFrom(...(Object.keys(UNITS) as (keyof typeof UNITS)[]))
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 36_499 }), unit, (count, name) => {
        expect(parseDuration(`${count}${name}`, 'field')).toBe(count * UNITS[name])
        expect(parseDuration(`${count}.5${name}`, 'field')).toBe(Math.round((count + 0.5) * UNITS[name]))
      }),
    )
  })

  test.each([
    '',
    ' 1s',
    '1s ',
    '1 s',
    '-1s',
    '+1s',
    '1',
    '1S',
    '1sec',
    '1e3ms',
    '0x10ms',
    '1,5s',
    '.5s',
    '1.s',
    '1s1s',
    'Infinityms',
    '٣s',
    '1_000ms',
    '999999999d',
  ])('the text %j is refused', (given) => {
    expect(read(() => parseDuration(given, 'field'))).toBe('INVALID_DURATION')
  })

  test.each([
    -1,
    -0.6,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    '10',
    null,
    undefined,
    true,
    10n,
    [],
    {},
    new Date(),
  ])('the value %s is refused', (given) => {
    expect(read(() => parseDuration(given, 'field'))).toBe('INVALID_DURATION')
  })

  test('anything gives a whole number in range or INVALID_DURATION', () => {
    fc.assert(
      fc.property(fc.oneof(anything, fc.string(), fc.double()), (given) => {
        const ms = read(() => parseDuration(given, 'field'))
        if (ms === 'INVALID_DURATION') return
        expect(Number.isInteger(ms) && Number(ms) >= 0 && Number(ms) <= LIMITS.durationMs).toBe(true)
      }),
      { numRuns: 3_000 },
    )
  })
})

describe('instants', () => {
  test('a Date, its ISO text and its milliseconds are the same instant', () => {
    const years = { min: new Date('0000-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z') }
    fc.assert(
      fc.property(fc.date({ ...years, noInvalidDate: true }), (date) => {
        for (const form of [date, date.toISOString(), date.getTime()])
          expect(parseInstant(form, 'field')).toBe(date.getTime())
      }),
    )
    expect(parseInstant('2028-02-29T00:00:00Z', 'field')).toBe(Date.UTC(2028, 1, 29))
    expect(parseInstant('2030-01-31T09:00+02:00', 'field')).toBe(Date.UTC(2030, 0, 31, 7))
    expect(parseInstant('2030-01-31T09:00:00.5-0130', 'field')).toBe(Date.UTC(2030, 0, 31, 10, 30, 0, 500))
  })

  test.each([
    '2030-01-31',
    '2030-01-31T09:00:00',
    'tomorrow',
    '',
    '2030-13-01T00:00:00Z',
    '2030-01-32T00:00:00Z',
    '2030-02-31T00:00:00Z',
    '2029-02-29T12:00:00+01:00',
    '2030-01-31T25:00:00Z',
    '1700000000000',
    '2030-01-31 09:00:00Z',
  ])('the text %j is refused: no zone, no such time, or not ISO', (given) => {
    expect(read(() => parseInstant(given, 'field'))).toBe('INVALID_INSTANT')
  })

  test('anything gives a whole number that a Date can hold, or INVALID_INSTANT', () => {
    fc.assert(
      fc.property(fc.oneof(anything, fc.string(), fc.double(), fc.date()), (given) => {
        const ms = read(() => parseInstant(given, 'field'))
        if (ms === 'INVALID_INSTANT') return
        expect(Number.isInteger(ms)).toBe(true)
        expect(Number.isNaN(new Date(Number(ms)).getTime())).toBe(false)
      }),
      { numRuns: 3_000 },
    )
  })
})

describe('names', () => {
  test('names of the allowed characters pass unchanged, up to the limit', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_.-]{1,128}$/), (name) => {
        expect(parseName(name, 'field')).toBe(name)
      }),
    )
    expect(read(() => parseName('a'.repeat(129), 'field'))).toBe('INVALID_NAME')
  })

  test.each(['', ' ', 'a b', 'a:b', '{a}', 'a/b', 'a\n', '\n', 'é', 'a\u0000', '💥', 'а'])(
    'the name %j is refused',
    (given) => {
      expect(read(() => parseName(given, 'field'))).toBe('INVALID_NAME')
    },
  )

  test('anything else is refused with INVALID_NAME', () => {
    fc.assert(
      fc.property(fc.oneof(anything, fc.string({ unit: 'binary' })), (given) => {
        const isName = typeof given === 'string' && /^[A-Za-z0-9_.-]{1,128}$/.test(given) && !given.includes('\n')
        expect(read(() => parseName(given, 'field'))).toBe(isName ? given : 'INVALID_NAME')
      }),
      { numRuns: 2_000 },
    )
  })

  test.each(['mail:send', 'a/b', 'отправить', '💥', 'constructor', '__proto__', 'a b'])(
    'the job type %j passes',
    (given) => {
      expect(parseJobType(given, 'field')).toBe(given)
    },
  )

  test.each(['', 'a\u0000', 'a\nb', '\u001b[31m', '\u0085', '\ud800', 'x'.repeat(129), 7, null])(
    'the job type %j is refused',
    (given) => {
      expect(read(() => parseJobType(given, 'field'))).toBe('INVALID_NAME')
    },
  )

  test('text is bounded and printable', () => {
    expect(parseText('key', 'field', 3)).toBe('key')
    for (const given of ['', 'keys', 'a\u0007', '\udfff', 5, null]) {
      expect(read(() => parseText(given, 'field', 3))).toBe('INVALID_ARGUMENT')
    }
  })
})

describe('numbers and options', () => {
  test('a whole number in range passes; anything else names the field and the limits', () => {
    fc.assert(
      fc.property(anything, (given) => {
        const isFit = typeof given === 'number' && Number.isInteger(given) && given >= 1 && given <= 10
        expect(read(() => parseInteger(given, 'field', 1, 10))).toBe(isFit ? given : 'INVALID_ARGUMENT')
      }),
    )
    for (const given of [0, 11, 1.5, Number.NaN, '5', 2 ** 53]) {
      expect(read(() => parseInteger(given, 'field', 1, 10))).toBe('INVALID_ARGUMENT')
    }
    expect(parseNumber(0.5, 'field', 0, 1)).toBe(0.5)
    expect(read(() => parseNumber(Number.NaN, 'field', 0, 1))).toBe('INVALID_ARGUMENT')
  })

  test('a misspelt option is an error that lists the known ones', () => {
    expect(() => refuseUnknown({ concurency: 1 }, new Set(['concurrency', 'lanes']), 'worker')).toThrow(
      /worker\.concurency: unknown option; known are concurrency, lanes/,
    )
    expect(() => refuseUnknown({ lanes: [] }, new Set(['lanes']), 'worker')).not.toThrow()
  })

  test('a value in an error message is short and never throws', () => {
    fc.assert(
      fc.property(anything, (given) => {
        expect(show(given).length).toBeLessThan(300)
      }),
    )
    expect(show('x'.repeat(1_000)).length).toBeLessThan(60)
  })
})
