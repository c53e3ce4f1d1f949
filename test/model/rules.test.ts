/** The policy of retries, failures and tokens. A name that begins with a number is that assertion of the contract. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decideExpiry,
  decideFailure,
  expiryFailure,
  leaseToken,
  nextEpoch,
  retryDelayMs,
} from '#dist/src/backends/rules.js'
import { retry } from '#dist/src/contract.js'
import { FAILURE_CLASSES, failureClass, JOB_STATES, parseJobState, type RetryPolicy } from '#dist/src/job.js'
import { SeededRandom } from '../simulation/random.ts'

const BUDGET = { attempt: 1, maxAttempts: 7, crashes: 0, maxCrashes: 3 }
const POLICY = retry.exponential()
const failure = (code: string) => ({ code, message: 'm' })
const random = (): SeededRandom => new SeededRandom(1)
const decide = (code: string, budget = BUDGET) => decideFailure(failure(code), budget, POLICY, random())

/** Upper and lower case by chance. */
const spelling = (code: string): fc.Arbitrary<string> =>
  fc
    .array(fc.boolean(), { minLength: code.length, maxLength: code.length })
    .map((upper) =>
      [...code].map((char, index) => (upper[index] === true ? char.toUpperCase() : char.toLowerCase())).join(''),
    )

describe('delays', () => {
  test('38 delays for failures 1 to 6 with base 1 and cap 16 are 1, 2, 4, 8, 16, 16', () => {
    const policy = retry.exponential({ attempts: 7, base: 1, cap: 16, jitter: 0 })
    expect([1, 2, 3, 4, 5, 6].map((failures) => retryDelayMs(policy, failures, random()))).toEqual([1, 2, 4, 8, 16, 16])
    const seconds = retry.exponential({ base: '1s', cap: '16s', jitter: 0 })
    expect([1, 2, 3, 4, 5, 6].map((failures) => retryDelayMs(seconds, failures, random()) / 1000)).toEqual([
      1, 2, 4, 8, 16, 16,
    ])
  })

  test('38 the cap holds for any failure number, also where powers of two overflow', () => {
    const policy = retry.exponential({ base: 1, cap: 16, jitter: 0 })
    for (const failures of [7, 54, 1_024, 1_025, 10_000]) expect(retryDelayMs(policy, failures, random())).toBe(16)
    expect(retryDelayMs(retry.exponential({ base: 0, jitter: 0.2 }), 10_000, random())).toBe(0)
  })

  test('39 with jitter 0.2 each delay lies within 20 % of the exact one, never above the cap or below 0', () => {
    // Bases and caps in fives of milliseconds, so that both ends of the span are whole milliseconds themselves.
    const fives = fc.integer({ min: 0, max: 200_000 }).map((count) => count * 5)
    fc.assert(
      fc.property(fives, fives, fc.integer({ min: 1, max: 40 }), fc.nat(), (base, cap, failures, seed) => {
        const exact = Math.min(cap, base * 2 ** (failures - 1))
        const delay = retryDelayMs(retry.exponential({ base, cap, jitter: 0.2 }), failures, new SeededRandom(seed))
        expect(delay).toBeGreaterThanOrEqual(exact * 0.8)
        expect(delay).toBeLessThanOrEqual(Math.min(exact * 1.2, cap))
        expect(Number.isInteger(delay)).toBe(true)
      }),
      { numRuns: 5_000 },
    )
  })

  test('39 jitter reaches both ends and its middle is the exact delay', () => {
    const policy = retry.exponential({ base: 1_000, cap: 10_000, jitter: 0.2 })
    const source = new SeededRandom(5)
    const delays = Array.from({ length: 20_000 }, () => retryDelayMs(policy, 1, source))
    expect(Math.min(...delays)).toBeLessThan(802)
    expect(Math.max(...delays)).toBeGreaterThan(1_198)
    expect(delays.reduce((sum, delay) => sum + delay, 0) / delays.length).toBeCloseTo(1_000, -1)
  })

  test('39 full jitter spans 0 to the cap', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(), (jitter, seed) => {
        const delay = retryDelayMs(retry.exponential({ base: 500, cap: 800, jitter }), 2, new SeededRandom(seed))
        expect(delay).toBeGreaterThanOrEqual(0)
        expect(delay).toBeLessThanOrEqual(800)
      }),
    )
  })

  test('54 fixed waits the same after every failure, immediate and none do not wait', () => {
    for (const failures of [1, 2, 30]) {
      expect(retryDelayMs(retry.fixed(4, '5s'), failures, random())).toBe(5_000)
      expect(retryDelayMs(retry.immediate(4), failures, random())).toBe(0)
      expect(retryDelayMs(retry.none(), failures, random())).toBe(0)
    }
    expect(retry.none().attempts).toBe(1)
  })
})

