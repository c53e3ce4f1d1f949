/** Holds the suites to the contract: every assertion of this release has a test, every suite is run for every store. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const read = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8')
const files = readdirSync(new URL('.', import.meta.url)).sort()
const suites = files.filter((name) => name.endsWith('.suite.ts'))

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, n) => from + n)

/** Sections "Jobs & lifecycle" to "Idempotency" of the contract, and those of the last section that this release has. */
const REQUIRED = [...range(1, 72), ...range(117, 128)]

const TEST_NAME = /\bit\(\s*(['"`])(.*?)\1,/gs

const namesIn = (file: string): string[] => [...read(file).matchAll(TEST_NAME)].map(([, , name = '']) => name)

describe('coverage of the contract', () => {
  it('every required assertion has a test', () => {
    const covered = new Set(suites.flatMap(namesIn).map((name) => Number(/^(\d+) /.exec(name)?.[1])))
    expect(REQUIRED.filter((number) => !covered.has(number))).toEqual([])
  })

  it('every test of a suite starts with the number of its assertion', () => {
    const strays = suites.flatMap((file) =>
      namesIn(file)
        .filter((name) => !/^([1-9]|[1-9]\d|1[0-2]\d|13[0-2]) \S/.test(name))
        .map((name) => `${file}: ${name}`),
    )
    expect(strays).toEqual([])
    for (const file of suites) {
      expect([file, namesIn(file).length]).toEqual([file, read(file).match(/\bit(?:\.\w+)?\(/g)?.length])
    }
  })

  it('the first comment of a suite names the assertions it tests', () => {
    for (const file of suites) {
      const comment = /^\/\*\*.*?\*\//s.exec(read(file))?.[0] ?? ''
      const named = [...comment.matchAll(/(\d+)(?:–(\d+))?/g)].flatMap(([, from, to]) =>
        range(Number(from), Number(to ?? from)),
      )
      const tested = new Set(namesIn(file).map((name) => Number(/^\d+/.exec(name)?.[0])))
      expect([file, [...tested].sort((a, b) => a - b)]).toEqual([file, named])
    }
  })

  it('the harness runs every suite', () => {
    const harness = read('harness.ts')
    const registered = /const SUITES = \[(.*?)\]/s.exec(harness)?.[1] ?? ''
    for (const file of suites) {
      const exported = /export function (\w+Suite)\(/.exec(read(file))?.[1] ?? `nothing of ${file}`
      expect(harness).toContain(`import { ${exported} } from './${file}'`)
      expect(registered).toMatch(new RegExp(`\\b${exported},`))
    }
  })

  it('no suite asks which store it runs on', () => {
    const telling = /['"`](memory|sqlite|postgres|redis)['"`]|Memory(Backend|Store)|Sqlite/
    expect(suites.filter((file) => telling.test(read(file)))).toEqual([])
  })

  it('every runner is made by the harness', () => {
    const runners = files.filter((name) => name.endsWith('.test.ts') && name !== 'coverage.test.ts')
    expect(runners).toEqual([
      'memory.test.ts',
      'postgres.test.ts',
      'redis-cluster.test.ts',
      'redis.test.ts',
      'sqlite.test.ts',
    ])
    for (const runner of runners) expect(read(runner)).toMatch(/^describeBackend\(\{/m)
  })
})
