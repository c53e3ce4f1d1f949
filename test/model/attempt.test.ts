/** The retry policy of an attempt when it is a function of the caller's: whatever it does, there is a policy. */
import { describe, expect, it } from 'vitest'
import { type AttemptEnvironment, resolvePolicy } from '#dist/src/actors/attempt.js'
import { DEFAULT_RETRY } from '#dist/src/contract.js'

/** Timers whose time is up at once. */
const timers = { set: (run: () => void) => setImmediate(run), clear: () => {}, defer: setImmediate }

function resolved(policy: () => unknown): ReturnType<typeof resolvePolicy> {
  const env = { handlers: new Map(), queueRetry: new Map(), defaultRetry: policy, timers, context: {} }
  const job = { id: 'default/1', type: 'task', lane: 'default', attempt: 1, metadata: null, retry: null }
  return resolvePolicy(env as unknown as AttemptEnvironment, job as never, { code: 'X', message: 'x' })
}

const unreadable = Object.defineProperty(new Error('x'), 'message', {
  get() {
    throw new Error('no')
  },
})

describe('a retry policy function', () => {
  it('that never answers is given up, and the default stands in', async () => {
    const { policy, policyError } = await resolved(() => new Promise(() => {}))
    expect(policy).toEqual(DEFAULT_RETRY)
    expect(policyError).toMatch(/no answer within/)
  })

  for (const [what, thrown] of [
    ['nothing', null],
    ['a symbol', Symbol('x')],
    ['an object without a prototype', Object.create(null)],
    ['an error that cannot be read', unreadable],
  ] as const) {
    it(`that throws ${what} leaves the default`, async () => {
      const { policy, policyError } = await resolved(() => {
        throw thrown
      })
      expect(policy).toEqual(DEFAULT_RETRY)
      expect(policyError).toBeTypeOf('string')
    })
  }
})
