/** What is read from INFO and CONFIG GET, and which servers are refused or warned of. */
import { describe, expect, test } from 'vitest'
import {
  checkVersion,
  isSameServer,
  readReport,
  type ServerReport,
  weakest,
} from '#dist/src/backends/redis/server-facts.js'
import { checkSettings } from '#dist/src/backends/redis/settings-check.js'
import { parseRedisUrl } from '#dist/src/backends/redis/url.js'

const INFO = {
  redis_version: '7.2.4',
  run_id: 'r1',
  role: 'master',
  master_replid: 'm1',
  loading: '0',
  maxmemory: '0',
  maxmemory_policy: 'noeviction',
  aof_enabled: '1',
  cluster_enabled: '0',
}

function report(fields: Partial<Record<string, string>> = {}, fsync = 'always'): ServerReport {
  const lines = Object.entries({ ...INFO, ...fields }).map(([name, value]) => `${name}:${value}`)
  const reply = ['# Server', ...lines, ''].join('\r\n')
  return readReport(Buffer.from(reply), [Buffer.from('appendfsync'), Buffer.from(fsync)])
}

describe('a report', () => {
  test('is read from text', () => {
    expect(report()).toEqual({
      compatibleVersion: '7.2.4',
      runId: 'r1',
      replicationId: 'm1',
      isPrimary: true,
      isLoading: false,
      maxmemory: 0,
      facts: {
        version: '7.2.4',
        isCluster: false,
        maxmemoryPolicy: 'noeviction',
        isAofEnabled: true,
        appendFsync: 'always',
      },
    })
    expect(report({ role: 'slave', loading: '1', maxmemory: '8388608' })).toMatchObject({
      isPrimary: false,
      isLoading: true,
      maxmemory: 8_388_608,
    })
    expect(report({ valkey_version: '8.1.0' }).facts.version).toBe('8.1.0')
  })

  test('knows no appendfsync where CONFIG is forbidden', () => {
    expect(readReport(Buffer.from(''), null).facts.appendFsync).toBe('unknown')
    expect(readReport(Buffer.from(''), []).facts.appendFsync).toBe('unknown')
  })

  test('tells another process and another history', () => {
    expect(isSameServer(report(), report())).toBe(true)
    expect(isSameServer(report(), report({ run_id: 'r2' }))).toBe(false)
    expect(isSameServer(report(), report({ master_replid: 'm2' }))).toBe(false)
  })

  test.each(['6.2.14', '', '5.0'])('of version %j is refused', (redis_version) => {
    expect(() => checkVersion(report({ redis_version }), 'h:1')).toThrow(
      expect.objectContaining({
        code: 'UNSUPPORTED',
        details: { outcome: 'refused', code: 'SERVER_VERSION', server: 'h:1' },
      }),
    )
  })

  test.each(['7.0.0', '7.2.4', '10.1.0'])('of version %s is taken', (redis_version) => {
    expect(() => checkVersion(report({ redis_version }), 'h:1')).not.toThrow()
  })
})

describe('the facts of several nodes', () => {
  test('are what each promises at least', () => {
    const nodes = [
      report({ redis_version: '7.10.0', cluster_enabled: '1' }),
      report(
        { redis_version: '7.9.0', cluster_enabled: '1', aof_enabled: '0', maxmemory_policy: 'allkeys-lru' },
        'everysec',
      ),
    ]
    expect(weakest(nodes, 2)).toEqual({
      version: '7.9.0',
      isCluster: true,
      maxmemoryPolicy: 'allkeys-lru',
      isAofEnabled: false,
      appendFsync: 'everysec',
      waitReplicas: 2,
    })
  })

  test('of none are the worst', () => {
    expect(weakest([], 0)).toMatchObject({ isAofEnabled: false, appendFsync: 'unknown' })
  })
})

describe('settings', () => {
  const check = (fields: Partial<Record<string, string>>, url = 'redis://h'): unknown[] => {
    const codes: unknown[] = []
    checkSettings([report(fields)], parseRedisUrl(url), ({ code }) => codes.push(code))
    return codes
  }

  test('that keep jobs pass without a word', () => {
    expect(check({})).toEqual([])
    expect(check({ maxmemory: '1000' })).toEqual([])
    expect(check({ maxmemory_policy: 'allkeys-lru' })).toEqual([])
  })

  test('C038 that evict jobs are refused unless allowed', () => {
    const fields = { maxmemory: '1000', maxmemory_policy: 'allkeys-lfu' }
    expect(() => check(fields)).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED', details: expect.objectContaining({ code: 'EVICTION_POLICY' }) }),
    )
    expect(check(fields, 'redis://h?allowEviction=true')).toEqual(['EVICTION_POLICY'])
  })

  test('that evict only what expires are warned of', () => {
    expect(check({ maxmemory: '1000', maxmemory_policy: 'volatile-lru' })).toEqual(['EVICTION_POLICY'])
  })

  test('without a log of writes are warned of', () => {
    expect(check({ aof_enabled: '0' })).toEqual(['NO_PERSISTENCE'])
  })

  test('of another topology than the URL says are refused', () => {
    expect(() => check({ cluster_enabled: '1' })).toThrow(/redis\+cluster/)
    expect(() => check({}, 'redis+cluster://h')).toThrow(/no Cluster/)
    expect(check({ cluster_enabled: '1' }, 'redis+cluster://h')).toEqual([])
  })
})
