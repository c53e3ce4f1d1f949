// A steady run (PostgreSQL; --minutes, default 30) at half of the measured peak (or --rate): the worst minute beside the first, in claim
// times and in bytes of tables and indexes. `details` has every minute.
import * as holdfast from '../queue/holdfast.mjs'
import { steady } from '../queue/steady.mjs'

export const unit = { name: 'times the claim p99 of the first minute, in the worst minute', higherIsBetter: false }
export const defaults = { concurrency: 100, minutes: 30, runs: 1, warmUp: false }
export const extra = {
  claimP99OfFirst: { name: 'worst minute of claim p99, times the first', higherIsBetter: false },
  claimP50OfFirst: { name: 'worst minute of claim p50, times the first', higherIsBetter: false },
  startP99OfFirst: {
    name: 'worst minute of the time from enqueue to start, p99, times the first',
    higherIsBetter: false,
  },
  bytesOfFirst: { name: 'most bytes of tables and indexes, times those after the first minute', higherIsBetter: false },
  worstBytes: { name: 'most bytes of tables and indexes', higherIsBetter: false },
  worstDead: { name: 'most dead rows at the end of a minute', higherIsBetter: false },
  slowestMinute: { name: 'jobs of the slowest minute, as a share of the first', higherIsBetter: true },
  rate: { name: 'jobs/s that were added' },
  peak: { name: 'jobs/s at most' },
}

export const run = (options) => steady(holdfast, options)
