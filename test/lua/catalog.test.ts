/** The Lua scripts as texts: headers, names of keys and arguments, forbidden commands, sizes, and that files and catalog agree. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { loadCatalog, SCRIPT_NAMES } from '#dist/src/lua/catalog.js'
import { loadScript, parseScript } from '#dist/src/lua/loader.js'

const folder = fileURLToPath(new URL('../../src/lua/', import.meta.url))
const filesOf = (part: string): string[] =>
  readdirSync(`${folder}${part}`)
    .filter((name) => name.endsWith('.lua'))
    .map((name) => name.slice(0, -'.lua'.length))
    .sort()
const read = (part: string, name: string): string => readFileSync(`${folder}${part}/${name}.lua`, 'utf8')

/** Without comments, header and texts in quotes: what Lua takes for code. */
const codeOf = (text: string): string => text.replace(/--[^\n]*/g, '')
const withoutTexts = (code: string): string => code.replace(/'(?:[^'\\]|\\.)*'/g, "''")
/** The text after the lines that the loader put in front. */
const bodyOf = (source: string): string => source.slice(source.indexOf('local args_read = '))
const isNamed = (code: string, name: string): boolean => new RegExp(`(?<![\\w.])${name}\\b(?! = )`).test(code)

const catalog = Object.values(loadCatalog())
const all = [
  ...filesOf('script').map((name) => ['script', name] as const),
  ...filesOf('include').map((name) => ['include', name] as const),
]

/** All that the store ever calls a key of a lane or a namespace. */
const ROLES = new Set(catalog.flatMap(({ keys }) => keys).filter((key) => !key.startsWith('...')))

/** Scripts that go on when the server is at maxmemory, and why: what they write is less than what they free, or must not wait. */
const DRAINING: Readonly<Record<string, string>> = {
  job_cancel: 'ends jobs',
  job_claim: 'a worker must get at the jobs that fill the memory',
  job_note: 'a handler waits for it; one bounded value and a bounded log for each job that runs',
  job_promote: 'moves jobs towards their end',
  job_turn: 'ends jobs, and a worker must get at the jobs that fill the memory',
  keyspace_step: 'a migration that began must come to its end; one number',
  lane_bury: 'ends jobs',
  lane_drop: 'removes what an empty lane has',
  lane_forget: 'removes a lane from the registry',
  lane_maintain: 'removes what retention has given up',
  lane_policy: 'an operator may want it just then; a few fields',
  lane_register: 'a lane must be known before it is paused or its jobs are moved; one short name',
  lane_trim: 'removes ended jobs that are too many',
  lease_reap: 'ends attempts whose worker is gone',
  lease_renew: 'a worker must keep the lease of what it runs; changes a score in place',
  wake_push: 'tells a worker that there is something to take away; one byte a lane',
  worker_beat: 'who works must be known just then; one short record a worker, written in place',
  worker_gone: 'removes workers that have left',
}

describe('the catalog', () => {
  test('has every file of the folder, and every name a file', () => {
    expect([...SCRIPT_NAMES].sort()).toEqual(filesOf('script'))
  })

  test('uses every include', () => {
    const named = all.flatMap(([part, name]) =>
      [...read(part, name).matchAll(/^--@include (\w+)$/gm)].map(([, include]) => include),
    )
    expect([...new Set(named)].sort()).toEqual(filesOf('include'))
  })

  test('gives every script its own text', () => {
    expect(new Set(catalog.map(({ sha1 }) => sha1)).size).toBe(SCRIPT_NAMES.length)
  })
})

