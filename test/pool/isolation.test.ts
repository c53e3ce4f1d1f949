/**
 * What ends a handler that does not end: threads in loops, waits and native calls, processes in anything. F5, F6, F7, F10; C125, C126, C133.
 * And what the options of `inThread` limit: jobs, idle time, heap, stack, slots.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LostSlots } from '#dist/src/actors/lost-slots.js'
import type { PoolOptions } from '#dist/src/actors/pool-actor.js'
import type { ThreadOutcome, ThreadRun } from '#dist/src/actors/thread-run.js'
import { systemTimers } from '#dist/src/clock.js'
import { DEFAULTS } from '#dist/src/config.js'
import { type IsolationOptions, parseIsolation } from '#dist/src/isolation.js'
import { codeOf, eventually, gate, within } from '../support/event.ts'
import { killPid, writtenPid } from '../support/pid-file.ts'
import { areGone } from '../support/process-tree.ts'
import { failure, handlerUrl, output, recorder, TestPool, task } from '../support/thread-pool.ts'

const dist = process.env.HOLDFAST_DIST ?? fileURLToPath(new URL('../../dist', import.meta.url))
let folder: string
const pools: TestPool[] = []
/** What handlers have started, should a test fail to end it. */
const programs: number[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-isolation-'))
})
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.actor.stop()))
  for (const pid of programs.splice(0)) killPid(pid)
  rmSync(folder, { recursive: true, force: true })
})

async function opened(isolation: IsolationOptions, options: Partial<PoolOptions> = {}): Promise<TestPool> {
  const pool = new TestPool(options, isolation)
  pools.push(pool)
  await pool.actor.start()
  return pool
}

const KINDS = ['thread', 'process'] as const
const pidOf = (place: unknown): number => Number(String(place).split('.')[0])

function isRead(fifo: string): boolean {
  try {
    closeSync(openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK))
    return true
  } catch {
    return false
  }
}

/** Runs an act that tells by progress that it has begun. */
function begun(pool: TestPool, input: object): Promise<{ run: ThreadRun; place: string }> {
  return new Promise((resolve) => {
    const { services } = recorder({
      progress: async (place) => resolve({ run, place: String(place) }),
    })
    const run = pool.run(input, services)
  })
}

describe.each(KINDS)('F7 a %s', (isolation) => {
  it.each([
    ['a loop', { act: 'loops' }],
    ['a regular expression', { act: 'regex' }],
    ['Atomics.wait', { act: 'atomicsWait' }],
  ])('in %s is ended within its second, and no slot is lost', async (_name, input) => {
    const lost: string[] = []
    const pool = await opened({ isolation }, { lost: new LostSlots(({ jobId }) => lost.push(jobId)), threads: 1 })
    const started = gate()
    const inLoop = task(input, { isolation: pool.isolation, onStart: () => started.open() })
    const run = pool.actor.run(inLoop, recorder().services)
    const next = pool.run({ act: 'echo', value: 1 })
    await within(started.passed, 'the handler begins')
    run.kill()
    expect(failure(await run.outcome)).toEqual({
      kind: 'crashed',
      code: 'PANIC',
      message: `the handler ${isolation} was terminated`,
    })
    expect(output(await next.outcome)).toBe(1)
    expect(lost).toEqual([])
  })
})

describe('F7 a thread that cannot be ended', () => {
  it('gives its slot up after a second: lost until it ends, with a thread in its place', async () => {
    const changes: string[] = []
    const recovered = gate()
    const lost = new LostSlots((slot, change) => {
      changes.push(`${change} ${slot.jobId} ${slot.where} ${lost.count} ${lost.heavyCount}`)
      if (change === 'recovered') recovered.open()
    })
    const pool = await opened({}, { lost, threads: 1 })
    const file = join(folder, 'pid')
    const run = pool.run({ act: 'sleeps', seconds: 60, file })
    const next = pool.run({ act: 'echo', value: 'next' })
    const sleeper = await writtenPid(file)
    run.kill()
    expect(failure(await run.outcome)).toEqual({
      kind: 'crashed',
      code: 'PANIC',
      message: 'the handler thread could not be ended; its slot is lost',
    })
    expect(output(await next.outcome)).toBe('next')
    expect(changes).toEqual(['lost mail/01 thread 1 1'])
    killPid(sleeper)
    await within(recovered.passed, 'the thread ends')
    expect(changes.slice(1)).toEqual(['recovered mail/01 thread 0 0'])
  })

  it('is one in a read that nobody answers, too', async () => {
    const back = gate()
    const lost = new LostSlots((_slot, change) => {
      if (change === 'recovered') back.open()
    })
    const pool = await opened({}, { lost, threads: 1 })
    let path = ''
    // Killed after it has opened the file and before it reads, a thread can be ended: then it is tried again.
    for (let round = 0; round < 3 && lost.count === 0; round += 1) {
      path = join(folder, `fifo${round}`)
      execFileSync('mkfifo', [path])
      const started = gate()
      const reading = task({ act: 'readsFifo', path }, { isolation: pool.isolation, onStart: () => started.open() })
      const run = pool.actor.run(reading, recorder().services)
      await within(started.passed, 'the handler begins')
      // Opening for writing is refused as long as nobody reads.
      await eventually(() => isRead(path), 'the handler reads')
      run.kill()
      await run.outcome
    }
    expect(lost.count).toBe(1)
    writeFileSync(path, 'at last')
    await within(back.passed, 'the thread ends')
  })
})

