/** The demo is killed without warning at twenty random moments and started again each time; in the end nothing is missing. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { type CliProcess, runInProcess, runJson, startCli, temporaryFolder } from '../support/cli.ts'

const KILLS = 20
/** Several batches of the scan, and more work than twenty processes can do before they are killed. */
const FILES = 5_000
const KILL_AFTER_MS_MAX = 450

/** mulberry32: small, and the same for a seed everywhere. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

it('loses nothing over 20 kills', { timeout: 180_000 }, async () => {
  const seed = Number(process.env.KILL_SEED ?? Date.now() % 2 ** 31)
  console.log(`KILL_SEED=${seed}`)
  const random = seeded(seed)
  const root = temporaryFolder()
  const folder = join(root, 'files')
  mkdirSync(folder)
  for (let n = 0; n < FILES; n += 1)
    writeFileSync(join(folder, `${n}.txt`), `file ${n} `.repeat(1 + Math.floor(random() * 100)))
  const path = join(root, 'demo.db')
  const url = `sqlite:${path}`
  await runInProcess(['migrate', '--url', url])
  const database = new Database(path, { readonly: true })

  let midWork = 0
  for (let kill = 0; kill < KILLS; kill += 1) {
    const run = startCli(['demo', folder, '--url', url, '--json'])
    // Every fourth is killed while it begins, the others some time after their first commit.
    if (kill % 4 !== 3) await firstCommit(run, database)
    // The one wait of this test that is for time: the moment of the kill is what is drawn.
    await Promise.race([pause(random() * KILL_AFTER_MS_MAX), run.ended])
    run.child.kill('SIGKILL')
    const { signal, stderr } = await run.ended
    expect({ kill, stderr }).toEqual({ kill, stderr: '' })
    const { stdout } = await runInProcess(['stats', '--url', url, '--json'])
    if (signal === 'SIGKILL' && JSON.parse(stdout).counts.running > 0) midWork += 1
  }
  // Otherwise the kills missed the work and the test shows nothing.
  expect(midWork).toBeGreaterThanOrEqual(KILLS / 2)

  const last = await runJson(['demo', folder, '--url', url])
  expect(last).toMatchObject({ run: 1, resumed: true, files: FILES, completed: FILES, failed: 0, dlq: 2, lost: 0 })
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
  database.close()
})

/** Resolves when another process has committed: https://www.sqlite.org/pragma.html#pragma_data_version */
async function firstCommit(run: CliProcess, database: Database.Database): Promise<void> {
  const version = (): unknown => database.pragma('data_version', { simple: true })
  const before = version()
  while (version() === before && run.child.exitCode === null) await pause(5)
}
