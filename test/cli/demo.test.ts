/** The demo on small folders: its numbers are right, runs are shared and gone on with, odd files are taken as they are. */
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { runCli, runJson, startCli, temporaryFolder } from '../support/cli.ts'
import { eventually } from '../support/event.ts'
import { silent } from '../support/silent.ts'

interface Demo {
  readonly run: number
  readonly resumed: boolean
  readonly files: number
  readonly completed: number
  readonly failed: number
  readonly retried: number
  readonly dlq: number
  readonly crashes: number
  readonly lost: number
  readonly jobsPerSecond: number
  readonly totals: {
    readonly bytes: number
    readonly lines: number
    readonly words: number
    readonly gzipBytes: number
  }
  readonly extensions: readonly { readonly extension: string; readonly files: number }[]
  readonly largest: readonly { readonly path: string; readonly sha256: string }[]
  readonly extras: Readonly<
    Record<
      string,
      {
        readonly id: string
        readonly state: string
        readonly attempts: number
        readonly dlqCode: string | null
        readonly waitedMs: number | null
      }
    >
  >
}

function makeFolder(files: Readonly<Record<string, string | Buffer>>) {
  const root = temporaryFolder()
  const folder = join(root, 'files')
  mkdirSync(folder)
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  return { folder, url: `sqlite:${join(root, 'demo.db')}` }
}

const demo = (folder: string, url: string): Promise<Demo> => runJson<Demo>(['demo', folder, '--url', url])

describe('demo', () => {
  it('digests every file and shows each way a job can go', async () => {
    const big = randomBytes(5 * 1024 * 1024)
    const { folder, url } = makeFolder({
      'a.txt': 'one two\nthree\n',
      'deep/er/b.txt': 'four',
      'empty.md': '',
      'big.bin': big,
      'node_modules/skipped.js': 'no',
      '.git/skipped': 'no',
    })
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x66, 0xff, 0xfe])]), 'not UTF-8')
    symlinkSync(join(folder, 'a.txt'), join(folder, 'link'))
    const result = await demo(folder, url)
    expect(result).toMatchObject({
      run: 1,
      resumed: false,
      files: 5,
      completed: 5,
      failed: 0,
      retried: 2,
      dlq: 2,
      crashes: 3,
      lost: 0,
    })
    expect(result.jobsPerSecond).toBeGreaterThan(0)
    expect(result.totals.bytes).toBe(14 + 4 + 0 + big.length + 9)
    expect(result.largest[0]).toMatchObject({ path: 'big.bin', sha256: createHash('sha256').update(big).digest('hex') })
    expect(result.extensions).toContainEqual(
      expect.objectContaining({ extension: '.txt', files: 2, lines: 2, words: 4 }),
    )
    expect(result.extras).toMatchObject({
      flaky: { state: 'completed', attempts: 3 },
      poison: { state: 'dlq', dlqCode: 'PANIC', attempts: 3 },
      late: { state: 'dlq', dlqCode: 'DEADLINE_EXCEEDED', attempts: 0, waitedMs: null },
      delayed: { state: 'completed', attempts: 1 },
    })
    expect(result.extras.delayed?.waitedMs).toBeGreaterThanOrEqual(2_000)
    expect(await demo(folder, url)).toMatchObject({ run: 2, resumed: false, files: 5, completed: 5, lost: 0 })
  })

  it('tells people a summary and the stories of the flaky and the poison job', async () => {
    const { folder, url } = makeFolder({ 'a.txt': 'x' })
    const { code, stdout, stderr } = await runCli(['demo', folder, '--url', url])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^total +1 +1 B/m)
    expect(stdout).toMatch(/attempt 2 failed after .*not yet: failure 2 of 2/)
    expect(stdout).toMatch(/attempt 3 crashed after .*PANIC/)
    expect(stdout).toMatch(/2 retried, 3 crashes, 2 dead letters, 0 lost/)
    expect(stdout).not.toContain('\u001b')
  })

  it('runs on the memory store, and on a folder without files', async () => {
    const { folder } = makeFolder({})
    expect(await demo(folder, 'memory:')).toMatchObject({ files: 0, completed: 0, dlq: 2, lost: 0 })
  })

  it('does not read its own store', async () => {
    const { folder } = makeFolder({ 'a.txt': 'x' })
    expect(await demo(folder, `sqlite:${join(folder, 'own.db')}`)).toMatchObject({ files: 1, completed: 1, lost: 0 })
  })

  it('several processes share one run and all see its end', async () => {
    const files = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`${n}.txt`, `file ${n}`]))
    const { folder, url } = makeFolder(files)
    const results = await Promise.all([demo(folder, url), demo(folder, url), demo(folder, url)])
    for (const result of results)
      expect(result).toMatchObject({ run: 1, files: 200, completed: 200, retried: 2, dlq: 2, lost: 0 })
    expect(results.filter(({ resumed }) => !resumed)).toHaveLength(1)
  })

  it('says how to go on when it is interrupted, and goes on', async () => {
    const { folder, url } = makeFolder({ 'a.txt': 'x', 'b.txt': 'y' })
    const run = startCli(['demo', folder, '--url', url])
    // Paused, it cannot end before the signal comes.
    const hf = await connect(url, { logger: silent })
    const lane = await eventually(async () => (await hf.lanes())[0]?.lane, 'the demo has begun')
    await hf.pause(lane)
    run.child.kill('SIGINT')
    const { code, stdout } = await run.ended
    expect(code).toBe(1)
    expect(stdout).toMatch(/^Stopped: \d+ of \d+ jobs have ended/)
    expect(stdout).toContain(`holdfast demo ${folder}`)
    await hf.resume(lane)
    await hf.close()
    expect(await demo(folder, url)).toMatchObject({
      run: 1,
      resumed: true,
      files: 2,
      completed: 2,
      retried: 2,
      lost: 0,
    })
  })
})
