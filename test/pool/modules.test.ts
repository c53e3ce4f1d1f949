/** Which files a handler module may be: by their ending, by the kind of their package, by how they are named, wherever they lie. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { PoolActor } from '#dist/src/actors/pool-actor.js'
import { systemTimers } from '#dist/src/clock.js'
import { defineJob, inThread } from '#dist/src/contract.js'
import { parseIsolation } from '#dist/src/isolation.js'
import { handlerUrl, output, recorder, task } from '../support/thread-pool.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast # modules ü-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const ES = 'export default (n) => n + 1'
const COMMON = 'module.exports = (n) => n + 1'
const TYPED = 'export default (n: number): number => n + 1'
const COMMON_TYPED = 'module.exports = (n: number): number => n + 1'
const COMPILED = `Object.defineProperty(exports, '__esModule', { value: true }); exports.default = (n) => n + 1`

/** The kind of the package, the file, its text. */
const JAVASCRIPT = [
  ...['module', 'commonjs', ''].flatMap((type) => [
    [type, 'es.mjs', ES],
    [type, 'common.cjs', COMMON],
    [type, 'compiled.cjs', COMPILED],
  ]),
  ['module', 'es.js', ES],
  ['', 'es.js', ES],
  ['commonjs', 'common.js', COMMON],
  ['', 'common.js', COMMON],
] as const
/** What Node itself takes for the other kind. */
const MISTAKEN = [
  ['module', 'common.js', COMMON, 'ReferenceError'],
  ['commonjs', 'es.js', ES, 'SyntaxError'],
] as const
const TYPESCRIPT = ['module', 'commonjs', ''].flatMap(
  (type) =>
    [
      type === 'commonjs' ? [type, 'common.ts', COMMON_TYPED] : [type, 'es.ts', TYPED],
      [type, 'es.mts', TYPED],
      [type, 'common.cts', COMMON_TYPED],
    ] as const,
)

function write([type = '', file = '', text = '']: readonly string[]): URL {
  const place = join(folder, `type ${type}`)
  mkdirSync(place, { recursive: true })
  writeFileSync(join(place, 'package.json'), JSON.stringify(type === '' ? {} : { type }))
  writeFileSync(join(place, file), text)
  return pathToFileURL(join(place, file))
}

describe.each(['thread', 'process'] as const)('a handler module in a %s', (kind) => {
  const isolation = parseIsolation({ isolation: kind }, 'inThread')
  const poolOf = (modules: readonly URL[]): PoolActor =>
    new PoolActor({
      threads: 1,
      timers: systemTimers,
      modules: modules.map((module) => inThread(defineJob('test'), module, { isolation: kind })),
    })

  async function outputs(modules: readonly URL[]): Promise<unknown[]> {
    const pool = poolOf(modules)
    await pool.start()
    const found: unknown[] = []
    for (const module of modules) {
      found.push(output(await pool.run(task(1, { module, isolation }), recorder().services).outcome))
    }
    await pool.stop()
    return found
  }

  it('C129 is ES or CommonJS, by whatever ending and in a package of whatever type', async () => {
    expect(await outputs(JAVASCRIPT.map(write))).toEqual(JAVASCRIPT.map(() => 2))
  })

  it.each(MISTAKEN)('C129 in a package of type %s is not %s as %s', async (type, file, text, problem) => {
    await expect(poolOf([write([type, file, text])]).start()).rejects.toMatchObject({
      code: 'HANDLER_MODULE_INVALID',
      message: expect.stringContaining(`type ${type}/${file}: it does not load: ${problem}`),
    })
  })

  it('C129 is CommonJS compiled from ES syntax, setup() included', async () => {
    expect(await outputs([handlerUrl('common-js.cjs')])).toEqual(['made by setup'])
  })

  it('C129 is TypeScript where this Node strips types, and is refused by its path where it does not', async () => {
    const modules = TYPESCRIPT.map(write)
    if (Reflect.get(process.features, 'typescript') === 'strip') {
      expect(await outputs(modules)).toEqual(modules.map(() => 2))
      return
    }
    for (const module of modules) {
      await expect(poolOf([module]).start()).rejects.toMatchObject({
        code: 'HANDLER_MODULE_INVALID',
        message: expect.stringMatching(/\.[cm]?ts: it does not load: .*(Unknown file extension|SyntaxError)/),
      })
    }
  })
})

describe('a handler module is named', () => {
  const url = write(['module', 'es.js', ES])
  const contract = defineJob('test')

  it('C129 by a URL, which a file makes from its own', () => {
    expect(inThread(contract, new URL('./es.js', url)).module.href).toBe(url.href)
    expect(inThread(contract, new URL(url.href)).module.href).toBe(url.href)
  })

  it.each([
    ['a file: URL as text', url.href],
    ['an absolute path', join(folder, 'type module', 'es.js')],
    // Read against the working directory it would be another file than the one that the caller means.
    ['a relative path', './es.js'],
    ['the URL of a page', new URL('https://example.org/es.js')],
    ['nothing', undefined],
  ])('C129 not by %s', (_what, module) => {
    expect(() => inThread(contract, module as never)).toThrow(
      expect.objectContaining({
        code: 'HANDLER_MODULE_INVALID',
        details: { field: 'module' },
        message: expect.stringContaining("new URL('./handler.js', import.meta.url)"),
      }),
    )
  })
})
