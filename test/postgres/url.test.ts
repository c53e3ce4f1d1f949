/** What the URLs of the PostgreSQL store and a caller's own pool are read as, and which are refused. */
import { Client, Pool } from 'pg'
import { describe, expect, test } from 'vitest'
import { isPostgresPool, locationOfPool } from '#dist/src/backends/postgres/caller-pool.js'
import { serverOf } from '#dist/src/backends/postgres/location.js'
import { isPostgresUrl, parsePostgresUrl, parseTarget } from '#dist/src/backends/postgres/url.js'

const NO_TLS = { mode: 'disable', rootFile: undefined, certificateFile: undefined, keyFile: undefined }
const TARGET = {
  endpoints: [{ host: 'h', port: 5432 }],
  database: undefined,
  user: undefined,
  password: undefined,
  tls: NO_TLS,
  applicationName: 'holdfast',
}
const STORE = {
  kind: 'url',
  schema: 'holdfast',
  isPooled: false,
  isMigrating: true,
  isNotifying: true,
  connections: 4,
  listen: undefined,
}

describe('a URL', () => {
  test.each([
    ['postgres://h', {}],
    ['postgresql://h/', {}],
    ['POSTGRES://h:7/db', { endpoints: [{ host: 'h', port: 7 }], database: 'db' }],
    ['postgres://h/my%2Fdb', { database: 'my/db' }],
    ['postgres://[::1]:7000', { endpoints: [{ host: '::1', port: 7000 }] }],
    ['postgres://u@h', { user: 'u' }],
    ['postgres://u:@h', { user: 'u' }],
    ['postgres://us%2Fer:p%40s:s@h', { user: 'us/er', password: 'p@s:s' }],
    ['postgres://u:p@ss/w@h/db', { user: 'u', password: 'p@ss/w', database: 'db' }],
    [
      'postgres://a:1,b,[::2]:3/db?target_session_attrs=read-write',
      {
        database: 'db',
        endpoints: [
          { host: 'a', port: 1 },
          { host: 'b', port: 5432 },
          { host: '::2', port: 3 },
        ],
      },
    ],
    ['postgres://%2Fvar%2Frun:7/db', { endpoints: [{ host: '/var/run', port: 7 }], database: 'db' }],
    ['postgres:///db?host=/var/run&port=7', { endpoints: [{ host: '/var/run', port: 7 }], database: 'db' }],
    [
      'postgres://u:p@/db?host=/x',
      { endpoints: [{ host: '/x', port: 5432 }], user: 'u', password: 'p', database: 'db' },
    ],
    ['postgres://h?application_name=a+b%20c', { applicationName: 'a+b c' }],
    ['postgres://h?sslmode=disable', {}],
    ['postgres://h?sslmode=require', { tls: { ...NO_TLS, mode: 'require' } }],
    ['postgres://h?sslmode=require&sslrootcert=/c', { tls: { ...NO_TLS, mode: 'verify-ca', rootFile: '/c' } }],
    ['postgres://h?sslmode=verify-full&sslrootcert=system', { tls: { ...NO_TLS, mode: 'verify-full' } }],
    [
      'postgres://h?sslmode=verify-ca&sslrootcert=/r&sslcert=/c&sslkey=/k',
      { tls: { mode: 'verify-ca', rootFile: '/r', certificateFile: '/c', keyFile: '/k' } },
    ],
  ])('%s', (url, expected) => {
    expect(isPostgresUrl(url)).toBe(true)
    expect(parsePostgresUrl(url)).toEqual({ ...STORE, target: { ...TARGET, ...expected } })
    expect(parseTarget(url)).toEqual({ ...TARGET, ...expected })
  })

  test.each([
    ['schema=Jobs_2-b', { schema: 'Jobs_2-b' }],
    ['pooler=transaction', { isPooled: true }],
    ['migrate=off&notify=off', { isMigrating: false, isNotifying: false }],
    ['migrate=on&notify=on', {}],
    ['connections=100', { connections: 100 }],
    ['listen=off', { listen: null }],
  ])('with %s', (query, expected) => {
    expect(parsePostgresUrl(`postgres://h?${query}`)).toEqual({ ...STORE, target: TARGET, ...expected })
  })

  test('for LISTEN takes what it leaves out from the first one', () => {
    const first = 'postgres://u:p@pooler:6543/db?sslmode=require&listen='
    const listen = (url: string) => parsePostgresUrl(first + encodeURIComponent(url)).listen
    const direct = { ...TARGET, endpoints: [{ host: 'direct', port: 5432 }], user: 'u', password: 'p', database: 'db' }
    const tls = { ...NO_TLS, mode: 'require' }
    expect(listen('postgres://direct')).toEqual({ ...direct, tls })
    expect(listen('postgres://u@direct')).toEqual({ ...direct, tls })
    expect(listen('postgres://other@direct/x')).toEqual({
      ...direct,
      user: 'other',
      password: undefined,
      database: 'x',
      tls,
    })
    expect(listen('postgres://direct?sslmode=disable')).toEqual(direct)
  })

  test.each([
    'postgres://',
    'postgres:///db',
    'postgres://h:0',
    'postgres://h:65536',
    'postgres://h:x',
    'postgres://h,',
    'postgres://a b',
    'postgres://h/a/b',
    'postgres://h/a#b',
    'postgres://u:p#w@h',
    'postgres://u:100%@h',
    'postgres://:p@h',
    'postgres://u:%00@h',
    'postgres://h/%00',
    'postgres://h?nope=1',
    'postgres://h?password=x',
    'postgres://h?constructor=1',
    'postgres://h?schema=a&schema=b',
    'postgres://h?schema=',
    'postgres://h?schema=1a',
    'postgres://h?schema=a"b',
    'postgres://h?schema=pg_jobs',
    'postgres://h?schema=information_schema',
    `postgres://h?schema=${'a'.repeat(64)}`,
    'postgres://h?pooler=session',
    'postgres://h?migrate=no',
    'postgres://h?notify=',
    'postgres://h?connections=0',
    'postgres://h?connections=101',
    'postgres://h?connections=1e2',
    'postgres://h?listen=redis%3A%2F%2Fh',
    'postgres://h?listen=postgres%3A%2F%2Fh%3Fschema%3Da',
    'postgres://h?host=/x',
    'postgres://h?port=7',
    'postgres:///db?host=',
    'postgres://h?application_name=',
    `postgres://h?application_name=${'a'.repeat(64)}`,
    'postgres://h?sslmode=allow',
    'postgres://h?sslmode=prefer',
    'postgres://h?sslmode=yes',
    'postgres://h?sslrootcert=/c',
    'postgres://h?sslmode=require&sslcert=/c',
    'postgres://h?sslmode=require&sslrootcert=',
    'postgres:///db?host=/x&sslmode=require',
    'postgres://h?target_session_attrs=any',
  ])('%s is refused', (url) => {
    expect(() => parsePostgresUrl(url)).toThrow(expect.objectContaining({ code: 'INVALID_URL' }))
  })

  test('names the parameter that it does not know, and what it knows', () => {
    expect(() => parsePostgresUrl('postgres://h?ssl=true')).toThrow(/unknown parameter 'ssl'; known are .*sslmode/)
  })

  test('is never repeated in an error, whatever its password holds', () => {
    const secret = 's3cr3t'
    for (const password of [
      secret,
      `?${secret}`,
      `a?${secret}=b`,
      `/${secret}`,
      `#${secret}`,
      `%${secret}`,
      `[${secret}`,
    ]) {
      for (const rest of ['h:x', 'h?nope=1', 'h/a/b', '', `h?listen=postgres://u:${secret}@x:y`]) {
        let said = ''
        try {
          parsePostgresUrl(`postgres://u:${password}@${rest}`)
        } catch (error) {
          said = JSON.stringify([String(error), error])
        }
        expect(said).not.toContain(secret)
      }
    }
    const { target } = parsePostgresUrl(`postgres://u:${secret}@a,b:1/db`)
    expect(serverOf(target)).toBe('a:5432, b:1, database db')
  })
})

