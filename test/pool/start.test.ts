/**
 * Starting and stopping: modules are proved loadable before any claim, and nothing keeps the process alive afterwards.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PoolActor } from '#dist/src/actors/pool-actor.js'
import type { ThreadOutcome } from '#dist/src/actors/thread-run.js'
import { sharedMonotonic, systemTimers } from '#dist/src/clock.js'
import { defineJob, inThread } from '#dist/src/contract.js'
import { type IsolationOptions, parseIsolation } from '#dist/src/isolation.js'
import { eventually } from '../support/event.ts'
import { failure, handlerUrl, output, recorder, TestPool, task } from '../support/thread-pool.ts'

let folder: string
const root = fileURLToPath(new URL('../..', import.meta.url))
const dist = process.env.HOLDFAST_DIST ?? join(root, 'dist')

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast # pool-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

const poolOf = (modules: readonly URL[], options: IsolationOptions = {}): PoolActor =>
  new PoolActor({
    threads: 2,
    timers: systemTimers,
    modules: modules.map((module) => inThread(defineJob('test'), module, options)),
  })

describe.each(['thread', 'process'] as const)('the start of a %s', (kind) => {
  const isolation = parseIsolation({ isolation: kind }, 'inThread')
  const broken = [
    ['load-missing-default.mjs', 'expected `export default` of a function'],
    ['load-throws.mjs', 'it does not load: RangeError: thrown while loading'],
    [
      'load-exits.mjs',
      `its ${kind} died while it loaded: ${kind === 'thread' ? 'worker exited with code: 5' : 'it exited with code 5'}`,
    ],
    ['load-setup-fails.mjs', 'its setup() failed: Error: no database here'],
    ['no-such-file.mjs', 'the file does not exist'],
  ] as const

  it.each(broken)('C128 refuses %s by its path and what is wrong', async (name, problem) => {
    const module = handlerUrl(name)
    const actor = poolOf([handlerUrl('noop.mjs'), module], { isolation: kind })
    const error = await actor.start().then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(error).toMatchObject({ name: 'HoldfastError', code: 'HANDLER_MODULE_INVALID' })
    expect(String(error)).toContain(`handler module ${fileURLToPath(module)}: ${problem}`)
    const after = actor.run(task(1, { module: handlerUrl('noop.mjs'), isolation }), recorder().services)
    expect(failure(await after.outcome)).toMatchObject({ kind: 'failed', code: 'CLOSED' })
  })

  it('F7 that blocks its loop in setup() hears of an abort before the handler would begin', async () => {
    const at = (name: string): string => join(folder, name)
    writeFileSync(
      at('blocks.mjs'),
      `import { appendFileSync, existsSync } from 'node:fs'
      export function setup() {
        appendFileSync(${JSON.stringify(at('setups'))}, '.')
        while (!existsSync(${JSON.stringify(at('open'))}));
      }
      export default (name) => {
        if (name === 'exit') process.exit(1)
        appendFileSync(${JSON.stringify(at('called'))}, name)
      }`,
    )
    writeFileSync(at('open'), '')
    const module = pathToFileURL(at('blocks.mjs'))
    const actor = new PoolActor({ threads: 1, timers: systemTimers, modules: [{ module, isolation }] })
    await actor.start()
    try {
      const run = (name: string) => actor.run(task(name, { module, isolation }), recorder().services)
      await run('exit').outcome
      rmSync(at('open'))
      const unwanted = run('unwanted')
      await eventually(() => readFileSync(at('setups'), 'utf8') === '..', 'it loads again')
      unwanted.abort({ code: 'JOB_CANCELLED', message: 'while it loads' })
      writeFileSync(at('open'), '')
      expect(failure(await unwanted.outcome)).toMatchObject({ kind: 'failed', code: 'JOB_CANCELLED' })
      expect(output(await run('next').outcome)).toBeUndefined()
      expect(readFileSync(at('called'), 'utf8')).toBe('next')
    } finally {
      await actor.stop()
    }
  })

  it('F7 calls no handler after the deadline, though nobody has told of it', async () => {
    const pool = new TestPool({ threads: 1 }, { isolation: kind })
    await pool.actor.start()
    const { services, seen } = recorder()
    const input = { act: 'progress', value: 'never' }
    const late = task(input, { isolation: pool.isolation, startBefore: sharedMonotonic() })
    expect(failure(await pool.actor.run(late, services).outcome)).toMatchObject({
      kind: 'failed',
      code: 'DEADLINE_EXCEEDED',
    })
    const inTime = task(
      { act: 'echo', value: 1 },
      { isolation: pool.isolation, startBefore: sharedMonotonic() + 60_000 },
    )
    expect(output(await pool.actor.run(inTime, services).outcome)).toBe(1)
    expect(seen.progress).toEqual([])
    await pool.actor.stop()
  })

  it('C128 C129 refuses a syntax error and a missing dependency, and loads a path with a space and a hash', async () => {
    const write = (name: string, text: string): URL => {
      writeFileSync(join(folder, name), text)
      return pathToFileURL(join(folder, name))
    }
    await expect(
      poolOf([write('syntax.mjs', 'export default function ( {')], { isolation: kind }).start(),
    ).rejects.toThrow(/syntax\.mjs: it does not load: SyntaxError/)
    const needs = write('needs.mjs', "import './absent.mjs'\nexport default () => 1")
    await expect(poolOf([needs], { isolation: kind }).start()).rejects.toThrow(
      /needs\.mjs: it does not load: .*absent\.mjs/,
    )
    const fine = write('fine.mjs', 'export default (input) => input + 1')
    const actor = poolOf([fine], { isolation: kind })
    await actor.start()
    expect(output(await actor.run(task(1, { module: fine, isolation }), recorder().services).outcome)).toBe(2)
    await actor.stop()
  })
})

describe('start', () => {
  it('gives each heap limit its own threads and refuses a module that was not given', async () => {
    const module = handlerUrl('thread-behaviour.mjs')
    const actor = new PoolActor({
      threads: 1,
      timers: systemTimers,
      modules: [inThread(defineJob('a'), module), inThread(defineJob('b'), module, { maxHeapMb: 64 })],
    })
    await actor.start()
    const run = (maxHeapMb: number | null, url = module) => {
      const isolation = parseIsolation(maxHeapMb === null ? {} : { maxHeapMb }, 'inThread')
      return actor.run(task({ act: 'thread' }, { module: url, isolation }), recorder().services).outcome
    }
    expect(output(await run(null))).not.toBe(output(await run(64)))
    expect(failure(await run(128))).toMatchObject({ kind: 'failed', code: 'HANDLER_MODULE_INVALID' })
    expect(failure(await run(null, handlerUrl('noop.mjs')))).toMatchObject({ code: 'HANDLER_MODULE_INVALID' })
    await actor.stop()
  })

  it('hides the addresses of stores from handlers and shows the rest', async () => {
    const names = { HOLDFAST_URL: 'memory:', DATABASE_URL: 'x', MY_CACHE: 'redis://:secret@host', KEPT_HERE: 'yes' }
    Object.assign(process.env, names)
    const pool = new TestPool()
    try {
      await pool.actor.start()
      const seen = output(await pool.act('environment')) as string[]
      expect(Object.keys(names).filter((name) => seen.includes(name))).toEqual(['KEPT_HERE'])
      expect(seen).toContain('PATH')
    } finally {
      for (const name of Object.keys(names)) delete process.env[name]
      await pool.actor.stop()
    }
  })
})

describe('a thread that cannot be made any more', () => {
  it('crashes the attempts that would wait for it, and the process lives', () => {
    // A copy of the build whose thread file disappears after the start, in a process of its own.
    cpSync(dist, join(folder, 'dist'), { recursive: true })
    cpSync(join(root, 'package.json'), join(folder, 'package.json'))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'handler.mjs'), 'export default (code) => process.exit(code)')
    writeFileSync(
      join(folder, 'main.mjs'),
      `import { rmSync } from 'node:fs'
      import { PoolActor } from './dist/src/actors/pool-actor.js'
      import { systemTimers } from './dist/src/clock.js'
      import { parseIsolation } from './dist/src/isolation.js'
      const module = new URL('./handler.mjs', import.meta.url)
      const isolation = parseIsolation({}, 'inThread')
      const modules = [{ module, isolation }]
      let idleCrashes = 0
      const onIdleCrash = () => { idleCrashes += 1 }
      const actor = new PoolActor({ threads: 2, timers: systemTimers, modules, onIdleCrash })
      await actor.start()
      rmSync(new URL('./dist/workers/handler-worker.js', import.meta.url))
      const job = { jobId: 'a/1', metadata: null, traceId: null, deadlineAt: null }
      const run = () => actor.run({ module, input: 1, isolation, job }, { log() {} }).outcome
      const outcomes = await Promise.all([run(), run(), run(), run()])
      await actor.stop()
      console.log(JSON.stringify({ idleCrashes, outcomes }))`,
    )
    const child = spawnSync(process.execPath, ['main.mjs'], { cwd: folder, encoding: 'utf8', timeout: 20_000 })
    expect({ status: child.status, stderr: child.stderr }).toEqual({ status: 0, stderr: '' })
    const { idleCrashes, outcomes } = JSON.parse(child.stdout)
    expect(outcomes.map((outcome: ThreadOutcome) => outcome.kind)).toEqual(Array(4).fill('crashed'))
    expect(outcomes[3].failure.message).toContain('handler-worker.js')
    expect(idleCrashes).toBeGreaterThan(0)
  })
})

describe('stop', () => {
  it('crashes what runs, gives back what waits, and refuses what comes later', async () => {
    const pool = new TestPool({ threads: 1 })
    await pool.actor.start()
    const running = pool.run({ act: 'loops' })
    const waiting = pool.run({ act: 'echo', value: 1 })
    await pool.actor.stop()
    expect(failure(await running.outcome)).toMatchObject({ kind: 'crashed', code: 'PANIC' })
    expect(failure(await waiting.outcome)).toMatchObject({ kind: 'failed', code: 'SHUTTING_DOWN' })
    expect(failure(await pool.act('echo'))).toMatchObject({ kind: 'failed', code: 'CLOSED' })
  })

  const built = (file: string): string => JSON.stringify(pathToFileURL(join(dist, 'src', file)).href)

  const script = (end: string, options: IsolationOptions): string => `
    import { PoolActor } from ${built('actors/pool-actor.js')}
    import { systemTimers } from ${built('clock.js')}
    import { parseIsolation } from ${built('isolation.js')}
    const isolation = parseIsolation(${JSON.stringify(options)}, 'inThread')
    const module = new URL(${JSON.stringify(handlerUrl('noop.mjs').href)})
    const actor = new PoolActor({ threads: 3, timers: systemTimers, modules: [{ module, isolation }] })
    await actor.start()
    const job = { jobId: 'a/1', metadata: null, traceId: null, deadlineAt: null }
    const run = () => actor.run({ module, input: 1, isolation, job }, { log() {} }).outcome
    const outcomes = await Promise.all([run(), run(), run(), run()])
    console.log(outcomes.map((outcome) => outcome.kind).join())
    ${end}`

  it.each([
    ['an idle pool', '', {}],
    ['a stopped pool', 'await actor.stop()', {}],
    ['an idle pool of processes', '', { isolation: 'process' }],
    ['a stopped pool of processes', 'await actor.stop()', { isolation: 'process', idleTimeout: 5_000 }],
  ] as const)('%s lets the process end, with nothing on stderr', (_name, end, options) => {
    const file = join(folder, 'main.mjs')
    writeFileSync(file, script(end, options))
    const { status, stdout, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8', timeout: 20_000 })
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: 'succeeded,succeeded,succeeded,succeeded\n',
      stderr: '',
    })
  })
})
