// A long transaction holds back what PostgreSQL may remove: the rate after --dead rows (default 500,000) have died, as a share of the rate
// at first; two windows of --seconds (default 20).
import { heldXmin } from '../queue/held-xmin.mjs'
import * as holdfast from '../queue/holdfast.mjs'

export const unit = { name: 'of the first rate', higherIsBetter: true }
export const defaults = { concurrency: 100, seconds: 20, dead: 500_000, runs: 1, warmUp: false }
export const extra = {
  claimP99OfFirst: { name: 'claim p99, times the first', higherIsBetter: false },
  claimP95OfFirst: { name: 'claim p95, times the first', higherIsBetter: false },
  firstRate: { name: 'jobs/s at first', higherIsBetter: true },
  lastRate: { name: 'jobs/s at last', higherIsBetter: true },
  dead: { name: 'dead rows at the end' },
  deadPerJob: { name: 'dead rows a job', higherIsBetter: false },
  heldSeconds: { name: 'seconds that the transaction was open' },
}

export const run = (options) => heldXmin(holdfast, options)