describe('classes', () => {
  test('44 the class of a code does not depend on its letter case', () => {
    for (const code of Object.keys(FAILURE_CLASSES)) {
      fc.assert(
        fc.property(spelling(code), (text) => {
          expect(failureClass(text)).toBe(failureClass(code))
        }),
        { numRuns: 20 },
      )
    }
  })

  test('44 a dead letter names the code in capitals whatever the handler wrote', () => {
    expect(decide('bad_Payload')).toEqual({ next: 'dead', code: 'BAD_PAYLOAD', crashes: 0 })
  })

  test('45 an unknown code is retryable, also one that names a property of every object', () => {
    const known = new Set(Object.keys(FAILURE_CLASSES))
    fc.assert(
      fc.property(fc.string(), (code) => {
        fc.pre(!known.has(code.toUpperCase()))
        expect(failureClass(code)).toBe('retryable')
        expect(decide(code).next).toBe('retry')
      }),
    )
    for (const code of ['constructor', '__proto__', 'toString', 'hasOwnProperty', ''])
      expect(failureClass(code)).toBe('retryable')
  })

  test.each(['DEPENDENCY_DOWN', 'RATE_LIMIT', 'DB_DEADLOCK', 'SERIALIZATION', 'DB_DISCONNECT', 'SYSTEM_FAILURE'])(
    '46 %s is of the system class and retried',
    (code) => {
      expect(failureClass(code)).toBe('system')
      expect(decide(code).next).toBe('retry')
    },
  )

  test('10 both spellings of completed and cancelled name the same state, and nothing else is a state', () => {
    expect(parseJobState('succeeded')).toBe('completed')
    expect(parseJobState('canceled')).toBe('cancelled')
    for (const state of JOB_STATES) expect(parseJobState(state)).toBe(state)
    for (const text of ['', 'RUNNING', 'done', 'constructor', '__proto__']) expect(parseJobState(text)).toBeNull()
  })
})

