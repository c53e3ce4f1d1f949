/** What the URLs of the Redis store and a caller's ioredis client are read as, and which are refused. */
import { Cluster, Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { isRedisClient, locationOfClient } from '#dist/src/backends/redis/client-location.js'
import { addressOf, endpointOf } from '#dist/src/backends/redis/location.js'
import { isRedisUrl, parseRedisUrl } from '#dist/src/backends/redis/url.js'

const NOTHING = {
  username: undefined,
  password: undefined,
  database: 0,
  driver: {},
  caFile: undefined,
  waitReplicas: 0,
  allowEviction: false,
}

describe('a URL', () => {
  test.each([
    ['redis://localhost', { endpoints: [{ host: 'localhost', port: 6379 }] }],
    ['REDIS://h:1/', { endpoints: [{ host: 'h', port: 1 }] }],
    ['redis://h:7000/3', { endpoints: [{ host: 'h', port: 7000 }], database: 3 }],
    ['redis://[::1]:7000', { endpoints: [{ host: '::1', port: 7000 }] }],
    ['redis://[fe80::1]', { endpoints: [{ host: 'fe80::1', port: 6379 }] }],
    ['redis://:p%40ss%3A%2F@h', { endpoints: [{ host: 'h', port: 6379 }], password: 'p@ss:/' }],
    ['redis://us%2Fer:pa:ss@h', { endpoints: [{ host: 'h', port: 6379 }], username: 'us/er', password: 'pa:ss' }],
    ['redis://u:p@ss/w@h:1/2', { endpoints: [{ host: 'h', port: 1 }], username: 'u', password: 'p@ss/w', database: 2 }],
    ['rediss://h', { endpoints: [{ host: 'h', port: 6379 }], driver: { tls: {} } }],
    [
      'rediss://h?ca=%2Fetc%2Fca.pem',
      { endpoints: [{ host: 'h', port: 6379 }], driver: { tls: {} }, caFile: '/etc/ca.pem' },
    ],
    [
      'redis://h?waitReplicas=2&allowEviction=true',
      { endpoints: [{ host: 'h', port: 6379 }], waitReplicas: 2, allowEviction: true },
    ],
  ])('%s', (url, expected) => {
    expect(isRedisUrl(url)).toBe(true)
    expect(parseRedisUrl(url)).toEqual({ ...NOTHING, topology: 'single', ...expected })
  })

  test('of a Cluster names some of its nodes', () => {
    const endpoints = [
      { host: 'a', port: 1 },
      { host: '::1', port: 2 },
      { host: 'c', port: 6379 },
    ]
    expect(parseRedisUrl('redis+cluster://a:1,[::1]:2,c')).toEqual({ ...NOTHING, topology: 'cluster', endpoints })
    expect(parseRedisUrl('rediss+cluster://u:p@a:1').driver).toEqual({ tls: {} })
  })

  test('of Sentinels names the primary', () => {
    expect(parseRedisUrl('redis+sentinel://u:p@s1,s2:2/my%20main/4')).toEqual({
      ...NOTHING,
      topology: 'sentinel',
      endpoints: [
        { host: 's1', port: 26_379 },
        { host: 's2', port: 2 },
      ],
      username: 'u',
      password: 'p',
      database: 4,
      driver: { name: 'my main' },
    })
    expect(parseRedisUrl('rediss+sentinel://s/main').driver).toEqual({
      name: 'main',
      tls: {},
      sentinelTLS: {},
      enableTLSForSentinelMode: true,
    })
  })

  test.each([
    'http://secret@h',
    'redis:h',
    'redis://',
    'redis://secret@h',
    'redis://secret:@h',
    'redis://:secret%@h',
    'redis://:secret#x@h',
    'redis://:secret@h:0',
    'redis://:secret@h:65536',
    'redis://:secret@h:port',
    'redis://:secret@a,,b',
    'redis://:secret@::1',
    'redis://:secret@h/secret',
    'redis://:secret@h/1/2',
    'redis://:secret@h/65536',
    'redis+cluster://:secret@h/1',
    'redis+sentinel://:secret@h',
    'redis+sentinel://:secret@h/main/0/1',
    'redis://:secret@h?secret=1',
    'redis://:secret@h?ca=/secret',
    'rediss://:secret@h?ca=',
    'redis://:secret@h?waitReplicas=-1',
    'redis://:secret@h?waitReplicas=secret',
    'redis://:secret@h?waitReplicas=1&waitReplicas=2',
    'redis://:secret@h?allowEviction=yes',
  ])('%s is refused, and not repeated', (url) => {
    let refusal: unknown
    try {
      parseRedisUrl(url)
    } catch (error) {
      refusal = error
    }
    expect(refusal).toMatchObject({ code: 'INVALID_URL', details: { field: 'url' } })
    const { message } = refusal as Error
    if (!url.includes('?secret=1')) expect(message).not.toContain('secret')
    expect(message).not.toContain(url)
  })

  test('a Redis URL has several hosts only in a Cluster or of Sentinels', () => {
    expect(() => parseRedisUrl('redis://a,b')).toThrow(/redis\+cluster/)
  })

  test('addresses are read as they are written', () => {
    for (const address of ['h:1', '127.0.0.1:7000', '[::1]:7000']) expect(addressOf(endpointOf(address))).toBe(address)
    expect(endpointOf('::1:7000')).toEqual({ host: '::1', port: 7000 })
  })
})

describe("a caller's client", () => {
  test('tells its server', () => {
    const client = new Redis({
      host: 'h',
      port: 7,
      username: 'u',
      password: 'p',
      db: 3,
      tls: { ca: 'x' },
      lazyConnect: true,
    })
    expect(isRedisClient(client)).toBe(true)
    expect(locationOfClient(client)).toMatchObject({
      topology: 'single',
      endpoints: [{ host: 'h', port: 7 }],
      username: 'u',
      password: 'p',
      database: 3,
      driver: { tls: { ca: 'x' } },
    })
    expect(client.status).toBe('wait')
  })

  test('tells its Sentinels', () => {
    const client = new Redis({
      sentinels: [{ host: 's', port: 1 }],
      name: 'main',
      sentinelPassword: 'q',
      lazyConnect: true,
    })
    expect(locationOfClient(client)).toMatchObject({
      topology: 'sentinel',
      endpoints: [{ host: 's', port: 1 }],
      driver: { name: 'main', sentinelPassword: 'q' },
    })
  })

  test('tells its nodes', () => {
    const nodes = [{ host: 'a', port: 1 }, 2, 'redis://c:3']
    const client = new Cluster(nodes, { redisOptions: { password: 'p' }, natMap: {}, lazyConnect: true })
    expect(locationOfClient(client)).toMatchObject({
      topology: 'cluster',
      endpoints: [
        { host: 'a', port: 1 },
        { host: '127.0.0.1', port: 2 },
        { host: 'c', port: 3 },
      ],
      password: 'p',
      driver: { natMap: {} },
    })
  })

  test('with a key prefix is refused', () => {
    const client = new Redis({ keyPrefix: 'app:', lazyConnect: true })
    expect(() => locationOfClient(client)).toThrow(/keyPrefix/)
  })

  test.each([null, undefined, 'redis://h', {}, { options: {} }, { options: null, duplicate() {} }])(
    '%s is none',
    (value) => {
      expect(isRedisClient(value)).toBe(false)
    },
  )
})