describe("a caller's pool", () => {
  const pool = new Pool({ host: 'h', password: 's3cr3t' })

  test('is told apart by its shape', () => {
    expect(isPostgresPool(pool)).toBe(true)
    for (const other of [new Client(), {}, null, 'postgres://h', { options: {}, duplicate: () => {} }])
      expect(isPostgresPool(other)).toBe(false)
  })

  test('comes with what a URL says in its parameters', () => {
    const plain = { kind: 'pool', pool, schema: 'holdfast', isPooled: false, isMigrating: true, isNotifying: true }
    expect(locationOfPool(pool)).toEqual({ ...plain, listen: undefined })
    expect(
      locationOfPool(pool, { schema: 'jobs', pooler: 'transaction', listen: false, notify: false, migrate: false }),
    ).toEqual({ ...plain, schema: 'jobs', isPooled: true, isMigrating: false, isNotifying: false, listen: null })
    expect(locationOfPool(pool, { listen: 'postgres://h' }).listen).toEqual(TARGET)
  })

  test.each([
    [{ schema: 'a b' }, 'schema'],
    [{ schema: 7 }, 'schema'],
    [{ pooler: 'session' }, 'pooler'],
    [{ notify: 'off' }, 'notify'],
    [{ migrate: 0 }, 'migrate'],
    [{ listen: 'off' }, 'listen'],
    [{ connections: 7 }, 'connections'],
  ])('is refused with %o', (options, field) => {
    expect(() => locationOfPool(pool, options as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', details: expect.objectContaining({ field }) }),
    )
  })
})
