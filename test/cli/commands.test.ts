/** Every command once against a SQLite file: exit code, what it prints for people, and the shape of its JSON. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, defineJob, handle } from 'holdfast'
import { beforeAll, describe, expect, it } from 'vitest'
import { runCli, runInProcess, startCli, temporaryFolder } from '../support/cli.ts'
import { eventually } from '../support/event.ts'
import { silent } from '../support/silent.ts'

const folder = temporaryFolder()
const env = { HOLDFAST_URL: `sqlite:${join(folder, 'jobs.db')}` }
const holdfast = (...args: string[]) => runInProcess(args, env)

async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await holdfast(...args, '--json')
  if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`)
  return JSON.parse(stdout) as T
}

interface Listed {
  readonly jobs: readonly { readonly id: string; readonly state: string; readonly priority: number }[]
  readonly cursor: string | null
}

const MODULE = `
const contract = (type) => ({ type, queue: 'default', retry: null, timeoutMs: null, maxCrashes: 3, keepResultMs: null, input: null, output: null })
const fail = () => { throw Object.assign(new Error('no such user'), { permanent: true }) }
export default {
  handlers: [
    { kind: 'inline', contract: contract('greet'), run: ({ name }, ctx) => {
      ctx.log.info({ name: name + '\\u001b[31m' }, 'greets')
      return 'hello ' + name + ctx.context.mark
    } },
    { kind: 'inline', contract: contract('fail'), run: fail },
  ],
  context: { mark: '!' },
}
`

beforeAll(() => writeFileSync(join(folder, 'worker.mjs'), MODULE))

describe('commands', () => {
  let greet = ''
  let dead = ''

  it('enqueue stores a job with its options and finds it again under its key', async () => {
    const args = ['enqueue', 'greet', '{"name":"Ada"}', '--priority', '-5', '--key', 'k1', '--metadata', '{"a":1}']
    const first = await json<{ id: string; deduplicated: boolean }>(...args, '--trace-id', 't1', '--timeout', '30s')
    expect(first).toEqual({
      id: expect.stringMatching(/^default\/[0-9A-Z]{26}$/),
      deduplicated: false,
      state: 'queued',
    })
    expect(await json(...args)).toEqual({ id: first.id, deduplicated: true, state: 'queued' })
    greet = first.id
    const job = await json('job', greet)
    expect(job).toMatchObject({
      id: greet,
      priority: -5,
      idempotencyKey: 'k1',
      metadata: { a: 1 },
      traceId: 't1',
      timeoutMs: 30_000,
      input: { name: 'Ada' },
      history: [],
    })
  })

  it('enqueue reads the input from standard input', async () => {
    const { code, stdout } = await runCli(['enqueue', 'fail', '-'], { env, input: '{"from":"stdin"}' })
    expect(code).toBe(0)
    dead = stdout.trim()
    expect(await json('job', dead)).toMatchObject({ input: { from: 'stdin' } })
  })

  it('work --until-empty runs what is there', async () => {
    expect(await json('work', join(folder, 'worker.mjs'), '--until-empty')).toEqual({ taken: 2, stopped: false })
    expect(await json('job', greet)).toMatchObject({ state: 'completed', output: 'hello Ada!', hasOutput: true })
    expect(await json('job', dead)).toMatchObject({ state: 'dlq', dlqCode: 'PERMANENT_ERROR' })
  })

  it('jobs lists newest first, filters and pages', async () => {
    const all = await json<Listed>('jobs')
    expect(all.jobs.map(({ id }) => id)).toEqual([dead, greet])
    const page = await json<Listed>('jobs', '--limit', '1')
    expect(page.jobs.map(({ id }) => id)).toEqual([dead])
    const next = await json<Listed>('jobs', '--limit', '1', '--cursor', String(page.cursor))
    expect(next.jobs.map(({ id }) => id)).toEqual([greet])
    expect((await json<Listed>('jobs', '--state', 'completed,running')).jobs.map(({ id }) => id)).toEqual([greet])
    expect((await json<Listed>('jobs', '--type', 'fail')).jobs.map(({ id }) => id)).toEqual([dead])
    expect((await json<Listed>('jobs', '--lane', 'other')).jobs).toEqual([])
    expect((await holdfast('jobs')).stdout).toContain(greet)
    expect((await holdfast('jobs', '--lane', 'other')).stdout).toBe('No jobs.\n')
  })

  it('dlq lists the dead letters with their reason', async () => {
    const { code, stdout } = await holdfast('dlq')
    expect(code).toBe(0)
    expect(stdout).toContain(dead)
    expect(stdout).toContain('PERMANENT_ERROR: no such user')
    expect(stdout).not.toContain(greet)
  })

  it('job shows the record to people', async () => {
    const { stdout } = await holdfast('job', greet)
    expect(stdout).toMatch(/^output +"hello Ada!"$/m)
    expect(stdout).toMatch(/^state +completed$/m)
  })

  it('logs shows what the handler logged, harmless to the terminal', async () => {
    const { code, stdout } = await holdfast('logs', greet)
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^\S+Z info #1 greets \{"name":"Ada\\u001b\[31m"\}\n$/)])
    const { lines } = await json<{ lines: { cursor: string; msg: string }[] }>('logs', greet, '--limit', '1')
    expect(lines.map(({ msg }) => msg)).toEqual(['greets'])
    expect(await json('logs', greet, '--after', lines[0]?.cursor ?? '')).toEqual({ lines: [] })
    expect((await holdfast('logs', dead)).stdout).toBe('No lines.\n')
    expect(await holdfast('logs', greet, '--after', 'x')).toMatchObject({ code: 2, stdout: '' })
  })

  it('explain tells a story', async () => {
    const { stdout } = await holdfast('explain', dead)
    expect(stdout).toMatch(/dead-lettered with PERMANENT_ERROR/)
    expect(stdout).toMatch(/attempt 1 failed after .*no such user/)
    expect(stdout).toMatch(/Next: nothing by itself; it can be replayed/)
    expect(await json('explain', dead)).toMatchObject({ jobId: dead, state: 'dlq', nextAction: { kind: 'replayable' } })
  })

  it('replay makes a new job, retry makes it ready, cancel ends it', async () => {
    const args = ['replay', dead, '--queue', 'again', '--run-at', '2999-01-01T00:00:00Z', '--input', '{"new":true}']
    const { id, replayOf } = await json<{ id: string; replayOf: string }>(...args)
    expect(id).toMatch(/^again\//)
    expect(replayOf).toBe(dead)
    expect(await json('job', id)).toMatchObject({ state: 'scheduled', input: { new: true }, replayOf: dead })
    expect(await json('retry', id)).toEqual({ id, ready: true })
    expect(await json('job', id)).toMatchObject({ state: 'queued' })
    const again = await holdfast('retry', id)
    expect(again.code).toBe(1)
    expect(again.stderr).toMatch(/^holdfast: the job is queued.*\n$/)
    expect(await json('cancel', id)).toEqual({ id, outcome: 'cancelled' })
    expect(await json('cancel', id, '--force')).toEqual({ id, outcome: 'already_terminal' })
  })

  it('workers lists who works, and explain says what holds a job up', async () => {
    const apart = ['--namespace', 'apart']
    expect((await holdfast('workers', ...apart)).stdout).toMatch(/^No workers\./)
    const stray = await json<{ id: string }>('enqueue', 'stray', '1', '--queue', 'lonely', ...apart)
    expect((await holdfast('explain', stray.id, ...apart)).stdout).toMatch(
      /^ {2}no_worker: no live worker takes jobs of lane lonely$/m,
    )
    const hf = await connect(env.HOLDFAST_URL, { logger: silent, namespace: 'apart' })
    const handler = handle(defineJob('greet', { queue: 'elsewhere' }), () => {})
    await hf.worker({ handlers: [handler], id: 'one', concurrency: 2 })
    const listed = await eventually(async () => {
      const { workers } = await json<{ workers: readonly { id: string }[] }>('workers', ...apart)
      return workers.length > 0 && workers
    }, 'the worker')
    expect(listed).toMatchObject([{ id: 'one', lanes: ['elsewhere'], types: ['greet'], concurrency: 2, isAlive: true }])
    expect((await holdfast('workers', ...apart)).stdout).toMatch(
      /^one +live +0\/2 +\d+(\.\d)? m?s ago .* elsewhere +greet +\d/m,
    )
    await hf.close()
  })

  it('pause, resume, lanes and stats tell of lanes', async () => {
    expect(await json('pause', 'default')).toEqual({ lane: 'default', paused: true })
    const { lanes } = await json<{ lanes: { lane: string; paused: boolean }[] }>('lanes')
    expect(lanes).toContainEqual(expect.objectContaining({ lane: 'default', paused: true }))
    expect(await json('resume', 'default')).toEqual({ lane: 'default', paused: false })
    expect(await json('stats', 'default')).toMatchObject({ total: 2, counts: { completed: 1, dlq: 1 } })
    expect(await json('stats')).toMatchObject({ total: 3, counts: { cancelled: 1 } })
    expect((await holdfast('lanes')).stdout).toMatch(/^default +open +1 +0 +1 +-$/m)
    expect((await holdfast('stats')).stdout).toMatch(/3 in all/)
  })

  it('limit sets, shows and takes away the limits of a lane', async () => {
    const flags = ['--max-in-flight', '10', '--rate', '100/1m/20', '--per-key', '2', '--enqueue-rate', '1000/1h']
    const rate = { limit: 100, perMs: 60_000, burst: 20 }
    const enqueueRate = { limit: 1_000, perMs: 3_600_000, burst: 1_000 }
    const policy = { lane: 'tight', maxInFlight: 10, rate, maxPerKey: 2, enqueueRate }
    expect(await json('limit', 'tight', ...flags)).toMatchObject({ ...policy, inFlight: 0, tokens: 20 })
    expect(await json('stats', 'tight')).toMatchObject({ total: 0, policy })
    expect(await json('lanes')).toMatchObject({ policies: [policy] })
    expect((await holdfast('lanes')).stdout).toMatch(
      /^tight .* 10 in flight; starts 100 in 60\.0 s, 20 at once; 2 per key; enqueues 1,000 in 60 min$/m,
    )
    const none = flags.map((flag) => (flag.startsWith('--') ? flag : 'none'))
    expect((await holdfast('limit', 'tight', ...none)).stdout).toMatch(/^lane tight: no limits$/m)
    expect((await holdfast('limit', 'tight')).stdout).toMatch(/^0 in flight$/m)
    for (const wrong of [
      ['--rate', 'fast'],
      ['--per-key', '1.5'],
      ['--enqueue-rate', '1/1m/2'],
      ['--max-in-flight', '0'],
    ])
      expect((await holdfast('limit', 'tight', ...wrong)).code).toBe(2)
  })

  it('maintain and migrate keep the store up', async () => {
    expect(await json('maintain')).toMatchObject({ reaped: 0, pruned: 0 })
    expect(await json('migrate')).toMatchObject({ store: 'sqlite', schemaVersion: expect.any(Number) })
  })

  it('doctor finds all in order, leaves nothing behind and counts the dead letters', async () => {
    const before = await json('stats')
    const report = await json<{ ok: boolean; checks: { name: string; status: string; found: string }[] }>('doctor')
    expect(report.ok).toBe(true)
    expect(report.checks).toContainEqual(expect.objectContaining({ name: 'writable', status: 'ok' }))
    expect(report.checks).toContainEqual(expect.objectContaining({ name: 'dead letters', status: 'note', found: '1' }))
    expect(await json('stats')).toEqual(before)
  })

  it('namespaces are apart', async () => {
    expect(await json('stats', '--namespace', 'other')).toMatchObject({ total: 0 })
  })

  it('--url counts before HOLDFAST_URL, and may stand before the command', async () => {
    expect(await json('--url', 'memory:', 'stats')).toMatchObject({ total: 0 })
  })

  it('help, --help and --version answer without a store', async () => {
    for (const args of [
      ['help'],
      ['--help'],
      ['help', 'jobs'],
      ['jobs', '--help'],
      ['--version'],
      ['help', '--json'],
    ]) {
      const { code, stdout, stderr } = await runInProcess(args)
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
      expect(stdout).not.toBe('')
    }
  })

  it('ends quietly when its reader has seen enough', async () => {
    const run = startCli(['jobs', '--json'], { env })
    run.child.stdout?.destroy()
    expect(await run.ended).toMatchObject({ code: 0, stderr: '' })
  })
})
