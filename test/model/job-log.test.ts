/** `ctx.log` by itself: what a logger is given, and that neither values nor loggers fail who logs. */
import fc from 'fast-check'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createJobLog, lowestWanted, type OnLine } from '#dist/src/actors/job-log.js'
import { loggedLine } from '#dist/src/log-fields.js'
import type { Logger } from '#dist/src/telemetry.js'

type WithChildren = ReturnType<typeof createJobLog> & { child(fields: unknown): WithChildren }

function opened(level = 'info', onLine: OnLine = () => undefined) {
  const written: Record<string, unknown>[] = []
  const logger = pino({ level, base: null }, { write: (line: string) => written.push(JSON.parse(line)) })
  return { written, log: createJobLog(logger, 'info', onLine) as WithChildren }
}

it('an error is written as pino does, with its type, its cause and what it carries', () => {
  const { written, log } = opened()
  log.warn(Object.assign(new TypeError('outer', { cause: new Error('inner') }), { code: 'E_X', status: 503 }))
  expect(written[0]).toMatchObject({
    msg: 'outer',
    err: {
      type: 'TypeError',
      message: 'outer: inner',
      code: 'E_X',
      status: 503,
      stack: expect.stringContaining('at '),
    },
  })
})

it('place-holders and texts are written as they were', () => {
  const { written, log } = opened()
  Reflect.apply(log.info, log, ['%s of %d', 'one', 2])
  Reflect.apply(log.info, log, [{ n: 1 }, 'took %d ms', 5])
  log.info('100 % done')
  expect(written.map(({ msg, n }) => [msg, n])).toEqual([
    ['one of 2', undefined],
    ['took 5 ms', 1],
    ['100 % done', undefined],
  ])
})

it('O8 children run no code of what they are bound to, or say', () => {
  let ran = 0
  const hostile = {
    kept: 1,
    get x(): never {
      ran += 1
      throw new Error('ran')
    },
    toJSON: () => {
      ran += 1
    },
  }
  const stored: unknown[] = []
  const { written, log } = opened('info', (_level, fields) => stored.push(fields))
  log.child({ hostile }).warn(hostile, 'said')
  log.child(null).warn('also')
  const shown = { kept: 1, x: '[getter]', toJSON: '[function]' }
  expect(written).toMatchObject([{ hostile: shown, ...shown, msg: 'said' }, { msg: 'also' }])
  expect(stored[0]).toEqual({ hostile: shown, ...shown })
  expect(ran).toBe(0)
})

it('a logger or a store that throws costs the line', () => {
  const broken = (): never => {
    throw new Error('disk full')
  }
  const logger = { isLevelEnabled: () => true, info: broken } as unknown as Logger
  expect(() => createJobLog(logger, 'info', broken).info({ a: 1 }, 'x')).not.toThrow()
})

it('nothing is made of a line below the level', () => {
  const { written, log } = opened('warn')
  let looks = 0
  const ownKeys = (): string[] => {
    looks += 1
    return []
  }
  const fields = new Proxy({}, { ownKeys })
  log.debug(fields, 'x')
  expect([looks, written]).toEqual([0, []])
})

it('the lowest level that anybody wants', () => {
  const at = (level: string) => pino({ level }, { write: () => undefined })
  expect([
    lowestWanted(at('warn'), 'info'),
    lowestWanted(at('warn'), null),
    lowestWanted(at('debug'), 'error'),
  ]).toEqual([2, 3, 1])
  expect([lowestWanted(at('silent'), null), lowestWanted(at('silent'), 'fatal')]).toEqual([6, 5])
})

it('what leaves is bounded, whatever is logged', () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true }), fc.anything(), (first, second) => {
      const { fields, message, size } = loggedLine(first, second)
      structuredClone(fields)
      expect(typeof message === 'string' || message === undefined).toBe(true)
      expect(size).toBeLessThan(80_000)
    }),
    { numRuns: 1_000 },
  )
  const text = 'x'.repeat(1_000_000)
  const large = Object.fromEntries(Array.from({ length: 5_000 }, (_, key) => [`${key}${text.slice(0, 1_000)}`, text]))
  const { fields, message } = loggedLine({ large, more: Array(10_000).fill(text) }, text)
  expect(JSON.stringify(fields).length).toBeLessThan(70_000)
  expect(message).toHaveLength(16_384)
})