describe('a process', () => {
  it('F7 is killed in a native call, with all that its handler has started', async () => {
    const pool = await opened({ isolation: 'process' })
    const file = join(folder, 'pid')
    const run = pool.run({ act: 'sleeps', seconds: 60, file })
    const sleeper = await writtenPid(file)
    run.kill()
    expect(failure(await run.outcome).message).toBe('the handler process was terminated')
    await eventually(() => areGone([sleeper]), 'what the handler has started is gone')
  })

  it.each([
    ['SIGSEGV', { act: 'dies', signal: 'SIGSEGV' }, 'it was ended by SIGSEGV'],
    [
      'F6 an array that aborts a process with a thread of the same limit',
      { act: 'fillsArray' },
      'it ran out of memory (SIGABRT); maxHeapMb is 64',
    ],
  ])('%s is the end of one attempt', async (_name, input, words) => {
    const pool = await opened({ isolation: 'process', maxHeapMb: 64 })
    const beside = await begun(pool, { act: 'looksAtSignalLate' })
    expect(failure(await pool.run(input).outcome)).toEqual({
      kind: 'crashed',
      code: 'PANIC',
      message: `the handler process died: ${words}`,
    })
    expect(output(await beside.run.outcome)).toMatchObject({ aborted: false })
    expect(output(await pool.act('echo', { value: 1 }))).toBe(1)
  })

  it('that a handler cuts off and keeps busy is ended, and its attempt fails', async () => {
    const pool = await opened({ isolation: 'process' })
    const { kind, message } = failure(await within(pool.act('cutsItselfOff'), 'the attempt ends'))
    expect([kind, message]).toEqual(['crashed', 'the handler process died: it was ended by SIGKILL'])
    expect(output(await pool.act('echo', { value: 1 }))).toBe(1)
  })

  /** Resolves with the outcome of a handler that has started a program, and the program. */
  async function started(pool: TestPool, how: object = {}): Promise<{ outcome: ThreadOutcome; program: number }> {
    let program = 0
    const { services, seen } = recorder({
      async progress(pid) {
        program = Number(pid)
        programs.push(program)
      },
    })
    const outcome = await within(pool.act('startsProgram', how, services), 'the attempt ends')
    expect(seen.logs.map(({ message }) => message)).toEqual(['last words'])
    return { outcome, program }
  }

  it.each([0, 1])('F10 that exits with %i takes along what its handler has started', async (exitCode) => {
    const pool = await opened({ isolation: 'process' })
    const { outcome, program } = await started(pool, { exitCode })
    expect(failure(outcome).message).toBe(`the handler process died: it exited with code ${exitCode}`)
    await eventually(() => areGone([program]), 'the program is gone')
  })

  it('F10 keeps what its handler has started through further jobs, and takes it along when the pool stops', async () => {
    const pool = await opened({ isolation: 'process' }, { threads: 1 })
    const { outcome, program } = await started(pool)
    expect(output(await pool.act('thread'))).toBe(output(outcome))
    expect(await areGone([program])).toBe(false)
    await pool.actor.stop()
    await eventually(() => areGone([program]), 'the program is gone')
  })

  it.each([
    ['has idled', { idleTimeout: 50 }],
    ['has had its number of jobs', { maxJobsPerThread: 1 }],
  ])('F10 takes along what its handler has started when it %s', async (_when, options) => {
    const pool = await opened({ isolation: 'process', ...options })
    const { program } = await started(pool)
    await eventually(() => areGone([program]), 'the program is gone')
  })

  it('F10 is gone when it has exited, also where a program has its channel and lives on', async () => {
    const pool = await opened({ isolation: 'process' }, { threads: 1 })
    const { outcome, program } = await started(pool, { isDetached: true, lendsChannel: true, exitCode: 3 })
    expect(failure(outcome).message).toBe('the handler process died: it exited with code 3')
    expect(await areGone([program])).toBe(false)
    expect(output(await pool.act('echo', { value: 1 }))).toBe(1)
  })

  it('F6 hears of jobs and answers also after a handler has removed all listeners', async () => {
    const pool = await opened({ isolation: 'process' }, { threads: 1 })
    const place = output(await within(pool.act('removesAllListeners'), 'the attempt ends'))
    expect(output(await within(pool.act('thread'), 'the next job runs'))).toBe(place)
    expect(pool.idleCrashes).toEqual([])
  })

  it('F6 that does not take its next job is killed, and then the job begins in a fresh one', async () => {
    const late: (() => void)[] = []
    const timers: PoolOptions['timers'] = {
      ...systemTimers,
      set(run, delayMs, background) {
        if (delayMs !== DEFAULTS.takeDeadlineMs) return systemTimers.set(run, delayMs, background)
        return late.push(run)
      },
    }
    const pool = await opened({ isolation: 'process' }, { threads: 1, timers })
    const busy = pidOf(output(await pool.act('leavesALoop')))
    programs.push(busy)
    const next = begun(pool, { act: 'together' })
    expect(late).toHaveLength(2)
    late[1]?.()
    const { run, place } = await within(next, 'the job begins')
    expect(await areGone([busy])).toBe(true)
    expect(output(await run.outcome)).toBe(place)
    expect(pidOf(place)).not.toBe(busy)
  })

  it('F5 that ends between two jobs costs the second nothing', async () => {
    const pool = await opened({ isolation: 'process' }, { threads: 1 })
    const [first, second] = await Promise.all([pool.act('leavesAnExit'), pool.act('thread')])
    expect(output(second)).not.toBe(output(first))
  })

  it('F5 that dies as it starts fails its attempt, and is not replaced for ever', async () => {
    const pool = await opened({ isolation: 'process' }, { threads: 1 })
    process.env.NODE_OPTIONS = `--require ${join(folder, 'missing.cjs')}`
    try {
      await pool.act('exit', { code: 0 })
      const { kind, message } = failure(await within(pool.act('thread'), 'the attempt ends'))
      expect([kind, message]).toEqual(['crashed', 'the handler process died: it exited with code 1'])
    } finally {
      delete process.env.NODE_OPTIONS
    }
    expect(output(await pool.act('echo', { value: 1 }))).toBe(1)
  })

  it('S17 sees no address of a store, and no flag but its limits', async () => {
    process.env.HOLDFAST_URL = 'memory:'
    try {
      const pool = await opened({ isolation: 'process', maxHeapMb: 64, maxYoungHeapMb: 12, stackMb: 2 })
      expect(output(await pool.act('environment'))).not.toContain('HOLDFAST_URL')
      const { flags } = output(await pool.act('limits')) as { flags: string[] }
      expect(flags).toEqual(['--max-old-space-size=64', '--max-semi-space-size=4', '--stack-size=2048'])
    } finally {
      delete process.env.HOLDFAST_URL
    }
  })
})

