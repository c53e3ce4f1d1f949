/** What errors of the server, the driver and the network are taken for: code, outcome, and what becomes of the connection. */
import { describe, expect, test } from 'vitest'
import { isStartupRefused, type Stage, sqlStateOf, timedOut, verdictOf } from '#dist/src/backends/postgres/errors.js'

const SERVER = 'h:5432'

function serverError(code: string, more: Readonly<Record<string, unknown>> = {}): Error {
  return Object.assign(new Error(`says ${code}`), { code, severity: 'ERROR', ...more })
}

const driverError = (message: string, code?: string): Error => Object.assign(new Error(message), code ? { code } : {})

function seen(error: unknown, stage: Stage): string {
  const verdict = verdictOf(error, SERVER, stage)
  const after = [verdict.isConflict && 'again', verdict.isDiscarded && 'discarded'].filter(Boolean)
  return [verdict.error.code, verdict.error.details.outcome, ...after].join(' ')
}

describe('of the server', () => {
  test.each([
    ['40001', 'STORE_BUSY notDone again'],
    ['40P01', 'STORE_BUSY notDone again'],
    ['55P03', 'STORE_BUSY notDone again'],
    ['57014', 'STORE_BUSY notDone again'],
    ['26000', 'STORE_BUSY notDone again'],
    ['42P05', 'STORE_BUSY notDone again'],
    ['25006', 'STORE_UNAVAILABLE notDone discarded'],
    ['53300', 'STORE_UNAVAILABLE notDone discarded'],
    ['57P03', 'STORE_UNAVAILABLE notDone discarded'],
    ['53100', 'STORE_FULL notDone'],
    ['53200', 'STORE_UNAVAILABLE notDone'],
    ['53400', 'STORE_UNAVAILABLE notDone'],
    ['58030', 'STORE_UNAVAILABLE notDone'],
    ['42501', 'STORE_DENIED refused'],
    ['28P01', 'STORE_DENIED refused'],
    ['28000', 'STORE_DENIED refused'],
    ['3D000', 'INVALID_URL refused'],
    ['42P01', 'UNSUPPORTED refused'],
    ['3F000', 'UNSUPPORTED refused'],
    ['42703', 'UNSUPPORTED refused'],
    ['XX001', 'STORE_CORRUPT refused'],
    ['XX002', 'STORE_CORRUPT refused'],
    ['23505', 'INTERNAL refused'],
    ['25P02', 'INTERNAL refused'],
    ['42601', 'INTERNAL refused'],
    ['XX000', 'INTERNAL refused'],
    ['0A000', 'INTERNAL refused'],
  ])('%s is the same wherever it comes up: %s', (code, expected) => {
    for (const stage of ['connect', 'statement', 'transaction', 'commit'] as const)
      expect(seen(serverError(code), stage)).toBe(expected)
  })

  test.each(['08006', '08P01', '57P01', '57P02', '57P04', '57P05', '25P03', '40003'])(
    '%s ends the connection: before the COMMIT nothing was done, else nobody knows',
    (code) => {
      for (const severity of ['ERROR', 'FATAL']) {
        for (const stage of ['connect', 'transaction'] as const)
          expect(seen(serverError(code, { severity }), stage)).toBe('STORE_UNAVAILABLE notDone discarded')
        for (const stage of ['statement', 'commit'] as const)
          expect(seen(serverError(code, { severity }), stage)).toBe('STORE_UNAVAILABLE unknown discarded')
      }
    },
  )

  test('a panic in the middle of a commit leaves it open whether that was done', () => {
    expect(seen(serverError('53100', { severity: 'PANIC' }), 'statement')).toBe('STORE_FULL unknown discarded')
    expect(seen(serverError('58030', { severity: 'PANIK' }), 'commit')).toBe('STORE_UNAVAILABLE unknown discarded')
    expect(seen(serverError('XX000', { severity: 'FATAL' }), 'statement')).toBe('INTERNAL unknown discarded')
    expect(seen(serverError('XX000', { severity: 'FATAL' }), 'transaction')).toBe('INTERNAL notDone discarded')
  })

  test('a plan of before a migration is made anew on another connection', () => {
    const error = serverError('0A000', { routine: 'RevalidateCachedQuery' })
    expect(seen(error, 'statement')).toBe('STORE_BUSY notDone again discarded')
  })

  test('a crash is told apart, and a lost name too', () => {
    for (const code of ['57P02', '57P03']) expect(verdictOf(serverError(code), SERVER, 'connect').isCrash).toBe(true)
    expect(verdictOf(serverError('57P01'), SERVER, 'connect').isCrash).toBe(false)
    for (const code of ['26000', '42P05'])
      expect(verdictOf(serverError(code), SERVER, 'statement').isUnnamedOnly).toBe(true)
  })

  test('keeps nothing of what was sent', () => {
    const secret = 's3cr3t'
    const more = { detail: `Key (a)=(${secret})`, hint: secret, where: secret, internalQuery: secret }
    const errors = [
      serverError('23505', more),
      Object.assign(serverError('22P02', { routine: 'pg_strtoint32', ...more }), { message: `invalid: "${secret}"` }),
    ]
    for (const error of errors) {
      const { error: known } = verdictOf(error, SERVER, 'statement')
      const cause = known.cause as Error
      expect(JSON.stringify([known, known.message, known.stack, cause, cause.message, cause.stack])).not.toContain(
        secret,
      )
      expect(sqlStateOf(known)).toBe(sqlStateOf(error))
    }
  })
})

