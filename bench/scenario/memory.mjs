// Heap that one waiting job costs the process (memory store), bytes on disk (SQLite, PostgreSQL) or bytes of
// the server's memory (Redis).
import { statSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { fill, open, prove } from './shared.mjs'

export const unit = { name: 'bytes/job', higherIsBetter: false }
export const defaults = {
  concurrency: 1,
  jobs: { memory: 100_000, sqlite: 100_000, redis: 100_000, postgres: 100_000 },
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')

export function run(options) {
  return options.server !== undefined ? onServer(options) : inProcess(options)
}

async function onServer({ server, ...options }) {
  const hf = await open(options)
  const before = await server.usedMemory()
  await fill(hf, options.jobs, options.payloadBytes)
  const after = await server.usedMemory()
  prove('memory', (await hf.stats()).counts.queued, options.jobs)
  await hf.close()
  return (after - before) / options.jobs
}

async function inProcess(options) {
  const hf = await open(options)
  collect()
  const before = process.memoryUsage().heapUsed
  await fill(hf, options.jobs, options.payloadBytes)
  collect()
  const heap = process.memoryUsage().heapUsed - before
  prove('memory', (await hf.stats()).counts.queued, options.jobs)
  await hf.close()
  return (options.store === 'memory' ? heap : statSync(options.url.slice('sqlite:'.length)).size) / options.jobs
}