it.each(KINDS)('S17 what a handler in a %s writes is passed on up to a limit, anew for each attempt', (isolation) => {
  const built = (file: string): string => JSON.stringify(pathToFileURL(join(dist, 'src', file)).href)
  const script = join(folder, 'main.mjs')
  writeFileSync(
    script,
    `import { PoolActor } from ${built('actors/pool-actor.js')}
    import { systemTimers } from ${built('clock.js')}
    import { parseIsolation } from ${built('isolation.js')}
    const module = new URL(${JSON.stringify(handlerUrl('writes.mjs').href)})
    const isolation = parseIsolation({ isolation: '${isolation}' }, 'inThread')
    const actor = new PoolActor({ threads: 1, timers: systemTimers, modules: [{ module, isolation }] })
    await actor.start()
    const job = { jobId: 'a/1', metadata: null, traceId: null, deadlineAt: null }
    const run = (input) => actor.run({ module, isolation, input, job }, { log() {} }).outcome
    await run({ lines: 1 })
    await run({ lines: 10_000 })
    await run({ lines: 1 })
    await actor.stop()`,
  )
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8', timeout: 20_000 })
  expect(status).toBe(0)
  const lines = (stdout + stderr).split('\n')
  expect(lines.filter((line) => line.includes('left out'))).toHaveLength(1)
  expect(lines.filter((line) => /^(out|err) 0$/.test(line))).toHaveLength(2 * 3)
  expect(stdout.length + stderr.length).toBeLessThan(66 * 1024)
})

