/** What each error reply of a server, and each loss of a connection, becomes. Replies are as Redis 7.0 words them. */
import { describe, expect, test } from 'vitest'
import { cannotConnect, commandError, timedOut } from '#dist/src/backends/redis/errors.js'

function reply(message: string): Error {
  return Object.assign(new Error(message), {
    name: 'ReplyError',
    command: { name: 'hello', args: ['AUTH', 'u', 'secret'] },
  })
}

test.each([
  ["READONLY You can't write against a read only replica.", 'STORE_UNAVAILABLE', 'notDone'],
  ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", 'STORE_UNAVAILABLE', 'notDone'],
  ['LOADING Redis is loading the dataset in memory', 'STORE_UNAVAILABLE', 'notDone'],
  ['NOREPLICAS Not enough good replicas to write.', 'STORE_UNAVAILABLE', 'notDone'],
  ['CLUSTERDOWN Hash slot not served', 'STORE_UNAVAILABLE', 'notDone'],
  ['TRYAGAIN Multiple keys request during rehashing of slot', 'STORE_UNAVAILABLE', 'notDone'],
  ['BUSY Redis is busy running a script.', 'STORE_UNAVAILABLE', 'notDone'],
  ['MISCONF Redis is configured to save RDB snapshots', 'STORE_UNAVAILABLE', 'notDone'],
  ['MOVED 3999 127.0.0.1:6381', 'STORE_UNAVAILABLE', 'notDone'],
  ['ERR max number of clients reached', 'STORE_UNAVAILABLE', 'notDone'],
  ["OOM command not allowed when used memory > 'maxmemory'.", 'STORE_FULL', 'notDone'],
  ['NOAUTH Authentication required.', 'STORE_DENIED', 'refused'],
  ['WRONGPASS invalid username-password pair or user is disabled.', 'STORE_DENIED', 'refused'],
  ["NOPERM this user has no permissions to run the 'evalsha' command", 'STORE_DENIED', 'refused'],
  ['DENIED Redis is running in protected mode', 'STORE_DENIED', 'refused'],
  ['WRONGTYPE Operation against a key holding the wrong kind of value', 'STORE_CORRUPT', 'refused'],
  ["CROSSSLOT Keys in request don't hash to the same slot", 'INTERNAL', 'refused'],
  ['ERR user_script:1: attempt to index a nil value', 'INTERNAL', 'unknown'],
  ['constructor', 'INTERNAL', 'unknown'],
])('%s', (message, code, outcome) => {
  const error = commandError(reply(message), 'h:1')
  expect(error).toMatchObject({ code, details: { outcome, server: 'h:1' } })
  expect(error.retryable).toBe(outcome === 'notDone')
  expect(error.message).toMatch(/^Redis at h:1 /)
})

test('an error reply carries no argument of its command', () => {
  const error = commandError(reply('WRONGPASS invalid username-password pair'), 'h:1')
  expect(error.cause).not.toHaveProperty('command')
  expect(JSON.stringify([error, error.cause, error.details, error.message])).not.toContain('secret')
})

describe('a lost connection', () => {
  test('leaves the outcome open when the command was sent', () => {
    for (const message of ['Connection is closed.', 'read ECONNRESET', 'Protocol error'])
      expect(commandError(new Error(message), 'h:1')).toMatchObject({
        code: 'STORE_UNAVAILABLE',
        details: { outcome: 'unknown' },
      })
  })

  test('did nothing when the command could not be written', () => {
    const error = new Error("Stream isn't writeable and enableOfflineQueue options is false")
    expect(commandError(error, 'h:1')).toMatchObject({ code: 'STORE_UNAVAILABLE', details: { outcome: 'notDone' } })
  })

  test('that never stood did nothing', () => {
    const refused = Object.assign(new Error(''), { code: 'ECONNREFUSED' })
    expect(cannotConnect('h:1', refused)).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: 'Redis at h:1 cannot be reached: ECONNREFUSED',
      details: { outcome: 'notDone' },
    })
    expect(cannotConnect('h:1', timedOut('h:1', 5))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      details: { outcome: 'notDone' },
    })
    expect(cannotConnect('h:1', commandError(reply('WRONGPASS x'), 'h:1'))).toMatchObject({ code: 'STORE_DENIED' })
  })
})
