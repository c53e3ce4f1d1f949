/** The demo is killed without warning at twenty random moments and started again each time; in the end nothing is missing. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { runJson, startCli, temporaryFolder } from '../support/cli.ts'

const KILLS = 20
const FILES = 400
/** A process needs some 300 ms to begin, and the whole run some 3 s. */
const KILL_AFTER_MS_MAX = 1_600

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
    writeFileSync(join(folder, `${n}.txt`), `file ${n} `.repeat(1 + Math.floor(random() * 9_000)))
  const path = join(root, 'demo.db')
  const args = ['demo', folder, '--url', `sqlite:${path}`, '--json']

  let killed = 0
  let last = { run: 1, resumed: false, completed: -1 }
  for (let kill = 0; kill < KILLS; kill += 1) {
    const run = startCli(args)
    // The one wait of this test that is for time: the moment of the kill is what is drawn.
    await Promise.race([pause(random() * KILL_AFTER_MS_MAX), run.ended])
    run.child.kill('SIGKILL')
    const { code, signal, stderr } = await run.ended
    expect({ kill, stderr }).toEqual({ kill, stderr: '' })
    if (signal === 'SIGKILL') killed += 1
    else expect(code).toBe(0)
  }
  expect(killed).toBeGreaterThanOrEqual(KILLS / 2)

  last = await runJson(args.slice(0, -1))
  expect(last).toMatchObject({ files: FILES, completed: FILES, failed: 0, dlq: 2, lost: 0 })
  const database = new Database(path, { readonly: true })
  try {
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
  } finally {
    database.close()
  }
})
