import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hasPassword, maskStoreUrl, maskUrls, plain, showBytes, showSpan, toJson } from '#dist/src/cli/text.js'

const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31)
const check = <T>(property: fc.IProperty<T>): void => fc.assert(property, { seed, numRuns: 500 })

// biome-ignore lint/suspicious/noControlCharactersInRegex: this is what must never reach a terminal
const DANGEROUS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/

describe(`text for a terminal (seed ${seed})`, () => {
  it('loses every control, escape and bidi character', () => {
    check(fc.property(fc.string({ unit: 'binary' }), (text) => !DANGEROUS.test(plain(text))))
    expect(plain('a\u001b[31mred\u001b[0m\nb\u202eevil\u0007\u009b2Jc')).toBe('ared bevilc')
    expect(plain('\u001b]8;;http://x\u0007link\u001b]8;;\u0007')).toBe('link')
    expect(plain('half \ud800 pair')).toBe('half  pair')
  })

  it('keeps ordinary text of any script', () => {
    expect(plain('Grüße, 世界, שלום, 🚀')).toBe('Grüße, 世界, שלום, 🚀')
  })

  it('escapes in JSON what a terminal may act on and keeps the value', () => {
    check(
      fc.property(fc.jsonValue(), fc.string({ unit: 'binary' }), (value, text) => {
        const json = toJson({ value, text })
        expect(DANGEROUS.test(json)).toBe(false)
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify({ value, text })))
      }),
    )
  })

  it('shows values that JSON lacks by name', () => {
    const value = { big: 12n, bytes: Uint8Array.of(1, 2), nan: Number.NaN, at: new Date(0), none: undefined }
    expect(JSON.parse(toJson(value))).toEqual({
      big: { $bigint: '12' },
      bytes: { $bytes: 'AQI=' },
      nan: { $number: 'NaN' },
      at: '1970-01-01T00:00:00.000Z',
    })
  })
})

describe('passwords in URLs', () => {
  it.each([
    ['redis://:s3cret@host:6379/0', 'redis://***@host:6379/0'],
    ['postgres://user:s3cret@host/db?sslmode=on', 'postgres://***@host/db?sslmode=on'],
    ['failed: rediss://user:s3cret@host: refused', 'failed: rediss://***@host: refused'],
    ['postgres://host/db?password=s3cret&x=1', 'postgres://host/db?password=***&x=1'],
  ])('are masked in %s', (text, masked) => {
    expect(maskUrls(text)).toBe(masked)
    expect(maskStoreUrl(text)).toBe(masked)
  })

  it('are masked in a store URL even when they are not encoded', () => {
    expect(maskStoreUrl('redis://u:a/b@c@host')).toBe('redis://***@host')
  })

  it('are not looked for in paths', () => {
    expect(maskUrls('https://example.com/@user')).toBe('https://example.com/@user')
    expect(hasPassword('sqlite:./a@b.db')).toBe(false)
    expect(hasPassword('redis://:pw@host')).toBe(true)
  })
})

describe('sizes and spans', () => {
  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1_000, '1.0 kB'],
    [999_600, '1.0 MB'],
    [12_345_678, '12 MB'],
  ])('%d bytes are %s', (bytes, text) => expect(showBytes(bytes)).toBe(text))

  it.each([
    [0.4, '0 ms'],
    [999, '999 ms'],
    [1_500, '1.5 s'],
    [120_000, '2 min'],
    [7_200_000, '2 h'],
    [259_200_000, '3 d'],
  ])('%d ms are %s', (ms, text) => expect(showSpan(ms)).toBe(text))
})
