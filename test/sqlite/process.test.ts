/** Several processes on one file: nothing is done twice, nothing is lost, also when one is killed. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { freshPath, job, openStore } from './support.ts'

const script = fileURLToPath(new URL('./claimer.mjs', import.meta.url))
const dist = process.env.HOLDFAST_DIST ?? dirname(fileURLToPath(new URL('../../dist/x', import.meta.url)))
const run = promisify(execFile)

const idsOf = (count: number): string[] => Array.from({ length: count }, (_, index) => `mail/${index}`)
const fill = (path: string, count: number): void => {
  const store = openStore({ path })
  store.call('job.enqueue', { jobs: Array.from({ length: count }, (_, index) => job(String(index))) })
  store.close()
}

test('three processes claim 500 jobs, none twice', async () => {
  const path = freshPath()
  fill(path, 500)
  const outputs = await Promise.all(
    ['w1', 'w2', 'w3'].map((worker) => run(process.execPath, [script, dist, path, worker])),
  )
  const claimed = outputs.map(({ stdout }) => JSON.parse(stdout) as string[])
  expect(claimed.flat().sort()).toEqual(idsOf(500).sort())
  const store = openStore({ path })
  expect(store.call('queue.stats', { lanes: null }).lanes[0]?.counts).toMatchObject({ completed: 500, running: 0 })
  store.close()
})

const exit = (child: ChildProcess): Promise<void> => new Promise((resolve) => child.once('exit', () => resolve()))

test('a process that is killed while it writes leaves a sound file and every job', async () => {
  const path = freshPath()
  fill(path, 3_000)
  const child = spawn(process.execPath, [script, dist, path, 'w1'], { stdio: 'ignore' })
  const watcher = openStore({ path })
  const done = (): number => watcher.call('queue.stats', { lanes: ['mail'] }).lanes[0]?.counts.completed ?? 0
  const deadline = performance.now() + 20_000
  while (done() < 50 && performance.now() < deadline) await new Promise((resolve) => setImmediate(resolve))
  child.kill('SIGKILL')
  await exit(child)
  const counts = watcher.call('queue.stats', { lanes: ['mail'] }).lanes[0]?.counts
  expect(counts?.completed).toBeGreaterThanOrEqual(50)
  // The kill came in the middle: what it held is still its own until the lease runs out.
  expect((counts?.completed ?? 0) + (counts?.running ?? 0) + (counts?.queued ?? 0)).toBe(3_000)
  expect(counts?.queued).toBeGreaterThan(0)
  expect(watcher.connection.database.pragma('integrity_check', { simple: true })).toBe('ok')
  watcher.close()
})
