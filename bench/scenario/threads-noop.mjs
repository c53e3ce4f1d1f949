// No-op jobs through handler threads: what a thread and the way there and back cost. The peers are a bare piscina with the same threads
// and the same number in flight, and BullMQ's sandboxed processors in threads or processes.
import { runInThreads } from '../thread/ours.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = { concurrency: 10, jobs: { memory: 30_000, sqlite: 30_000, redis: 30_000, postgres: 30_000 } }

export const run = (options) =>
  runInThreads({ ...options, warmUps: 50 }, new URL('../thread/noop.mjs', import.meta.url))