describe('of the driver and the network', () => {
  test.each([
    ['Connection terminated unexpectedly', undefined, 'unknown'],
    ['read ECONNRESET', 'ECONNRESET', 'unknown'],
    ['write EPIPE', 'EPIPE', 'unknown'],
    ['Client has encountered a connection error and is not queryable', undefined, 'notDone'],
    ['Client was closed and is not queryable', undefined, 'notDone'],
  ])('%s', (message, code, outcome) => {
    const error = driverError(message, code)
    expect(seen(error, 'statement')).toBe(`STORE_UNAVAILABLE ${outcome} discarded`)
    expect(seen(error, 'commit')).toBe(`STORE_UNAVAILABLE ${outcome} discarded`)
    expect(seen(error, 'transaction')).toBe('STORE_UNAVAILABLE notDone discarded')
    expect(seen(error, 'connect')).toBe('STORE_UNAVAILABLE notDone discarded')
  })

  test('a missing password and a certificate that is not trusted are no matter of time', () => {
    const final = [
      driverError('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
      driverError('self-signed certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT'),
      driverError("Hostname/IP does not match certificate's altnames", 'ERR_TLS_CERT_ALTNAME_INVALID'),
      driverError('The server does not support SSL connections'),
    ]
    for (const error of final) expect(seen(error, 'connect')).toBe('STORE_DENIED refused discarded')
  })

  test('no answer in time leaves it open only where something may have been committed', () => {
    expect(seen(timedOut(SERVER, 5, 'statement'), 'statement')).toBe('STORE_TIMEOUT unknown discarded')
    expect(seen(timedOut(SERVER, 5, 'commit'), 'commit')).toBe('STORE_TIMEOUT unknown discarded')
    expect(seen(timedOut(SERVER, 5, 'transaction'), 'transaction')).toBe('STORE_UNAVAILABLE notDone discarded')
  })

  test('many failed addresses are told by their code, since they have no message', () => {
    const error = Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' })
    expect(verdictOf(error, SERVER, 'connect').error.message).toContain('ECONNREFUSED')
  })

  test('what is no error at all is told too', () => {
    expect(seen('a word', 'statement')).toBe('STORE_UNAVAILABLE unknown discarded')
  })
})

test('settings in the first packet are refused by poolers in several ways, and by nobody else', () => {
  expect(isStartupRefused(Object.assign(serverError('08P01'), { message: 'unsupported startup parameter: jit' }))).toBe(
    true,
  )
  for (const code of ['0A000', '42704', '22023']) expect(isStartupRefused(serverError(code))).toBe(true)
  for (const code of ['08P01', '28P01', '53300']) expect(isStartupRefused(serverError(code))).toBe(false)
  expect(isStartupRefused(driverError('read ECONNRESET', 'ECONNRESET'))).toBe(false)
})
