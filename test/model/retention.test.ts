/** Retention as it is written in options: short and long forms, ages and counts, lanes, and what is refused by name. */
import { connect } from 'holdfast'
import { describe, expect, it, test } from 'vitest'
import { keepCountsOf, keepDeadOf } from '#dist/src/actors/keep.js'
import { parseRetention, type RetentionSettings, retentionIn } from '#dist/src/retention.js'
import { codeOf, rejection } from '../support/event.ts'

const DAY = 86_400_000
const usual = {
  completedMs: 7 * DAY,
  cancelledMs: 7 * DAY,
  deadMs: null,
  completedCount: null,
  cancelledCount: null,
  deadCount: null,
}

describe('retention', () => {
  test('is a week, and for ever of dead letters, when nothing is said', () => {
    expect(parseRetention({})).toEqual({ ...usual, lanes: new Map() })
    expect(keepDeadOf(parseRetention({}))).toEqual({ keepDeadMs: null })
    expect(keepCountsOf(parseRetention({}))).toBeUndefined()
  })

  test.each<[RetentionSettings, Partial<typeof usual>]>([
    [
      { keepCompleted: '1h', keepDead: '2d' },
      { completedMs: 3_600_000, deadMs: (2 * DAY) as never },
    ],
    [{ retention: { completed: 0 } }, { completedMs: 0 }],
    [{ retention: { completed: 'forever' } }, { completedMs: null as never }],
    [{ retention: { completed: { count: 5 } } }, { completedCount: 5 as never }],
    [{ retention: { completed: { age: '1h', count: 5 } } }, { completedMs: 3_600_000, completedCount: 5 as never }],
    [
      { keepCancelled: '1m', retention: { dead: { count: 9 } } },
      { cancelledMs: 60_000, deadCount: 9 as never },
    ],
  ])('%j', (options, expected) => {
    expect(parseRetention(options)).toEqual({ ...usual, ...expected, lanes: new Map() })
  })

  test('of a lane is that of all where it says nothing', () => {
    const parsed = parseRetention({
      keepDead: '1d',
      retention: { completed: { count: 10 }, lanes: { mail: { completed: '1h', dead: 'forever' }, b: {} } },
    })
    expect(retentionIn(parsed, 'other')).toMatchObject({ completedMs: 7 * DAY, completedCount: 10, deadMs: DAY })
    expect(retentionIn(parsed, 'mail')).toEqual({ ...usual, completedMs: 3_600_000, deadMs: null })
    expect(retentionIn(parsed, 'b')).toEqual({ ...usual, completedCount: 10, deadMs: DAY })
    expect(keepDeadOf(parsed)).toEqual({ keepDeadMs: DAY, keepDeadMsOf: { mail: null } })
    expect(keepCountsOf(parsed)).toEqual({
      all: { completed: 10, cancelled: null, dlq: null },
      lanes: {
        mail: { completed: null, cancelled: null, dlq: null },
        b: { completed: 10, cancelled: null, dlq: null },
      },
    })
  })

  it.each<[object, string, RegExp]>([
    [
      { keepCompleted: '1h', retention: { completed: '2h' } },
      'INVALID_ARGUMENT',
      /either keepCompleted or retention.completed/,
    ],
    [{ retention: { complete: '2h' } }, 'INVALID_ARGUMENT', /retention.complete: unknown option/],
    [{ retention: { completed: 'soon' } }, 'INVALID_DURATION', /retention.completed/],
    [{ retention: { completed: { age: -1 } } }, 'INVALID_DURATION', /retention.completed.age/],
    [
      { retention: { completed: { count: 1.5 } } },
      'INVALID_ARGUMENT',
      /retention.completed.count: expected a whole number from 0 to 1000000/,
    ],
    [{ retention: { completed: { number: 1 } } }, 'INVALID_ARGUMENT', /retention.completed.number: unknown/],
    [{ retention: { completed: null } }, 'INVALID_DURATION', /retention.completed/],
    [{ retention: { lanes: { 'a b': {} } } }, 'INVALID_NAME', /retention.lanes/],
    [{ retention: { lanes: { a: { dead: 'never' } } } }, 'INVALID_DURATION', /retention.lanes.a.dead/],
    [{ retention: { lanes: { a: { lanes: {} } } } }, 'INVALID_ARGUMENT', /retention.lanes.a.lanes: unknown/],
    [{ retention: { lanes: null } }, 'INVALID_ARGUMENT', /retention.lanes: expected an object/],
    [{ retention: 5 }, 'INVALID_ARGUMENT', /retention: expected an object/],
    [{ keepDead: 'x' }, 'INVALID_DURATION', /keepDead/],
  ])('refuses %j', async (options, code, says) => {
    expect(await codeOf(connect('memory:', options))).toBe(code)
    expect((await rejection(connect('memory:', options))).message).toMatch(says)
  })
})
