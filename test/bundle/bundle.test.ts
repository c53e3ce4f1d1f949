/** An application in one file: it runs on every store with nothing of the package beside it, and says what it lacks. */
import { cpSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/cli.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { RedisServer } from '../support/redis-server.ts'
import { bundle, DIST, installBeside, makeProject, RECIPES, ROOT, runBundle } from './bundle.ts'

const project = makeProject(temporaryFolder())
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string }
/** Where it is deployed: nothing of the package above it. */
const home = join(temporaryFolder(), 'a place # of its own')
let redis: RedisServer
let postgres: PostgresServer

const STORES = ['memory', 'sqlite', 'postgres', 'redis'] as const
const urlOf = (store: (typeof STORES)[number]): string =>
  ({ memory: 'memory:', sqlite: `sqlite:${join(home, 'jobs.db')}`, postgres: postgres.url, redis: redis.url })[store]

beforeAll(async () => {
  mkdirSync(home, { recursive: true })
  ;[redis, postgres] = await Promise.all([RedisServer.start({ appendOnly: true }), PostgresServer.start()])
  for (const [name, options] of Object.entries(RECIPES)) {
    const outdir = join(project, name)
    await bundle({ project, outdir, options })
    cpSync(outdir, join(home, name), { recursive: true })
  }
  installBeside(home, ['better-sqlite3', 'piscina'])
}, 120_000)

afterAll(() => Promise.all([redis?.stop(), postgres?.stop()]))

describe.each(['esm', 'cjs'] as const)('a bundle in %s', (format) => {
  const ending = RECIPES[format].outExtension['.js']
  const app = join(home, format, `app${ending}`)
  const all = { JOBS: 'inline,thread,process', HANDLER: `./handler${ending}` }

  it.each(STORES)(
    'C130 C131 runs a job inline, in a thread and in a process, minified, on %s',
    async (store) => {
      const said = await runBundle(app, { ...all, STORE: urlOf(store) })
      expect(said).toEqual({ outputs: [42, '42 in a thread', '42 in a process'], version })
    },
    60_000,
  )

  it('C130 names nothing of the place where it was built', () => {
    for (const file of readdirSync(join(home, format))) {
      const text = readFileSync(join(home, format, file), 'utf8')
      for (const place of [ROOT, DIST, project, realpathSync(project)]) expect(text.includes(place)).toBe(false)
    }
  })

  it('C130 says that the file of threads is missing, where one is needed', async () => {
    const alone = join(home, `${format}-alone`)
    cpSync(join(home, format), alone, { recursive: true })
    const missing = join(alone, `holdfast-worker${ending}`)
    rmSync(missing)
    const run = (env: Readonly<Record<string, string>>) => runBundle(join(alone, `app${ending}`), env)
    const refusal = { code: 'DEPENDENCY_MISSING', dependency: 'holdfast/worker', path: missing, outcome: 'refused' }
    const inline = { JOBS: 'inline' }
    expect(await run({ ...inline, STORE: 'memory:' })).toEqual({ outputs: [42], version })
    for (const jobs of ['thread', 'process']) {
      expect(await run({ ...all, JOBS: jobs, STORE: 'memory:' })).toEqual(refusal)
    }
    for (const store of ['sqlite', 'postgres', 'redis'] as const) {
      expect(await run({ ...inline, STORE: urlOf(store) })).toEqual(refusal)
    }
    for (const store of ['postgres', 'redis'] as const) {
      expect(await run({ JOBS: '', STORE: urlOf(store) })).toEqual({ state: 'queued' })
    }
  }, 60_000)
})

it('C130 is bundled as docs/bundling.md says', () => {
  const page = readFileSync(join(ROOT, 'docs/bundling.md'), 'utf8')
  const { esm, cjs } = RECIPES
  for (const { banner, format, outExtension } of [esm, cjs]) {
    expect(page).toContain(`banner: { js: ${JSON.stringify(banner.js)} }`)
    expect(page).toContain(`format: '${format}',\n  outExtension: { '.js': '${outExtension['.js']}' },`)
  }
  expect(page).toContain(`define: { 'import.meta.url': '${cjs.define['import.meta.url']}' },`)
})

it('C130 says that a handler is missing', async () => {
  const said = await runBundle(join(home, 'esm', 'app.mjs'), {
    JOBS: 'thread',
    HANDLER: './absent.mjs',
    STORE: 'memory:',
  })
  expect(said).toEqual({ code: 'HANDLER_MODULE_INVALID', path: join(home, 'esm', 'absent.mjs') })
})

it('C130 says which package is missing beside the bundle', async () => {
  const bare = temporaryFolder()
  cpSync(join(home, 'esm'), join(bare, 'esm'), { recursive: true })
  const run = (env: Readonly<Record<string, string>>) => runBundle(join(bare, 'esm', 'app.mjs'), env)
  expect(await run({ JOBS: 'inline', STORE: redis.url })).toEqual({ outputs: [42], version })
  expect(await run({ JOBS: 'process', HANDLER: './handler.mjs', STORE: 'memory:' })).toMatchObject({
    outputs: ['42 in a process'],
  })
  const refusal = { code: 'DEPENDENCY_MISSING', outcome: 'refused' }
  expect(await run({ JOBS: 'thread', HANDLER: './handler.mjs', STORE: 'memory:' })).toEqual({
    ...refusal,
    dependency: 'piscina',
  })
  expect(await run({ STORE: 'sqlite:jobs.db' })).toEqual({ ...refusal, dependency: 'better-sqlite3' })
})

it('C130 runs in CommonJS also where the bundler leaves import.meta empty', async () => {
  const { format, outExtension } = RECIPES.cjs
  const outdir = join(home, 'plain')
  // The app itself says import.meta.url, of which esbuild warns.
  const logOverride = { 'empty-import-meta': 'silent' } as const
  await bundle({ project, outdir, options: { format, outExtension, logOverride } })
  expect(await runBundle(join(outdir, 'app.cjs'), { STORE: urlOf('sqlite') })).toEqual({ outputs: [42], version })
})