it('S17 a thread has the limits that it was given', async () => {
  const pool = await opened({ maxHeapMb: 64, maxYoungHeapMb: 12, stackMb: 2 })
  const { threads, flags } = output(await pool.act('limits')) as { threads: object; flags: string[] }
  expect(threads).toMatchObject({ maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 12, stackSizeMb: 2 })
  expect(flags).toEqual([])
})

describe.each(KINDS)('the %ss of a pool', (isolation) => {
  it('are replaced after their number of jobs, and never fewer run than there are slots', async () => {
    const pool = await opened({ isolation, maxJobsPerThread: 3 })
    const jobs = new Map<string, number>()
    for (let round = 0; round < 6; round += 1) {
      // Both are in their handlers at the same time, or the second would never begin.
      const pair = await Promise.all([begun(pool, { act: 'together' }), begun(pool, { act: 'together' })])
      for (const { run, place } of pair) {
        expect(output(await run.outcome)).toBe(place)
        jobs.set(place, (jobs.get(place) ?? 0) + 1)
      }
    }
    expect(Math.max(...jobs.values())).toBe(3)
    expect(jobs.size).toBeGreaterThanOrEqual(4)
    await eventually(() => pool.actor.size <= 2 + 1, 'the worn ones are gone')
    expect(pool.idleCrashes).toEqual([])
  })

  it('one job each is possible', async () => {
    const pool = await opened({ isolation, maxJobsPerThread: 1 })
    const places = await Promise.all(Array.from({ length: 6 }, () => pool.act('thread')))
    expect(new Set(places.map(output)).size).toBe(6)
  })

  it('C133 end when they have idled for their time, all of them, and come back with work', async () => {
    const pool = await opened({ isolation, idleTimeout: 50 }, { threads: 3 })
    for (let cycle = 0; cycle < 2; cycle += 1) {
      const burst = await Promise.all(Array.from({ length: 6 }, (_, value) => pool.act('echo', { value })))
      expect(burst.map(output)).toEqual([0, 1, 2, 3, 4, 5])
      await eventually(() => pool.actor.size === 0, 'nobody is left')
    }
    await pool.actor.stop()
  })

  it('123 become more and fewer while they work', async () => {
    const pool = await opened({ isolation }, { threads: 1 })
    const first = await begun(pool, { act: 'untilToldOrAborted' })
    const second = begun(pool, { act: 'untilToldOrAborted' })
    pool.actor.resize(2)
    const { run } = await within(second, 'the second has a slot')
    pool.actor.resize(1)
    const third = pool.run({ act: 'echo', value: 3 })
    const ended = async (each: ThreadRun): Promise<void> => {
      each.abort({ code: 'SHUTTING_DOWN', message: 'enough' })
      await each.outcome
    }
    await ended(run)
    expect(third).toMatchObject({ state: 'waiting' })
    await ended(first.run)
    expect(output(await within(third.outcome, 'the third has the slot'))).toBe(3)
  })

  it('C125 one that exits fails now, and the pool is back to its size', async () => {
    const pool = await opened({ isolation })
    const size = pool.actor.size
    const beside = [pool.act('echo', { value: 1 }), pool.act('echo', { value: 2 })]
    for (const code of [0, 1]) {
      expect(failure(await pool.act('exit', { code })).message).toContain(`exited with code ${code}`)
    }
    expect((await Promise.all(beside)).map(output)).toEqual([1, 2])
    const after = await Promise.all([1, 2].map((value) => pool.act('echo', { value })))
    expect(after.map(output)).toEqual([1, 2])
    expect(pool.actor.size).toBeLessThanOrEqual(size)
  })
})

it('options that are out of their limits are refused by name', async () => {
  const wrong: [object, string][] = [
    [{ isolation: 'vm' }, 'INVALID_ARGUMENT'],
    [{ maxHeapMb: 7 }, 'INVALID_ARGUMENT'],
    [{ maxYoungHeapMb: 0 }, 'INVALID_ARGUMENT'],
    [{ stackMb: 65 }, 'INVALID_ARGUMENT'],
    [{ isolation: 'process', stackMb: 5 }, 'INVALID_ARGUMENT'],
    [{ idleTimeout: 'soon' }, 'INVALID_DURATION'],
    [{ idleTimeout: 0 }, 'INVALID_ARGUMENT'],
    [{ maxJobsPerThread: 0 }, 'INVALID_ARGUMENT'],
    [{ maxJobs: 1 }, 'INVALID_ARGUMENT'],
  ]
  for (const [options, code] of wrong) {
    expect([options, await codeOf(() => parseIsolation(options, 'inThread'))]).toEqual([options, code])
  }
  expect(parseIsolation({ maxHeapMb: 8 }, 'inThread').key).not.toBe(parseIsolation({ stackMb: 8 }, 'inThread').key)
})