describe('decisions', () => {
  const budget = fc.record({
    attempt: fc.integer({ min: 1, max: 12 }),
    maxAttempts: fc.integer({ min: 1, max: 10 }),
    crashes: fc.integer({ min: 0, max: 4 }),
    maxCrashes: fc.integer({ min: 1, max: 4 }),
  })
  const code = fc.oneof(fc.constantFrom(...Object.keys(FAILURE_CLASSES)), fc.string())
  const kind = fc.constantFrom<RetryPolicy['kind']>('exponential', 'fixed', 'immediate', 'none')

  test('57 the same failure, budget and policy give the same next state', () => {
    fc.assert(
      fc.property(code, budget, kind, fc.nat(), (name, spent, how, seed) => {
        const policy = { ...POLICY, kind: how }
        const once = decideFailure(failure(name), spent, policy, new SeededRandom(seed))
        expect(decideFailure(failure(name), spent, policy, new SeededRandom(seed))).toEqual(once)
        // Chance moves the delay alone.
        const other = decideFailure(failure(name), spent, policy, new SeededRandom(seed + 1))
        expect({ ...other, delayMs: 0 }).toEqual({ ...once, delayMs: 0 })
      }),
    )
  })

  test('40 no failure and no expiry is followed by another run once the budget is spent', () => {
    fc.assert(
      fc.property(code, budget, fc.boolean(), (name, spent, cancelRequested) => {
        const isSpent = spent.attempt >= spent.maxAttempts
        if (isSpent) expect(decide(name, spent).next).not.toBe('retry')
        if (isSpent) expect(decideExpiry(spent, cancelRequested).next).not.toBe('requeue')
      }),
    )
    expect(decide('X', { ...BUDGET, attempt: 3, maxAttempts: 3 })).toEqual({
      next: 'dead',
      code: 'MAX_ATTEMPTS_EXCEEDED',
      crashes: 0,
    })
    expect(decide('X', { ...BUDGET, attempt: 2, maxAttempts: 3 }).next).toBe('retry')
  })

  test('43 a permanent failure and a passed deadline are dead at once', () => {
    expect(decide('PERMANENT_ERROR')).toMatchObject({ next: 'dead', code: 'PERMANENT_ERROR' })
    expect(decide('PERMANENT')).toMatchObject({ next: 'dead', code: 'PERMANENT' })
    expect(decide('DEADLINE_EXCEEDED')).toMatchObject({ next: 'dead', code: 'DEADLINE_EXCEEDED' })
  })

  test('47 crashes in a row are counted, another failure starts the count anew, the limit dead-letters', () => {
    expect(decide('PANIC', { ...BUDGET, crashes: 0 })).toMatchObject({ next: 'retry', crashes: 1 })
    expect(decide('PANIC', { ...BUDGET, crashes: 1 })).toMatchObject({ next: 'retry', crashes: 2 })
    expect(decide('PANIC', { ...BUDGET, crashes: 2 })).toEqual({ next: 'dead', code: 'PANIC', crashes: 3 })
    expect(decide('X', { ...BUDGET, crashes: 2 })).toMatchObject({ next: 'retry', crashes: 0 })
  })

  test('25 an expired lease is charged, counts as a crash, and ends in the dead letters', () => {
    expect(decideExpiry(BUDGET, false)).toEqual({ next: 'requeue', crashes: 1 })
    expect(decideExpiry({ ...BUDGET, crashes: 2 }, false)).toEqual({ next: 'dead', code: 'CRASH_LOOP', crashes: 3 })
    expect(decideExpiry({ ...BUDGET, attempt: 7 }, false)).toMatchObject({
      next: 'dead',
      code: 'MAX_ATTEMPTS_EXCEEDED',
    })
    expect(decideExpiry(BUDGET, true)).toMatchObject({ next: 'cancel' })
    expect(expiryFailure('w')).toMatchObject({ code: 'LEASE_EXPIRED', message: expect.stringContaining('w') })
  })

  test('a delay that the handler asked for takes the place of the policy', () => {
    const asked = { ...failure('RATE_LIMIT'), retryAfterMs: 12_345 }
    expect(decideFailure(asked, BUDGET, POLICY, random())).toEqual({ next: 'retry', delayMs: 12_345, crashes: 0 })
  })

  test('a cancelled attempt stays cancelled whatever its budget', () => {
    fc.assert(
      fc.property(budget, (spent) => {
        expect(decide('CANCELLED', spent).next).toBe('cancel')
      }),
    )
  })
})

describe('tokens', () => {
  test('epochs grow whatever the clock does, and follow it when it runs forward', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4_000_000_000_000 }), { maxLength: 50 }), (times) => {
        let epoch = 0
        for (const now of times) {
          const next = nextEpoch(epoch, now)
          expect(next).toBeGreaterThan(epoch)
          expect(next).toBeGreaterThanOrEqual(now * 1_000)
          expect(Number.isSafeInteger(next)).toBe(true)
          epoch = next
        }
      }),
    )
  })

  test('a token names its epoch, worker, nonce and place', () => {
    expect(leaseToken(7, 'w', 'n', 0)).toBe('7:w:n.0')
    expect(leaseToken(7, 'w', 'n', 1)).not.toBe(leaseToken(7, 'w', 'n', 0))
  })
})
