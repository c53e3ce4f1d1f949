/** What is made of what a server tells of itself: what it promises, what it is refused for, and when it is another one. */
import { describe, expect, test } from 'vitest'
import { checkServer, durabilityOf, readReport } from '#dist/src/backends/postgres/server-facts.js'
import { SettingsCheck } from '#dist/src/backends/postgres/settings-check.js'

const ROW = {
  version: '15.18 (Debian 15.18-1)',
  version_number: '150018',
  encoding: 'UTF8',
  synchronous_commit: 'on',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_standby_names: '',
  default_isolation: 'read committed',
  is_standby: false,
  started_at: '1733000000.5',
  system_id: '7',
  timeline: '00000001',
  statistics_since: 'then',
}
const factsOf = (row: Readonly<Record<string, unknown>>) => readReport({ ...ROW, ...row }).facts

test.each([
  [{}, 'power'],
  [{ synchronous_commit: 'local' }, 'power'],
  [{ synchronous_standby_names: 'a' }, 'replicated'],
  [{ synchronous_standby_names: 'a', synchronous_commit: 'remote_apply' }, 'replicated'],
  [{ synchronous_standby_names: 'a', synchronous_commit: 'remote_write' }, 'power'],
  [{ synchronous_standby_names: 'a', synchronous_commit: 'local' }, 'power'],
  [{ full_page_writes: 'off' }, 'always'],
  [{ fsync: 'off' }, 'process'],
  [{ fsync: 'off', synchronous_standby_names: 'a' }, 'process'],
  [{ synchronous_commit: 'off' }, 'everysec'],
  [{ synchronous_commit: 'off', fsync: 'off' }, 'everysec'],
])('with %o a commit survives: %s', (row, durability) => {
  expect(durabilityOf(factsOf(row))).toBe(durability)
})

test('the version is told without what the packager adds', () => {
  expect(factsOf({}).version).toBe('15.18')
})

describe('refused', () => {
  test.each([
    [{ version: '12.22', version_number: '120022' }, 'SERVER_VERSION', /version 12\.22; Holdfast needs 13/],
    [{ version: '', version_number: '' }, 'SERVER_VERSION', /version unknown/],
    [{ encoding: 'LATIN1' }, 'ENCODING', /encoding LATIN1/],
  ])('is a server with %o', (row, code, message) => {
    expect(() => checkServer(readReport({ ...ROW, ...row }), 'h:1')).toThrow(
      expect.objectContaining({
        code: 'UNSUPPORTED',
        message: expect.stringMatching(message),
        details: { outcome: 'refused', code, server: 'h:1' },
      }),
    )
  })

  test('is no other', () => {
    expect(() => checkServer(readReport(ROW), 'h:1')).not.toThrow()
    expect(() => checkServer(readReport({ ...ROW, version_number: '130000' }), 'h:1')).not.toThrow()
  })
})

test('another start, history, cluster or crash makes another server of it', () => {
  const { identity } = readReport(ROW)
  expect(readReport({ ...ROW, version: '16.1', fsync: 'off' }).identity).toBe(identity)
  for (const name of ['started_at', 'system_id', 'timeline', 'statistics_since'])
    expect(readReport({ ...ROW, [name]: 'other' }).identity).not.toBe(identity)
})

test('settings are warned of once, and again after they were good', () => {
  const codes: unknown[] = []
  const settings = new SettingsCheck('h:1', ({ code }, message) => {
    expect(message).toContain('PostgreSQL at h:1 ')
    codes.push(code)
  })
  settings.check(factsOf({ fsync: 'off', full_page_writes: 'off' }))
  settings.check(factsOf({ fsync: 'off' }))
  settings.check(factsOf({ synchronous_commit: 'off', default_isolation: 'serializable' }))
  settings.check(factsOf({ fsync: 'off', full_page_writes: 'off' }))
  settings.check(factsOf({ full_page_writes: 'off' }))
  expect(codes).toEqual(['NO_FSYNC', 'ASYNCHRONOUS_COMMIT', 'ISOLATION', 'NO_FSYNC', 'NO_FULL_PAGE_WRITES'])
})