describe('headers', () => {
  test.each(filesOf('script'))('%s declares keys, args and returns, and says what it is for', (name) => {
    const text = read('script', name)
    for (const field of ['keys', 'args', 'returns'])
      expect(text).toMatch(new RegExp(`^--! ${field}:${field === 'returns' ? ' \\S' : ''}`, 'm'))
    expect(text).toMatch(/^-- [A-Z].*\.$/m)
  })

  test('a file without a header, or without its include, is refused', () => {
    expect(() => loadScript('no_such')).toThrow(/no_such.lua: there is no such script/)
    expect(() => parseScript('mine', 'return 1')).toThrow(/mine.lua: no 'keys' in the header/)
    const header = '--! keys: meta\n--! args: lane\n--! returns: OK\n'
    expect(() => parseScript('mine', `${header}--@include no_such\n`)).toThrow(/no_such.lua: there is no such include/)
    expect(parseScript('mine', `${header}return {'OK'}`).keys).toEqual(['meta'])
  })

  test.each(catalog.map((script) => [script.name, script] as const))('%s starts with the shebang', (_name, script) => {
    expect(script.source).toMatch(/^#!lua( flags=[a-z,-]+)?\n/)
  })

  test('scripts that only read say so, and no other', () => {
    const writes = /'(?:HSET|HSETNX|SET|HDEL|HINCRBY|ZADD|ZREM|ZREMRANGEBYRANK|RPUSH|LTRIM|LSET|DEL)'/
    for (const { name, source, isWriting } of catalog) expect([name, isWriting]).toEqual([name, writes.test(source)])
  })

  test('scripts that drain, and no others, run when memory is full', () => {
    const draining = catalog.filter(({ source }) => /^#!lua flags=\S*allow-oom/.test(source)).map(({ name }) => name)
    expect(draining).toEqual(Object.keys(DRAINING))
  })
})

describe('names', () => {
  test.each(catalog.map((script) => [script.name, script] as const))('%s uses what it declares', (_name, script) => {
    const code = withoutTexts(codeOf(bodyOf(script.source)))
    const declared = [...script.keys, script.optionalKey ?? '...', ...script.args].filter(
      (name) => !name.startsWith('...'),
    )
    expect(declared.filter((name) => !isNamed(code, name))).toEqual([])
    const undeclared = [...ROLES].filter((role) => !declared.includes(role) && isKey(code, role))
    expect(undeclared).toEqual([])
  })

  test('the test above sees a role that is used and not declared', () => {
    expect(isKey("redis.call('', leases, id)", 'leases')).toBe(true)
    expect(isKey('local leases = {}', 'leases')).toBe(false)
    expect(isNamed('local x = lanes', 'lanes')).toBe(true)
    expect(isNamed('lanes = 1', 'lanes')).toBe(false)
  })

  test.each(catalog.map((script) => [script.name, script] as const))(
    '%s reaches for keys and arguments by place only behind the named ones',
    (_name, script) => {
      const code = codeOf(bodyOf(script.source))
      const isOpen = (list: readonly string[]): boolean => list.at(-1)?.startsWith('...') ?? false
      if (!isOpen(script.keys)) expect(code).not.toMatch(/KEYS/)
      if (!isOpen(script.args)) expect(code).not.toMatch(/ARGV/)
      // A number as the index would be a name that is missing from the header.
      expect(code).not.toMatch(/(?:KEYS|ARGV)\[\d+\]/)
    },
  )
})

/** As the key of a command, or of one of the functions and lists that hand keys on. */
function isKey(code: string, role: string): boolean {
  const written = new RegExp(`local (?:[\\w, ]*\\b)?${role}\\b`).test(code)
  return !written && new RegExp(`(?<![\\w.])${role}\\b(?! =)`).test(code)
}

describe('commands', () => {
  const KEYLESS = ['TIME']
  /** Names under which a role is handed to a function, or comes from a list of roles. */
  const HANDED_ON = new Set(['key', 'set', 'hash', 'column', 'ending.set'])

  test.each(all)('%s/%s names its commands, and never takes a key from data', (part, name) => {
    const code = codeOf(read(part, name))
    const calls = [...code.matchAll(/redis\.(p?call)\(([^,()]+)(?:, *([^,()]+(?:\([^)]*\))?))?/g)]
    for (const [whole, kind, command = '', key = ''] of calls) {
      expect(kind, whole).toBe('call')
      const isBatch = part === 'include' && ['batch', 'sound'].includes(name) && command === 'command'
      if (!isBatch) expect(command, whole).toMatch(/^'[A-Z]+'$/)
      if (KEYLESS.includes(command.slice(1, -1))) continue
      const isProbe = name === 'lane_probe' && /^KEYS\[at( \+ \d)?\]$/.test(key)
      const isList =
        (name === 'sound' && key === 'unpack(keys)') ||
        (name === 'sound_claim' && key === 'unpack(LATER_SETS)') ||
        key === 'SETS[letter]'
      if (!isProbe && !isList && !HANDED_ON.has(key)) expect([...ROLES], whole).toContain(key)
    }
    expect(code).not.toContain('hf:')
  })

  test.each(all)('%s/%s has nothing slow, nothing that another version answers differently', (part, name) => {
    const code = codeOf(read(part, name))
    expect(code).not.toMatch(
      /cjson|cmsgpack|struct\.|bit\.|math\.random|loadstring|'(?:KEYS|SCAN|HGETALL|HVALS|HKEYS|SMEMBERS|SORT|EVAL|FLUSHALL|FLUSHDB|SELECT|CONFIG)'/,
    )
    // Whole sets and lists: a range must end at a computed place or have a LIMIT.
    expect(code).not.toMatch(/'(?:ZRANGE|LRANGE)', *\w+, *0, *-1/)
    for (const [whole] of code.matchAll(/'Z(?:REV)?RANGEBYSCORE'[^)]*\)/g)) expect(whole).toContain("'LIMIT'")
  })
})

test.each(all)('%s/%s is short', (part, name) => {
  expect(read(part, name).split('\n').length - 1).toBeLessThanOrEqual(80)
})
