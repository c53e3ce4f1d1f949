// A bare piscina: the same module, the same number of threads and of tasks in flight, the same payload.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { inputOf, perSecond, prove } from '../scenario/shared.mjs'

export const name = 'piscina'
export const version = JSON.parse(
  readFileSync(new URL('../../node_modules/piscina/package.json', import.meta.url), 'utf8'),
).version
export const settings = 'atomics disabled, one task a thread at a time, threads = concurrency'

export async function runBare(options, module) {
  const pool = new Piscina({
    filename: fileURLToPath(module),
    minThreads: options.concurrency,
    maxThreads: options.concurrency,
    concurrentTasksPerWorker: 1,
    atomics: 'disabled',
  })
  await Promise.all(Array.from({ length: options.concurrency * 2 }, () => pool.run(null)))
  let next = 0
  let done = 0
  const caller = async () => {
    while (next < options.jobs) {
      await pool.run(inputOf(options.payloadBytes, next++))
      done += 1
    }
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: options.concurrency }, caller))
  const elapsed = performance.now() - startedAt
  prove('piscina', done, options.jobs)
  await pool.destroy()
  return perSecond(options.jobs, elapsed)
}
