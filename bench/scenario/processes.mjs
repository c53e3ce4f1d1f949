// Two worker processes on one server, beside one (Redis, PostgreSQL).

import * as holdfast from '../queue/holdfast.mjs'
import { several } from '../queue/several.mjs'

export const unit = { name: 'jobs/s', higherIsBetter: true }
export const defaults = {
  concurrency: 100,
  jobs: { redis: 200_000, postgres: 100_000 },
  processes: 2,
  runs: 3,
  warmUp: false,
}
export const extra = {
  one: { name: 'jobs/s of one process', higherIsBetter: true },
  ofOne: { name: 'rate, as a share of one process', higherIsBetter: true },
}

export const run = (options) => several(holdfast, options)
