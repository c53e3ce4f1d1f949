// Jobs that compute for 50 ms, on two threads: what is left of the machine for them. The peer is a bare piscina with the same threads.
import { runInThreads } from '../thread/ours.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = { concurrency: 2, jobs: { memory: 200, sqlite: 200, redis: 200, postgres: 200 }, warmUp: false }

export const run = (options) => runInThreads({ ...options, warmUps: 2 }, new URL('../thread/cpu.mjs', import.meta.url))
